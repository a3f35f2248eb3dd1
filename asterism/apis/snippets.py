"""Short programs for official clients, made from the text files in the folder `snippets` of a door.

A line that begins with `[http] ` or `[https] ` is for servers without or with encryption only, and `<<NAME>>` is
replaced by a value. The marks are none of the languages' own, so a file reads like the program that it becomes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from asterism.apis.door_spec import Snippet

_MARKED_LINE = re.compile(r"\[(https?)\] ?(.*)", re.DOTALL)
_PLACEHOLDER = re.compile(r"<<([A-Z_]+)>>")


@dataclass(frozen=True, slots=True)
class SnippetSource:
    language: str
    # The package as its tool installs it, or the coordinates that a build file names.
    package: str
    file_name: str


def render_snippets(
    sources: Sequence[SnippetSource], folder: Path, *, is_encrypted: bool, values: Mapping[str, str]
) -> list[Snippet]:
    return [
        Snippet(
            source.language,
            source.package,
            render_code(
                (folder / source.file_name).read_text(encoding="utf-8"), is_encrypted=is_encrypted, values=values
            ),
        )
        for source in sources
    ]


def render_code(template: str, *, is_encrypted: bool, values: Mapping[str, str]) -> str:
    """Return the program for a server; a placeholder without a value is a KeyError."""
    scheme = "https" if is_encrypted else "http"
    lines = []
    for line in template.splitlines(keepends=True):
        marked = _MARKED_LINE.fullmatch(line)
        if marked is None:
            lines.append(line)
        elif marked[1] == scheme:
            lines.append(marked[2])
    return _PLACEHOLDER.sub(lambda found: values[found[1]], "".join(lines))

"""docs/conformance.md has a part for each protocol; a run writes its own and leaves the others alone."""

from __future__ import annotations

import re
from pathlib import Path

TITLE = "# Conformance"


def write_part(path: Path, name: str, text: str) -> None:
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    path.parent.mkdir(exist_ok=True)
    path.write_text(with_part(before, name, text), encoding="utf-8")


def with_part(document: str, name: str, text: str) -> str:
    """The document with the part of this name replaced, or added at its end."""
    part = f"<!-- part {name} -->\n{text.strip()}\n<!-- end {name} -->"
    pattern = re.compile(rf"<!-- part {re.escape(name)} -->.*?<!-- end {re.escape(name)} -->", re.DOTALL)
    if pattern.search(document):
        return pattern.sub(lambda _: part, document, count=1)
    parts = re.findall(r"<!-- part (\w+) -->.*?<!-- end \1 -->", document, re.DOTALL)
    kept = document.rstrip() if parts else TITLE
    return f"{kept}\n\n{part}\n"

"""The templates of `format()`: texts with variables, such as `%{name} is %{_}`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asterism.languages.gremlin.values.printing import bounded, text_of

# A percent sign in front makes it plain text.
_VARIABLE = re.compile(r"(?<!%)%\{(.*?)\}")
# The variable that stands for the next `by` modulator.
CURRENT = "_"


@dataclass(frozen=True, slots=True)
class Template:
    """A template: `texts` has one more member than `variables`, which stand between them."""

    texts: tuple[str, ...]
    variables: tuple[str, ...]

    def fill(self, value_of: Callable[[int, str], Any]) -> str | None:
        """Return the text with the values of the variables, asked for by place and name; None if a value is null."""
        parts = [self.texts[0]]
        for place, name in enumerate(self.variables):
            value = value_of(place, name)
            if value is None:
                return None
            parts += text_of(value), self.texts[place + 1]
        bounded(sum(map(len, parts)))
        return "".join(parts)


def parse_template(text: str) -> Template:
    """Return the template of a text."""
    parts = _VARIABLE.split(text)
    return Template(tuple(parts[::2]), tuple(parts[1::2]))

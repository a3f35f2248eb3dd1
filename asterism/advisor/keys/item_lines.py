"""Items in JSON lines: one object on each line, and what is wrong with the lines that are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from asterism.advisor.captured_request import BadLine
from asterism.limits import DEFAULT_LIMITS
from asterism.values.json.text import NotJson, parse_stored

# Reported with their reasons; all are counted.
SHOWN_MAX: Final = 5


@dataclass(slots=True)
class BadLines:
    """The lines of a file that were passed over."""

    count: int = 0
    shown: list[BadLine] = field(default_factory=list)

    def add(self, line: BadLine) -> None:
        self.count += 1
        if len(self.shown) < SHOWN_MAX:
            self.shown.append(line)


def read_items(lines: Iterable[bytes], bad: BadLines) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield each item with the size of its text; lines that are no item are added to `bad`."""
    longest = 2 * DEFAULT_LIMITS.item_bytes_max
    for number, line in enumerate(lines, start=1):
        size = len(line)
        if size > longest:
            bad.add(BadLine(number, f"The line is longer than {longest:,} bytes."))
            continue
        try:
            item = parse_stored(line)
        except NotJson as problem:
            if not line.isspace():
                bad.add(BadLine(number, f"It is not JSON: {problem}.", is_torn=not line.endswith(b"\n")))
            continue
        if type(item) is dict:
            yield item, size - line.endswith(b"\n")
        else:
            bad.add(BadLine(number, "It is not a JSON object."))

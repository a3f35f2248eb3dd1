"""Lines that the plugins write, one per test, and their sums by folder, file and tier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

# Folders below the root of the functional tests that a row of the report stands for.
_LEVELS = 4


@dataclass(frozen=True)
class Line:
    tier: str
    file: str
    test: str
    outcome: str

    @property
    def folder(self) -> str:
        return "/".join(self.file.split("/")[:-1][:_LEVELS])


def read_lines(path: Path) -> list[Line]:
    """Return the last outcome of each test."""
    found: dict[tuple[str, str], Line] = {}
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        parts = text.split("\t")
        if len(parts) >= 4:
            line = Line(*parts[:4])
            found[line.file, line.test] = line
    return list(found.values())


def share(lines: Iterable[Line]) -> str:
    count = Counter(line.outcome for line in lines)
    run = count["passed"] + count["failed"]
    percent = f"{100 * count['passed'] / run:.1f} %" if run else "-"
    return f"{count['passed']} | {run} | {percent} | {count['skipped']}"


def table(title: str, lines: list[Line], key: Callable[[Line], str]) -> list[str]:
    names = sorted({key(line) for line in lines})
    rows = [f"| {name} | {share(line for line in lines if key(line) == name)} |" for name in names]
    return [
        f"| {title} | passed | run | share | skipped |",
        "|---|---:|---:|---:|---:|",
        *rows,
        f"| **all** | {share(lines)} |",
    ]

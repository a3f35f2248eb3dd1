"""Tables and numbers in readable form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from asterism.cli.printable import printable

_NUMERIC = {
    "bytes",
    "items",
    "RU/s share",
    "RU so far",
    "RU/s",
    "entries copied",
    "partitions",
    "RU/s demand",
    "accepted",
    "throttled",
    "RU",
}
# Enough of a bound to distinguish ranges; a whole one has 32 characters.
_BOUND_CHARACTERS = 8
_WIDTH_ELSEWHERE = 240


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, to_errors: bool = False) -> None:
    if not rows:
        return
    table = Table(title=cell_text(title) or None, title_justify="left")
    for column in columns:
        table.add_column(cell_text(column), justify="right" if column in _NUMERIC else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(cell_text, row))
    # A pipe or a file has no width, and a table folded at 80 characters is useless there.
    is_terminal = Console(stderr=to_errors).is_terminal
    Console(stderr=to_errors, width=None if is_terminal else _WIDTH_ELSEWHERE).print(table)


def cell_text(text: str) -> str:
    """Return a text as a cell that shows it as it is, without markup and without effects on the terminal."""
    return escape(printable(text))


def readable_bytes(count: int) -> str:
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if amount < 1024:
            return f"{amount:,.0f} {unit}" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} PB"


def readable_range(start: str, end: str) -> str:
    return f"[{_bound(start)}, {_bound(end)})"


def _bound(text: str) -> str:
    return text if len(text) <= _BOUND_CHARACTERS else f"{text[:_BOUND_CHARACTERS]}…"


def readable_key(logical: dict[str, Any]) -> str:
    """Return a logical partition's key value, or its hash if it has no item to take the value from."""
    key = logical.get("partition_key")
    return f"hash {logical['effective_key']}" if key is None else json.dumps(key, ensure_ascii=False)

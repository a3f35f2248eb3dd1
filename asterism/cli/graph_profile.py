"""The execution profile of a traversal on a terminal: a row for each step, with bars and the partitions it touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from asterism.cli.tables import cell_text, readable_bytes

_BAR_CELLS = 16
_EIGHTHS = " ▏▎▍▌▋▊▉█"
# More partitions than this do not fit into a line as a map; then their number stands there.
_MAP_PARTITIONS_MAX = 40
_WIDTH_ELSEWHERE = 200


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of the profile with the sum of its store operations."""

    name: str
    milliseconds: float
    results: int
    operations: int
    items: int
    bytes: int
    charge: float
    partitions: tuple[str, ...]
    indexes: tuple[str, ...]
    fan_out: int


def step_rows(profile: dict[str, Any]) -> list[StepRow]:
    rows = []
    for metric in profile.get("metrics", []):
        operations = metric.get("storeOps", [])
        partitions = {str(name) for operation in operations for name in operation.get("partitions", [])}
        rows.append(
            StepRow(
                str(metric.get("name", "")),
                float(metric.get("time", 0)),
                int(metric.get("counts", {}).get("resultCount", 0)),
                len(operations),
                sum(int(operation.get("count", 0)) for operation in operations),
                sum(int(operation.get("size", 0)) for operation in operations),
                sum(float(operation.get("requestCharge", 0)) for operation in operations),
                tuple(sorted(partitions, key=lambda name: (len(name), name))),
                tuple(dict.fromkeys(str(operation["index"]) for operation in operations if operation.get("index"))),
                max((int(operation.get("fanoutFactor", 0)) for operation in operations), default=0),
            )
        )
    return rows


def bar(share: float, cells: int = _BAR_CELLS) -> str:
    """Return a bar of text with the length of a share between 0 and 1, in eighths of a character."""
    eighths = round(max(0.0, min(1.0, share)) * cells * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def partition_map(touched: tuple[str, ...], every: list[str]) -> str:
    """Return a mark for each partition of the traversal, in order: filled where the step was."""
    if not touched:
        return "-"
    if len(every) > _MAP_PARTITIONS_MAX:
        return f"{len(touched)} of {len(every)}"
    return "".join("■" if name in touched else "·" for name in every)


def print_profile(profile: dict[str, Any]) -> None:
    rows = step_rows(profile)
    every = sorted({name for row in rows for name in row.partitions}, key=lambda name: (len(name), name))
    total = max(sum(row.milliseconds for row in rows), 1e-9)
    charges = max(sum(row.charge for row in rows), 1e-9)
    table = Table(title=cell_text(str(profile.get("gremlin", ""))), title_justify="left")
    for name, justify in (
        ("step", "left"),
        ("ms", "right"),
        ("", "left"),
        ("results", "right"),
        ("store ops", "right"),
        ("read", "right"),
        ("partitions", "left"),
        ("RU", "right"),
        ("", "left"),
        ("index", "left"),
    ):
        table.add_column(name, justify="right" if justify == "right" else "left", overflow="fold")
    for row in rows:
        asked = row.operations > 0
        table.add_row(
            cell_text(row.name),
            f"{row.milliseconds:,.2f}",
            f"[cyan]{bar(row.milliseconds / total)}[/cyan]",
            f"{row.results:,}",
            f"{row.operations:,}" if asked else "-",
            f"{row.items:,} ({readable_bytes(row.bytes)})" if asked else "-",
            cell_text(f"{partition_map(row.partitions, every)} {_names(row)}".strip()),
            f"{row.charge:,.2f}" if asked else "-",
            f"[magenta]{bar(row.charge / charges)}[/magenta]" if asked else "",
            cell_text(", ".join(row.indexes)) or "-",
        )
    console = Console()
    (console if console.is_terminal else Console(width=_WIDTH_ELSEWHERE)).print(table)
    for sentence in profile.get("advice") or []:
        typer.echo(f"Advice: {sentence}")


def _names(row: StepRow) -> str:
    if row.partitions:
        return ", ".join(row.partitions) if len(row.partitions) <= 8 else f"({len(row.partitions)})"
    return f"({row.fan_out})" if row.fan_out else ""

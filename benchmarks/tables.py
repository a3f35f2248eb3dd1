"""Figures as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich.markup import escape
from rich.table import Table

from benchmarks.comparison import Compared, spread
from benchmarks.measurement import Measurement


def measurement_table(found: Sequence[Measurement]) -> Table:
    table = Table(title="Asterism, server on one core, load on the other")
    table.add_column("case")
    table.add_column("measurement")
    table.add_column("value", justify="right")
    table.add_column("promised", justify="right")
    table.add_column("note")
    for measurement in found:
        value = "" if measurement.value is None else f"{show(measurement.value)} {measurement.unit}".rstrip()
        color = {True: "green", False: "red", None: ""}[measurement.is_kept]
        table.add_row(
            measurement.case,
            escape(measurement.name),
            f"[{color}]{value}[/]" if color else value,
            measurement.promise,
            escape(measurement.note),
        )
    return table


def comparison_table(figures: Sequence[Compared], *, ours: str, theirs: str) -> Table:
    """Medians with their spread; the ratio of the medians, and the least and largest of a pair."""
    table = Table(title=f"this checkout ({ours}) against {theirs}: medians, ± spread from least to largest")
    table.add_column("case")
    table.add_column("measurement")
    table.add_column(f"this\n{ours}", justify="right")
    table.add_column(f"against\n{theirs}", justify="right")
    table.add_column("ratio", justify="right")
    table.add_column("of pairs", justify="right")
    for figure in figures:
        pairs = figure.ratios
        table.add_row(
            figure.case,
            escape(figure.name),
            _median(figure.ours, figure.unit),
            _median(figure.theirs, figure.unit),
            "" if figure.ratio is None else f"{figure.ratio:.3f}",
            f"{min(pairs):.2f} to {max(pairs):.2f}" if pairs else "",
        )
    return table


def _median(values: Sequence[float], unit: str) -> str:
    if not values:
        return "not measured"
    return f"{show(median(values))} {unit}".rstrip() + f" ±{spread(values):.0%}"


def show(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.3g}"

"""The report of `asterism advise` as a table, with its warnings and the command to go on with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import typer

from asterism.advisor.keys.assessment import Assessment
from asterism.advisor.keys.item_lines import BadLines
from asterism.advisor.keys.report import Report, migration_command
from asterism.advisor.wording import about_bytes, about_duration
from asterism.cli.advise_sources import RequestLog
from asterism.cli.tables import print_table

_COLUMNS: Final = (
    "",
    "key",
    "RU/s needed",
    "for no 429",
    "RU/s",
    "429",
    "to one",
    "to all",
    "hottest partition",
    "hottest key",
    "keys",
    "largest",
    "why",
)


def print_report(report: Report, names: tuple[str, str], *, top: int) -> None:
    typer.echo(headline(report, names))
    shown = list(report.ranked[:top])
    if report.present is not None and report.present not in shown:
        shown.append(report.present)
    ranks = {each.candidate.name: rank for rank, each in enumerate(report.ranked, start=1)}
    print_table("", _COLUMNS, [_row(ranks[each.candidate.name], each) for each in shown])
    left = len(report.ranked) - len(shown)
    if left > 0:
        typer.echo(f"{left} more candidates; --top and --json show them.")
    if any(each.is_estimate for each in shown):
        typer.echo("~ estimated from a part of the requests.")
    for warning in report.warnings:
        typer.echo(f"Note: {warning}")
    typer.echo(last_line(report, names))


def headline(report: Report, names: tuple[str, str]) -> str:
    sampled = "" if report.sampled_items == report.items else f" ({report.sampled_items:,} in the sample)"
    requests = "no requests"
    if report.requests:
        requests = f"{report.requests:,} requests in {about_duration(report.span_seconds)}"
    partitions = "1 physical partition" if report.partitions == 1 else f"{report.partitions} physical partitions"
    return (
        f"{'/'.join(names)}: {report.items:,} items, {about_bytes(report.total_bytes)}{sampled}; {requests}. Judged at "
        f"{report.ru_per_second:,} RU/s on {partitions}."
    )


def _row(rank: int, assessment: Assessment) -> list[str]:
    storage, predicted, windows = assessment.storage, assessment.predicted, assessment.windows
    rough = "~" if assessment.is_estimate else ""
    needed, peak = "never enough", "never enough"
    if predicted.ru_needed is not None:
        needed, peak = f"{rough}{assessment.ru_ranked:,.0f}", f"{rough}{predicted.ru_needed:,.0f}"
    present = " (present)" if assessment.is_present else ""
    return [
        "✗" if assessment.problems else str(rank),
        f"{assessment.candidate.name}{present}",
        needed,
        peak,
        f"{predicted.ru_per_second:,.0f}",
        f"{predicted.throttled_share:.1%}",
        f"{assessment.routes.routed:.0%}",
        f"{assessment.routes.fan_out:.0%}",
        f"{windows.physical.mean:.0%}",
        f"{windows.logical.mean:.0%}",
        f"{storage.cardinality:,}",
        f"{storage.largest_share:.1%}",
        assessment.why,
    ]


def bad_line_sentences(bad_items: BadLines, log: RequestLog) -> Iterator[str]:
    """Yield what was wrong with the files: counts, and the first few lines with their reasons."""
    for name, bad in (("items", bad_items), ("requests", log.bad)):
        if bad.count:
            yield f"{bad.count:,} lines of the {name} were passed over:"
        for line in bad.shown:
            torn = " (the file ends in the middle of it)" if line.is_torn else ""
            yield f"  line {line.number}: {line.reason}{torn}"


def command_of(report: Report, names: tuple[str, str]) -> str | None:
    """Return the command that copies the container to the best key; None if it has that already, or none is good."""
    best = report.best
    if best is None or best.is_present or best.problems:
        return None
    return migration_command(*names, best.candidate)


def last_line(report: Report, names: tuple[str, str]) -> str:
    best, command = report.best, command_of(report, names)
    if command is not None:
        return command
    if best is not None and best.is_present and not best.problems:
        return f"The present key, {best.candidate.name}, is the best: nothing to do."
    return "No candidate works for these items and requests; the table says why."

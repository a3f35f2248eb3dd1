"""Run the cases, show a table, write build/bench.json. With --against, measure two checkouts in turns."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console

from benchmarks import (
    case_amqp,
    case_batch,
    case_capture,
    case_containers,
    case_create,
    case_engine,
    case_feed,
    case_fixture,
    case_gremlin,
    case_idle,
    case_in_process,
    case_keys,
    case_mongo,
    case_move,
    case_point_read,
    case_portal,
    case_postgres,
    case_postgres_server,
    case_query,
    case_query_shapes,
    case_reads_under_writes,
    case_split,
    case_start,
    case_storage,
    case_tables,
)
from benchmarks.comparison import Compared, compare
from benchmarks.measurement import Measurement, not_measured
from benchmarks.processes import NotMeasured, load_core, server_core
from benchmarks.subject import BACKLOG, LISTED_BLOBS, PROJECT, NoCheckout, Subject, checkout, other_checkout
from benchmarks.tables import comparison_table, measurement_table
from benchmarks.wire import UnexpectedAnswer

CASES: dict[str, Callable[[Subject], Awaitable[list[Measurement]]]] = {
    "point_read": case_point_read.measure,
    "create": case_create.measure,
    "engine": case_engine.measure,
    "reads_under_writes": case_reads_under_writes.measure,
    "in_process": case_in_process.measure,
    "start": case_start.measure,
    "fixture": case_fixture.measure,
    "idle": case_idle.measure,
    "containers": case_containers.measure,
    "split": case_split.measure,
    "query": case_query.measure,
    "batch": case_batch.measure,
    "feed": case_feed.measure,
    "postgres": case_postgres.measure,
    "postgres_server": case_postgres_server.measure,
    "move": case_move.measure,
    "tables": case_tables.measure,
    "storage": case_storage.measure,
    "portal": case_portal.measure,
    "mongo": case_mongo.measure,
    "gremlin": case_gremlin.measure,
    "amqp": case_amqp.measure,
    "keys": case_keys.measure,
    "capture": case_capture.measure,
}
# Can be chosen alone; a case above measures them too.
PARTS = {"query_shapes": case_query_shapes.measure}
RESULTS = PROJECT / "build" / "bench.json"
# For output that goes to a file.
OUTPUT_COLUMNS = 140
PAIRS = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--only", default=",".join(CASES), help=f"some of: {','.join(CASES | PARTS)}")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the numbers go")
    parser.add_argument("--strict", action="store_true", help="fail if a promise is not kept")
    parser.add_argument("--against", metavar="FOLDER_OR_COMMIT", help="measure another checkout in turns with this one")
    parser.add_argument(
        "--blobs", type=int, default=LISTED_BLOBS, help=f"blobs that case storage lists (default {LISTED_BLOBS:,})"
    )
    parser.add_argument(
        "--backlog", type=int, default=BACKLOG, help=f"messages that wait in case amqp (default {BACKLOG:,})"
    )
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"with --against: runs of each (default {PAIRS})")
    options = parser.parse_args()
    chosen = options.only.split(",")
    unknown = sorted(set(chosen) - (CASES | PARTS).keys())
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    if options.against is not None and options.pairs < PAIRS:
        parser.error(f"--pairs must be at least {PAIRS}: fewer say nothing about the spread")
    console = Console(width=None if sys.stdout.isatty() else OUTPUT_COLUMNS)
    os.sched_setaffinity(0, {load_core()})
    if server_core() == load_core():
        console.print("[yellow]only one core: the load takes time from the server, ratios still compare[/]")
    try:
        return measure(chosen, options, console)
    except NoCheckout as problem:
        parser.error(str(problem))


def measure(chosen: list[str], options: argparse.Namespace, console: Console) -> int:
    subject = replace(checkout(PROJECT), listed_blobs=options.blobs, backlog=options.backlog)
    if options.against is not None:
        with other_checkout(options.against) as other:
            measure_both(chosen, replace(subject, is_compared=True), other, options, console)
        return 0
    found = [measurement for name in chosen for measurement in run_case(name, subject, console)]
    console.print(measurement_table(found))
    write_results(options.json, [asdict(measurement) | {"is_kept": measurement.is_kept} for measurement in found])
    return 1 if options.strict and any(measurement.is_kept is False for measurement in found) else 0


def measure_both(
    chosen: list[str], ours: Subject, theirs: Subject, options: argparse.Namespace, console: Console
) -> None:
    """Run each case in turns, so that other load on the machine disturbs both checkouts."""
    for subject in (ours, theirs):
        subject.check()
    console.print(f"this: {ours.label}; against: {theirs.label} in {theirs.folder}; {options.pairs} pairs")
    figures: list[Compared] = []
    for name in chosen:
        runs: tuple[list[list[Measurement]], list[list[Measurement]]] = ([], [])
        for _ in range(options.pairs):
            for subject, found in zip((ours, theirs), runs, strict=True):
                found.append(run_case(name, subject, console))
        figures += compare(*runs)
        say_missing(runs[0][-1] + runs[1][-1], console)
    console.print(comparison_table(figures, ours=ours.label, theirs=theirs.label))
    labels = {"this": ours.label, "against": theirs.label}
    write_results(options.json, [labels | asdict(figure) | {"ratio": figure.ratio} for figure in figures])


def say_missing(found: list[Measurement], console: Console) -> None:
    for measurement in found:
        if measurement.value is None:
            console.print(f"{measurement.case} {measurement.name}: {measurement.note}", markup=False)


def run_case(name: str, subject: Subject, console: Console) -> list[Measurement]:
    started = time.perf_counter()
    try:
        found = uvloop.run(_await((CASES | PARTS)[name], subject))
    except (NotMeasured, UnexpectedAnswer, OSError) as problem:
        found = [not_measured(name, "", str(problem) or type(problem).__name__)]
    console.print(f"{name}, {subject.label}: {time.perf_counter() - started:.0f} s")
    return found


async def _await(case: Callable[[Subject], Awaitable[list[Measurement]]], subject: Subject) -> list[Measurement]:
    return await case(subject)


def write_results(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

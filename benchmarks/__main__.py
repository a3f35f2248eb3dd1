"""Runs the cases, shows a table, writes build/bench.json."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

import uvloop
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks import (
    case_batch,
    case_containers,
    case_create,
    case_feed,
    case_idle,
    case_move,
    case_point_read,
    case_postgres,
    case_postgres_server,
    case_query,
    case_split,
    case_start,
    case_tables,
)
from benchmarks.measurement import Measurement, not_measured
from benchmarks.processes import PROJECT, NotMeasured, load_core, server_core
from benchmarks.wire import UnexpectedAnswer

CASES: dict[str, Callable[[], Awaitable[list[Measurement]]]] = {
    "point_read": case_point_read.measure,
    "create": case_create.measure,
    "start": case_start.measure,
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
}
RESULTS = PROJECT / "build" / "bench.json"
# For output that goes to a file.
OUTPUT_COLUMNS = 140


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--only", default=",".join(CASES), help=f"some of: {','.join(CASES)}")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the numbers go")
    parser.add_argument("--strict", action="store_true", help="fail if a promise is not kept")
    options = parser.parse_args()
    chosen = options.only.split(",")
    unknown = sorted(set(chosen) - CASES.keys())
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    console = Console(width=None if sys.stdout.isatty() else OUTPUT_COLUMNS)
    os.sched_setaffinity(0, {load_core()})
    if server_core() == load_core():
        console.print("[yellow]only one core: the load takes time from the server, ratios still compare[/]")
    found = [measurement for name in chosen for measurement in run_case(name, console)]
    console.print(make_table(found))
    write_results(options.json, found)
    return 1 if options.strict and any(measurement.is_kept is False for measurement in found) else 0


def run_case(name: str, console: Console) -> list[Measurement]:
    started = time.perf_counter()
    try:
        found = uvloop.run(_await(CASES[name]))
    except (NotMeasured, UnexpectedAnswer, OSError) as problem:
        found = [not_measured(name, "", str(problem) or type(problem).__name__)]
    console.print(f"{name}: {time.perf_counter() - started:.0f} s")
    return found


async def _await(case: Callable[[], Awaitable[list[Measurement]]]) -> list[Measurement]:
    return await case()


def make_table(found: list[Measurement]) -> Table:
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
            measurement.name,
            f"[{color}]{value}[/]" if color else value,
            measurement.promise,
            escape(measurement.note),
        )
    return table


def show(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.3g}"


def write_results(path: Path, found: list[Measurement]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [asdict(measurement) | {"is_kept": measurement.is_kept} for measurement in found]
    path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

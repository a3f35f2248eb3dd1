"""`asterism capture`."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final

import typer

from asterism.cli.failure import CommandFailed
from asterism.cli.options import (
    DEFAULT_ENDPOINT,
    DEFAULT_KEY,
    Container,
    Database,
    Endpoint,
    Format,
    Insecure,
    Key,
    OutputFormat,
)
from asterism.limits import GIB, KIB, MIB

if TYPE_CHECKING:
    from asterism.advisor.capture_summary import CaptureSummary, Filter, Totals

CAPTURE_EXAMPLES = """[bold]From a workload to a partition key[/bold]

1. Keep one request of ten for an hour, in the data directory of the server:\n
  asterism capture start shop orders\n
2. Let the application run, and look at what was kept so far:\n
  asterism capture show shop orders\n
3. Ask which partition key would serve these requests best:\n
  asterism advise shop orders

[bold]What is kept[/bold]

Of each request its kind, time, charge, status and size; the partition key and the id that it named; of items that are
written their scalar values, by path; of queries the paths of the filter, its order, and its text without constants.
Values are kept as digests, whose salt stays with the server; --plain keeps them as they are. Names of properties are
kept as they are. A capture ends at its time, at its size, or when it is stopped, and a restart does not end it."""

START_EXAMPLES = """[bold]Examples[/bold]

Every request of ten minutes, for a test of load:\n
  asterism capture start shop orders --sample 1 --minutes 10

With values that a person can read:\n
  asterism capture start shop orders --plain"""

SHOW_EXAMPLES = """[bold]Examples[/bold]

Kinds of requests with their request units, and the filters of queries:\n
  asterism capture show shop orders

The requests themselves, a JSON text in each line, for other programs:\n
  asterism capture show shop orders --output requests.jsonl"""

capture = typer.Typer(no_args_is_help=True, help="Keep a sample of the requests on a container, to judge its key by.")

Sample = Annotated[
    float, typer.Option("--sample", metavar="FRACTION", help="The fraction of requests to keep: above 0, at most 1.")
]
BytesMax = Annotated[str, typer.Option("--bytes-max", metavar="SIZE", help="The capture ends when it has this size.")]
Minutes = Annotated[float, typer.Option("--minutes", metavar="N", help="The capture ends after this time.")]
Plain = Annotated[bool, typer.Option("--plain", help="Keep values as they are, and not as digests.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the requests; - for standard output.", dir_okay=False),
]

_SIZE: Final = re.compile(r"([0-9]+) ?([KMG]?B)", re.IGNORECASE)
_UNIT_BYTES: Final = {"B": 1, "KB": KIB, "MB": MIB, "GB": GIB}
_VALUES: Final = {"plain": "plain values", "digests": "digests of values"}
# Of the filters; the others are summed up.
_SHOWN_FILTERS: Final = 12
_SHOWN_BAD_LINES: Final = 5


@capture.command(epilog=START_EXAMPLES)
def start(
    database: Database,
    container: Container,
    sample: Sample = 0.1,
    bytes_max: BytesMax = "64MB",
    minutes: Minutes = 60.0,
    plain: Plain = False,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Begin to keep requests; the records of an earlier capture are removed."""
    from asterism.cli.client import AdminClient

    if not 0 < sample <= 1:
        raise CommandFailed(f"--sample {sample:g} is not a fraction of requests; give a number above 0 and at most 1")
    if minutes <= 0:
        raise CommandFailed(f"--minutes {minutes:g} is no time to capture in; give a number above 0")
    body = {
        "database": database,
        "container": container,
        "sampling": sample,
        "bytes_max": _size_of(bytes_max),
        "seconds_max": minutes * 60,
        "values": "plain" if plain else "digests",
    }
    begun = AdminClient(endpoint, key, insecure=insecure).post("capture/start", body)["capture"]
    typer.echo(f"Capturing {_facts(begun)}. To look at it: asterism capture show {database} {container}")


@capture.command()
def stop(
    database: Database,
    container: Container,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """End a capture. Its records stay until another one begins or the container is deleted."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    ended = client.post("capture/stop", {"database": database, "container": container})["capture"]
    typer.echo(f"Stopped: {_state(ended)}. To look at it: asterism capture show {database} {container}")


@capture.command("list")
def list_(
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the captures of all containers, those that have ended too."""
    from asterism.cli.client import AdminClient

    found = AdminClient(endpoint, key, insecure=insecure).get("capture")["captures"]
    if output_format is Format.JSON:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    from asterism.cli.tables import print_table

    if not found:
        typer.echo("No requests are being captured. To begin: asterism capture start DATABASE CONTAINER")
    rows = [
        [f"{each['database']}/{each['container']}", f"{each['sampling']:g}", each["values"], _state(each)]
        for each in found
    ]
    print_table("Captures", ["container", "sample", "values", "state"], rows)


@capture.command(epilog=SHOW_EXAMPLES)
def show(
    database: Database,
    container: Container,
    output: Output = None,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Sum up what was captured: operations by kind, and the filters of queries."""
    from asterism.advisor.capture_summary import summarize
    from asterism.advisor.captured_request import read_capture
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    names = {"database": database, "container": container}
    if output is not None:
        _write(client.lines("capture/records", **names), output)
        return
    summary = summarize(read_capture(client.lines("capture/records", **names)))
    found = client.get("capture", **names)["capture"]
    if output_format is Format.JSON:
        typer.echo(json.dumps({"capture": found, **_as_json(summary)}, indent=2, ensure_ascii=False))
    else:
        _print_summary(found, summary)


# --- what the user sees -----------------------------------------------------------------------------------------------


def _facts(found: dict[str, Any]) -> str:
    from asterism.cli.tables import readable_bytes

    sampled = "every request" if found["sampling"] == 1 else f"a sample of {100 * found['sampling']:g} % of requests"
    minutes = (found["ends_at"] - found["started_at"]) / 60
    return (
        f"{sampled} on {found['database']}/{found['container']} for {minutes:,.4g} minutes or "
        f"{readable_bytes(found['bytes_max'])}, with {_VALUES[found['values']]}"
    )


def _state(found: dict[str, Any]) -> str:
    from asterism.cli.tables import readable_bytes

    size = readable_bytes(found["bytes"])
    if found["is_running"]:
        return f"running for {max(found['ends_at'] - time.time(), 0) / 60:,.0f} more minutes, {size} so far"
    return f"ended because {found['ended_because']}, {size}"


def _print_summary(found: dict[str, Any], summary: CaptureSummary) -> None:
    from asterism.cli.tables import print_table

    typer.echo(f"{found['database']}/{found['container']}: {_state(found)}, sample {found['sampling']:g}")
    operations = sorted(summary.by_operation.items(), key=lambda entry: -entry[1].request_units)
    print_table(
        "Operations captured",
        ["operation", "requests", "RU", "RU each", "throttled"],
        [[name, *_figures(totals)] for name, totals in [*operations, ("total", summary.totals)]],
    )
    filters = sorted(summary.by_filter.items(), key=lambda entry: -entry[1].request_units)
    print_table(
        "Filters of queries and feeds",
        ["filter", "requests", "RU", "RU each", "throttled", "loaded", "results"],
        [
            [_filter_text(wanted), *_figures(totals), f"{totals.loaded:,}", f"{totals.results:,}"]
            for wanted, totals in filters[:_SHOWN_FILTERS]
        ],
    )
    for note in _notes(summary, filters_left=len(filters) - _SHOWN_FILTERS):
        typer.echo(note)


def _figures(totals: Totals) -> list[str]:
    each = totals.request_units / totals.count if totals.count else 0.0
    return [f"{totals.count:,}", f"{totals.request_units:,.0f}", f"{each:,.2f}", f"{totals.throttled:,}"]


def _filter_text(wanted: Filter) -> str:
    parts = [f"{path} =" for path in wanted.fixed] + [f"{path} between" for path in wanted.bounded]
    if wanted.names_key:
        parts.insert(0, "key named")
    text = ", ".join(parts) or "none"
    return f"{text}, by {', '.join(wanted.order)}" if wanted.order else text


def _notes(summary: CaptureSummary, *, filters_left: int) -> Iterator[str]:
    if not summary.by_operation:
        yield "No request has been captured yet."
    if filters_left > 0:
        yield f"{filters_left:,} more filters; --format json has all of them."
    if summary.batches:
        yield f"{summary.batches:,} of the requests were transactional batches; their operations are counted above."
    if summary.dropped:
        yield f"{summary.dropped:,} requests were left out, because they came faster than they could be written."
    if summary.bad_lines:
        yield f"{len(summary.bad_lines):,} lines were passed over:"
        for bad in summary.bad_lines[:_SHOWN_BAD_LINES]:
            yield f"  line {bad.number}: {'cut off by a crash' if bad.is_torn else bad.reason}"


def _as_json(summary: CaptureSummary) -> dict[str, Any]:
    def figures(totals: Totals) -> dict[str, Any]:
        return {
            "requests": totals.count,
            "request_units": round(totals.request_units, 2),
            "throttled": totals.throttled,
            "loaded": totals.loaded,
            "results": totals.results,
        }

    return {
        "operations": {name: figures(totals) for name, totals in summary.by_operation.items()},
        "filters": [wanted._asdict() | figures(totals) for wanted, totals in summary.by_filter.items()],
        "batches": summary.batches,
        "dropped": summary.dropped,
        "bad_lines": len(summary.bad_lines),
    }


# --- files ------------------------------------------------------------------------------------------------------------


def _size_of(text: str) -> int:
    size = _SIZE.fullmatch(text.strip())
    if size is None:
        raise CommandFailed(f"the size {text!r} must be a whole number with B, KB, MB or GB, such as 64MB")
    return int(size[1]) * _UNIT_BYTES[size[2].upper()]


def _write(lines: Iterator[bytes], output: Path) -> None:
    count = 0
    with _opened(output) as file:
        for line in lines:
            file.write(line)
            count += 1
    typer.echo(f"{count:,} lines written to {output}", err=True)


@contextmanager
def _opened(output: Path) -> Iterator[BinaryIO]:
    if str(output) == "-":
        yield sys.stdout.buffer
        return
    try:
        # As on the server: the values of requests are for their owner.
        output.touch(mode=0o600)
        with output.open("wb") as file:
            yield file
    except OSError as problem:
        raise CommandFailed(f"{output} cannot be written: {problem.strerror}") from None

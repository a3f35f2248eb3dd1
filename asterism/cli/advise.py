"""`asterism advise`."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli import options
from asterism.cli.failure import CommandFailed

if TYPE_CHECKING:
    from asterism.advisor.captured_request import CapturedRequest
    from asterism.advisor.keys.advise import AdviseOptions
    from asterism.advisor.keys.candidate import CandidateKey
    from asterism.advisor.keys.report import Report
    from asterism.cli.advise_sources import RequestLog, Source
    from asterism.cli.replay_report import Replay

ADVISE_EXAMPLES = """[bold]What it reads[/bold]

All items, of which a fair sample is kept, and the requests that a capture has, or that you write down: one JSON object
in each line, such as\n
  {"at": 1763496000.1, "operation": "read", "id": "o-17", "key": ["ada"]}\n
  {"at": 1763496000.2, "operation": "query", "equal": {"/customer": ["ada"]}, "results": 20}

[bold]What the columns mean[/bold]

RU/s needed: what busy times need; it has the cost of fan-outs and the skew in it. For no 429: what the highest peak
needs. RU/s: the mean use. 429: the refused share at the throughput named above the table. To one, to all: the shares of
requests that reach one logical partition, or ask all partitions. Hottest: the share of the load that the hottest
partition, and the hottest key, have in a window of time on average. Keys: how many there are. Largest: the most data
under one key, as a share.

[bold]Examples[/bold]

From a running container, with the requests that `asterism capture start shop orders` has kept:\n
  asterism advise shop orders

From files, at the throughput that you expect, with a page of charts:\n
  asterism advise --items items.jsonl --requests requests.jsonl --present-key /customer --ru 20000 --html advice.html

With the three best keys and the present one tried out on the server, in containers that are deleted afterwards:\n
  asterism advise shop orders --replay 3

[bold]How to go on[/bold]

The last line is the command that copies the container to the best key, on line: asterism rekey. The guide
docs/guides/choosing-a-key.md explains the ranking."""

_FILES = "Files in place of a running server"
_REPLAY = "Replay on the real engine, a minute at most for each key"

OptionalDatabase = Annotated[
    str | None, typer.Argument(metavar="DATABASE", help="Name of the database.", show_default=False)
]
OptionalContainer = Annotated[
    str | None, typer.Argument(metavar="CONTAINER", help="Name of the container.", show_default=False)
]
Items = Annotated[
    Path | None,
    typer.Option("--items", metavar="FILE", help="Items, one JSON object in each line.", rich_help_panel=_FILES),
]
Requests = Annotated[
    Path | None,
    typer.Option(
        "--requests", metavar="FILE", help="Requests, as `asterism capture` has them.", rich_help_panel=_FILES
    ),
]
PresentKey = Annotated[
    str | None,
    typer.Option(
        "--present-key",
        metavar="/PATH",
        help="The partition key that requests name; levels with commas between them.",
        rich_help_panel=_FILES,
    ),
]
RequestUnits = Annotated[
    int | None,
    typer.Option("--ru", metavar="RU/S", help="The throughput to judge at. Default: what the best key needs."),
]
Wanted = Annotated[
    list[str] | None,
    typer.Option("--candidate", metavar="/PATH", help="A key to assess too; levels with commas. Repeatable."),
]
Top = Annotated[int, typer.Option("--top", min=1, metavar="N", help="Rows of the table.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the sample: the same seed gives the same advice.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
HtmlFile = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Also write a page with charts, complete in itself.")
]
ReplayKeys = Annotated[
    int | None,
    typer.Option(
        "--replay",
        min=1,
        max=20,
        metavar="K",
        help="Try out the K best keys and the present one: replay the requests into scratch containers.",
        rich_help_panel=_REPLAY,
    ),
]
ReplayItems = Annotated[
    int, typer.Option("--replay-items", min=1, metavar="N", help="Items to load at most.", rich_help_panel=_REPLAY)
]
ReplayRequests = Annotated[
    int,
    typer.Option("--replay-requests", min=1, metavar="N", help="Requests to replay at most.", rich_help_panel=_REPLAY),
]


def advise(
    database: OptionalDatabase = None,
    container: OptionalContainer = None,
    items: Items = None,
    requests: Requests = None,
    present_key: PresentKey = None,
    ru: RequestUnits = None,
    candidate: Wanted = None,
    top: Top = 10,
    seed: Seed = 1,
    as_json: AsJson = False,
    html: HtmlFile = None,
    replay: ReplayKeys = None,
    replay_items: ReplayItems = 5000,
    replay_requests: ReplayRequests = 5000,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    key: options.Key = options.DEFAULT_KEY,
    insecure: options.Insecure = False,
) -> None:
    """Say which partition key would serve a container best, from its items and its requests."""
    if ru is not None and ru < 1:
        raise CommandFailed(f"--ru {ru} is no throughput; give the RU/s that you expect, such as --ru 4000")
    source = _source(database, container, items, requests, present_key, endpoint, key, insecure=insecure)
    log = source.log()
    report, read = _advice(source, log, ru=ru, wanted=[_key(each) for each in candidate or []], seed=seed)
    names = (database or "DATABASE", container or "CONTAINER")
    replayed: Replay | None = None
    if replay is not None:
        from asterism.cli.advise_replay import ReplayBounds, replay_advice
        from asterism.cli.scratch_containers import Server

        server = None if database is None else Server(endpoint, key, insecure)
        bounds = ReplayBounds(keys=replay, items_max=replay_items, requests_max=replay_requests)
        replayed = replay_advice(report, read, source, server, bounds=bounds, sampling=log.sampling)
    if html is not None:
        _write_page(html, report, names, replayed)
    if as_json:
        typer.echo(json.dumps(_as_json(report, source, log, names, replayed), indent=2, ensure_ascii=False))
    else:
        _print(report, source, log, names, top, replayed)


# --- reading ----------------------------------------------------------------------------------------------------------


def _source(
    database: str | None,
    container: str | None,
    items: Path | None,
    requests: Path | None,
    present_key: str | None,
    endpoint: str,
    key: str,
    *,
    insecure: bool,
) -> Source:
    from asterism.cli.advise_sources import FileSource

    if items is not None and database is None:
        return FileSource(items, requests, None if present_key is None else _key(present_key))
    if items is not None or requests is not None or present_key is not None:
        raise CommandFailed("give DATABASE and CONTAINER, or --items with --requests and --present-key; not both")
    if database is None or container is None:
        raise CommandFailed("name a DATABASE and a CONTAINER, or give --items FILE; see asterism advise --help")
    from asterism.cli.advise_live import LiveSource
    from asterism.cli.client import AdminClient
    from asterism.cli.data_client import DataClient

    data = DataClient(endpoint, key, insecure=insecure)
    return LiveSource(database, container, data=data, admin=AdminClient(endpoint, key, insecure=insecure))


def _key(given: str) -> CandidateKey:
    from asterism.advisor.keys.candidate import CandidateKey, paths_of
    from asterism.errors import MalformedRequest

    try:
        return CandidateKey.of_paths(*paths_of(given))
    except ValueError as problem:
        raise CommandFailed(str(problem)) from None
    except MalformedRequest as problem:
        raise CommandFailed(f"{given!r} is not a partition key: {problem.reason}") from None


def _advice(
    source: Source, log: RequestLog, *, ru: int | None, wanted: list[CandidateKey], seed: int
) -> tuple[Report, Sequence[CapturedRequest]]:
    """Return the report, and the requests with values in place of digests, as far as they are known."""
    from asterism.advisor.joined_pages import join_pages
    from asterism.advisor.keys.advise import AdviseOptions, advise
    from asterism.advisor.keys.undigested import Undigester
    from asterism.cli.advise_sources import profile_items
    from asterism.cli.progress import counting_bars

    rng = random.Random(seed)
    profile = profile_items(source, rng)
    if not profile.items:
        raise CommandFailed("there are no items to judge a key by" + _bad_text(source.bad_items.count))
    for candidate in [*([] if source.present is None else [source.present]), *wanted]:
        unknown = [path for path in candidate.sources if not profile.share_with(path)]
        if unknown:
            raise CommandFailed(f"no item has a value at {', '.join(unknown)}; the paths are {_some(profile.paths)}")
    requests, salt = log.requests, source.salt() if log.has_digests else None
    if salt is not None:
        requests = list(Undigester(profile, salt).requests(requests))
    requests = join_pages(requests, sampling=log.sampling, partitions=source.partitions)
    with counting_bars() as progress:
        bar = progress.add_task("Scoring keys", total=None)
        chosen: AdviseOptions = AdviseOptions(
            present=source.present,
            ru_per_second=source.ru_per_second if ru is None else ru,
            is_autoscale=source.is_autoscale and ru is None,
            wanted=wanted,
            sampling=log.sampling,
            has_digests=log.has_digests,
            rng=rng,
            on_progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
        return advise(profile, requests, chosen), requests


def _some(paths: Any) -> str:
    known = list(paths)
    return ", ".join(known[:12]) + (" …" if len(known) > 12 else "")


def _bad_text(count: int) -> str:
    return f"; {count:,} lines are not items" if count else ""


# --- output -----------------------------------------------------------------------------------------------------------


def _as_json(
    report: Report, source: Source, log: RequestLog, names: tuple[str, str], replayed: Replay | None
) -> dict[str, Any]:
    from asterism.cli.advise_table import command_of
    from asterism.cli.replay_report import describe_replay

    return {
        **report.to_json(),
        "command": command_of(report, names),
        "badItemLines": source.bad_items.count,
        "badRequestLines": log.bad.count,
        "replay": None if replayed is None else describe_replay(replayed),
    }


def _print(
    report: Report, source: Source, log: RequestLog, names: tuple[str, str], top: int, replayed: Replay | None
) -> None:
    from asterism.cli.advise_table import bad_line_sentences, print_report

    for sentence in bad_line_sentences(source.bad_items, log):
        typer.echo(sentence, err=True)
    print_report(report, names, top=top)
    if replayed is not None:
        from asterism.cli.replay_report import print_replay

        print_replay(replayed)


def _write_page(file: Path, report: Report, names: tuple[str, str], replayed: Replay | None) -> None:
    from asterism.cli.advise_page import page_of
    from asterism.cli.replay_report import replay_section

    section = "" if replayed is None else replay_section(replayed)
    try:
        file.write_text(page_of(report, names, replayed=section), encoding="utf-8")
    except OSError as problem:
        raise CommandFailed(f"{file} cannot be written: {problem.strerror}") from None
    typer.echo(f"Charts written to {file}", err=True)

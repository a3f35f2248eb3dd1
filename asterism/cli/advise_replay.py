"""The replay of `asterism advise`: candidates for a partition key, tried out on the real engine with its budgets."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from asterism.advisor.candidate_keys import CandidateKey
from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.keys.report import Report
from asterism.advisor.replay_calls import Client
from asterism.advisor.replay_figures import Measured
from asterism.advisor.replay_items import Item, ItemModel, choose_items
from asterism.advisor.replay_prediction import predict_replay
from asterism.advisor.replay_schedule import Bounds, Schedule, make_schedule
from asterism.cli.advise_sources import Source
from asterism.cli.failure import CommandFailed
from asterism.cli.progress import counting_bars
from asterism.cli.replay_report import Replay, ReplayedKey
from asterism.cli.replay_run import ReplayRun
from asterism.cli.scratch_containers import ScratchDatabase, Server, scratch_database

# As the server bounds them.
_LEASE_SECONDS_MAX: Final = 3600
_PARTITIONS_MAX: Final = 64
# For what takes longer than planned.
_LEASE_MARGIN_SECONDS: Final = 300
_LOADED_ITEMS_PER_SECOND: Final = 500
# The same choice of requests at every replay, so that two of them can be compared.
_SEED: Final = 16


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """The container whose workload was captured, and the bounds of the replay."""

    ru_per_second: int = 4000
    partitions: int = 1
    items_max: int = 5000
    requests_max: int = 5000
    # The fraction of the requests that the capture has.
    sampling: float = 1.0


@contextmanager
def throw_away_server() -> Iterator[Server]:
    """Run a server in memory for a replay without a live container. It ends with this process, however that ends."""
    from asterism.testing import Server as OwnServer
    from asterism.testing import ServerNotStarted

    try:
        with OwnServer() as own:
            yield Server(own.cosmos_endpoint, own.key)
    except ServerNotStarted as problem:
        raise CommandFailed(f"the server for the replay does not start: {problem}") from None


@dataclass(frozen=True, slots=True)
class ReplayBounds:
    """How many of the best keys are replayed, with how many items and requests at most."""

    keys: int
    items_max: int
    requests_max: int


def replay_advice(
    report: Report,
    requests: Sequence[CapturedRequest],
    source: Source,
    server: Server | None,
    *,
    bounds: ReplayBounds,
    sampling: float,
) -> Replay:
    """Replay the best keys of a report and the present one, on the server or, without one, on one of its own."""
    if source.present is None:
        raise CommandFailed("the replay must know which key the requests name; give it with --present-key /PATH")
    if not requests:
        raise CommandFailed("there are no requests to replay; capture some with `asterism capture start`")
    best = [each.candidate for each in report.ranked[: bounds.keys]]
    keys = best if source.present in best else [*best, source.present]
    settings = ReplaySettings(
        report.ru_per_second, report.partitions, bounds.items_max, bounds.requests_max, sampling=sampling
    )
    items = (item for item, _ in source.items(lambda _: None))
    with ExitStack() as stack:
        chosen = stack.enter_context(throw_away_server()) if server is None else server
        return replay_keys(chosen, keys, present=source.present, items=items, requests=requests, settings=settings)


def replay_keys(
    server: Server,
    keys: Sequence[CandidateKey],
    *,
    present: CandidateKey,
    items: Iterable[Mapping[str, Any]],
    requests: Sequence[CapturedRequest],
    settings: ReplaySettings,
) -> Replay:
    """Replay the requests under each of the keys, one after the other, in a scratch database that is deleted then."""
    partitions = min(max(settings.partitions, 1), _PARTITIONS_MAX)
    schedule = make_schedule(
        requests,
        ru_per_second=settings.ru_per_second,
        partitions=partitions,
        bounds=Bounds(settings.requests_max, settings.items_max),
        draw=random.Random(_SEED),
        sampling=settings.sampling,
    )
    chosen = [request for unit in schedule.units for request in unit]
    loaded = choose_items(items, chosen, present=present, items_max=settings.items_max)
    lease_seconds = _lease_seconds(schedule, len(loaded), len(keys))
    with (
        scratch_database(server, lease_seconds=lease_seconds, partitions=partitions) as database,
        counting_bars() as progress,
    ):
        trial = _Trial(database, present, loaded, schedule)
        replayed = []
        for number, key in enumerate(keys, start=1):
            title = f"{number} of {len(keys)}: {key.name}".replace("[", "\\[")
            bar = progress.add_task(title, total=len(loaded) + len(schedule.units))
            measured = trial.run(f"key-{number}", key, partial(progress.advance, bar))
            replayed.append(ReplayedKey(key, measured))
    predicted = predict_replay(keys, schedule, loaded, present=present, partitions=partitions, rng=random.Random(_SEED))
    return Replay(schedule, len(loaded), replayed, predicted)


@dataclass(frozen=True, slots=True)
class _Trial:
    """The parts that the replays under all keys share."""

    database: ScratchDatabase
    present: CandidateKey
    items: Sequence[Item]
    schedule: Schedule

    def run(self, name: str, key: CandidateKey, on_step: Callable[[], None]) -> Measured:
        ru = self.schedule.ru_per_second
        container = self.database.make_container(name, key.definition, self.items, ru_per_second=ru, on_item=on_step)
        client = Client(key, self.present, ItemModel(self.present, self.items))
        return ReplayRun(container, client, self.schedule, on_unit=lambda *_: on_step()).run()


def _lease_seconds(schedule: Schedule, items: int, keys: int) -> int:
    """Return twice what the replay should take, and a margin, up to what the server allows."""
    planned = keys * (schedule.seconds + items / _LOADED_ITEMS_PER_SECOND)
    return min(int(2 * planned) + _LEASE_MARGIN_SECONDS, _LEASE_SECONDS_MAX)

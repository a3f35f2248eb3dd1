"""The advisor's predictions beside a replay on the real engine: one workload at a time, several keys each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean

from asterism.advisor.candidate_keys import CandidateKey
from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.keys.advise import AdviseOptions, advise
from asterism.advisor.keys.assessment import Assessment
from asterism.advisor.keys.item_profile import ItemProfile
from asterism.advisor.keys.ranking import TIE_SHARE
from asterism.advisor.keys.report import Report
from asterism.advisor.replay_calls import Client
from asterism.advisor.replay_figures import Measured, Reply, error_of
from asterism.advisor.replay_items import Item, ItemModel, choose_items
from asterism.advisor.replay_schedule import Bounds, Schedule, Unit, make_schedule
from asterism.cli.replay_run import ReplayRun
from asterism.cli.scratch_containers import ScratchDatabase, Server, scratch_database
from asterism.values.json.text import dumps
from benchmarks.key_workloads import KeyWorkload

PARTITIONS = 5
# A new container has so many partitions for it.
RU_PER_SECOND = 6_000 * PARTITIONS
_LEASE_SECONDS = 900
_UNBOUNDED = Bounds(requests_max=1_000_000, items_max=1_000_000)


@dataclass(frozen=True)
class KeyFigures:
    """Of one key: RU/s used, and RU/s needed. The need is that of the busiest partition, by which the advisor ranks."""

    name: str
    predicted_use: float
    measured_use: float
    predicted_need: float
    measured_need: float
    # Problems that keep a key from working, which the replay shows in other figures.
    problems: tuple[str, ...]

    @property
    def use_error(self) -> float:
        return error_of(self.predicted_use, self.measured_use)

    @property
    def need_error(self) -> float:
        return error_of(self.predicted_need, self.measured_need)


@dataclass(frozen=True)
class Accuracy:
    """Of one workload: its keys, the first being the advisor's choice, and the choices of two rules of thumb."""

    workload: str
    keys: Sequence[KeyFigures]
    baselines: dict[str, str]

    @property
    def use_error(self) -> float:
        return mean(key.use_error for key in self.keys)

    @property
    def need_error(self) -> float:
        return mean(key.need_error for key in self.keys)

    @property
    def rank_correlation(self) -> float:
        return spearman([key.predicted_need for key in self.keys], [key.measured_need for key in self.keys])

    def excess(self, name: str) -> float:
        """Return by how much a key needs more than the best that was measured, of those without problems."""
        needs = {key.name: key.measured_need for key in self.keys}
        working = [key.measured_need for key in self.keys if not key.problems] or list(needs.values())
        return needs[name] / min(working) - 1

    @property
    def excess_of_choice(self) -> float:
        return self.excess(self.keys[0].name)


class Trial:
    """A workload on a server: recorded under the present key, advised on, and replayed under several."""

    def __init__(self, server: Server, workload: KeyWorkload) -> None:
        self._server = server
        self._workload = workload
        self._schedule = self._make_schedule(workload.requests)
        chosen = [request for unit in self._schedule.units for request in unit]
        self._items = choose_items(workload.items, chosen, present=workload.present, items_max=_UNBOUNDED.items_max)

    def _make_schedule(self, requests: Sequence[CapturedRequest]) -> Schedule:
        return make_schedule(
            requests, ru_per_second=RU_PER_SECOND, partitions=PARTITIONS, bounds=_UNBOUNDED, draw=random.Random(1)
        )

    def run(self) -> Accuracy:
        workload = self._workload
        with scratch_database(self._server, lease_seconds=_LEASE_SECONDS, partitions=PARTITIONS) as database:
            recorded, present = self._record(database)
            report = advised(workload, self._items, recorded)
            assessments = {each.candidate.name: each for each in report.ranked}
            assert report.best is not None, "every workload has candidates"
            names = [report.best.candidate.name, *report.baselines.values(), *(key.name for key in workload.keys)]
            found = {workload.present.name: present}
            for number, name in enumerate(dict.fromkeys(names)):
                if name not in found:
                    found[name] = self._measure(database, f"key-{number}", assessments[name].candidate)
        keys = [self._figures(assessments[name], found[name]) for name in dict.fromkeys(names)]
        return Accuracy(workload.name, keys, dict(report.baselines))

    def _record(self, database: ScratchDatabase) -> tuple[list[CapturedRequest], Measured]:
        """Return the requests with what they cost under the present key, as a capture has them, and the figures."""
        recorded: list[CapturedRequest] = []

        def on_unit(unit: Unit, replies: Sequence[Reply]) -> None:
            recorded.extend(with_outcome(request, replies, operations=len(unit)) for request in unit)

        run = self._run(database, "present", self._workload.present)
        run.on_unit = on_unit
        measured = run.run()
        recorded.sort(key=lambda request: request.at)
        return recorded, measured

    def _measure(self, database: ScratchDatabase, name: str, key: CandidateKey) -> Measured:
        return self._run(database, name, key).run()

    def _run(self, database: ScratchDatabase, name: str, key: CandidateKey) -> ReplayRun:
        container = database.make_container(name, key.definition, self._items, ru_per_second=RU_PER_SECOND)
        client = Client(key, self._workload.present, ItemModel(self._workload.present, self._items))
        return ReplayRun(container, client, self._schedule, is_paced=False)

    def _figures(self, assessment: Assessment, measured: Measured) -> KeyFigures:
        predicted = assessment.predicted
        return KeyFigures(
            assessment.candidate.name,
            predicted.ru_per_second,
            measured.ru_per_second(self._schedule),
            assessment.ru_ranked,
            replace(assessment, predicted=measured.as_prediction(self._schedule)).ru_ranked,
            tuple(problem.kind for problem in assessment.problems),
        )


def server_on(port: int, key: str) -> Server:
    return Server(f"http://127.0.0.1:{port}", key)


def with_outcome(request: CapturedRequest, replies: Sequence[Reply], *, operations: int) -> CapturedRequest:
    """Return a request with what the server has answered."""
    charge = round(sum(reply.charge for reply in replies) / operations, 2)
    recorded = replace(request, charge=charge, status=replies[-1].status)
    if request.operation == "query":
        results, loaded = sum(reply.results for reply in replies), sum(reply.loaded for reply in replies)
        recorded = replace(recorded, results=results, loaded=loaded, partitions=len(replies))
    return recorded


def advised(workload: KeyWorkload, items: Sequence[Item], requests: Sequence[CapturedRequest]) -> Report:
    chance = random.Random(1)
    profile = ItemProfile(chance)
    for item in items:
        profile.feed(item, len(dumps(item)))
    options = AdviseOptions(
        present=workload.present, ru_per_second=RU_PER_SECOND, wanted=list(workload.keys), rng=chance
    )
    return advise(profile, requests, options)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the rank correlation. Values that the advisor takes for equal share the mean of their ranks."""
    ranks = [_ranks(first), _ranks(second)]
    middle = (len(first) + 1) / 2
    deviations = [[rank - middle for rank in each] for each in ranks]
    product = sum(left * right for left, right in zip(*deviations, strict=True))
    scale = (sum(each**2 for each in deviations[0]) * sum(each**2 for each in deviations[1])) ** 0.5
    return product / scale if scale else 1.0


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    ranks: dict[float, float] = {}
    start = 0
    while start < len(ordered):
        end = start + 1
        while end < len(ordered) and ordered[end] <= ordered[start] * (1 + TIE_SHARE):
            end += 1
        ranks |= dict.fromkeys(ordered[start:end], (start + 1 + end) / 2)
        start = end
    return [ranks[value] for value in values]

"""Predictions of the advisor for a replay: for its requests at its times, its items, and its throughput.

An advice judges all requests of a capture; a replay has a part of them, closer together. To compare the two, the same
rules are applied to what is replayed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from asterism.advisor.candidate_keys import CandidateKey
from asterism.advisor.keys.assessment import Prediction
from asterism.advisor.keys.demand import Demand, demands_of
from asterism.advisor.keys.item_profile import ItemProfile
from asterism.advisor.keys.key_table import KeyTable
from asterism.advisor.keys.load import LoadMaker
from asterism.advisor.keys.sample_index import SampleIndex
from asterism.advisor.keys.throttling import throttled_share
from asterism.advisor.replay_items import Item
from asterism.advisor.replay_schedule import Schedule
from asterism.values.json.text import dumps


def predict_replay(
    keys: Sequence[CandidateKey],
    schedule: Schedule,
    items: Sequence[Item],
    *,
    present: CandidateKey,
    partitions: int,
    rng: random.Random,
) -> Mapping[str, Prediction]:
    """Return the predictions by the names of the keys."""
    profile = ItemProfile(rng)
    for item in items:
        profile.feed(item, len(dumps(item)))
    in_replay = [
        replace(request, at=due)
        for unit, due in zip(schedule.units, schedule.due_seconds, strict=True)
        for request in unit
    ]
    demands = demands_of(in_replay, SampleIndex(profile), present)
    return {key.name: _predict(key, demands, profile, schedule, partitions, rng) for key in keys}


def _predict(
    key: CandidateKey,
    demands: Sequence[Demand],
    profile: ItemProfile,
    schedule: Schedule,
    partitions: int,
    rng: random.Random,
) -> Prediction:
    table = KeyTable(profile, key, rng.randrange, rows_max=max(profile.items, 1))
    load = LoadMaker(key, table, partitions=partitions, draw=rng.randrange).make(demands)
    by_partition = load.ru_by_partition()
    return Prediction(
        ru_by_kind={kind: ru / load.requests_by_kind[kind] for kind, ru in load.ru_by_kind.items()},
        requests_by_kind=dict(load.requests_by_kind),
        ru_per_second=load.total_ru / schedule.kept / schedule.captured_seconds,
        ru_share_by_partition=tuple(ru / (sum(by_partition) or 1.0) for ru in by_partition),
        throttled_share=throttled_share(load, ru_per_second=schedule.ru_per_second, burst=False),
        throttled_at_ru=schedule.ru_per_second,
    )

"""The outcome of an advice, and its JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from asterism.advisor.keys.assessment import Assessment
from asterism.advisor.keys.candidate import CandidateKey
from asterism.advisor.keys.key_table import KeyTable
from asterism.values.undefined import UNDEFINED


@dataclass(frozen=True, slots=True)
class Report:
    """The candidates, best first. `partitions` and `ru_per_second` are what all were judged at."""

    ranked: tuple[Assessment, ...]
    present: Assessment | None
    items: int
    sampled_items: int
    total_bytes: int
    requests: int
    span_seconds: float
    partitions: int
    ru_per_second: int
    warnings: tuple[str, ...] = ()
    # Rules of thumb for comparison: name -> the candidate that it takes.
    baselines: Mapping[str, str] = field(default_factory=dict)
    # By the name of the candidate, for charts.
    tables: Mapping[str, KeyTable] = field(default_factory=dict, repr=False)

    @property
    def best(self) -> Assessment | None:
        return self.ranked[0] if self.ranked else None

    def to_json(self) -> dict[str, Any]:
        return {
            "items": self.items,
            "sampledItems": self.sampled_items,
            "bytes": self.total_bytes,
            "requests": self.requests,
            "spanSeconds": round(self.span_seconds, 3),
            "partitions": self.partitions,
            "ruPerSecond": self.ru_per_second,
            "present": None if self.present is None else self.present.candidate.name,
            "warnings": list(self.warnings),
            "baselines": dict(self.baselines),
            "candidates": [_assessment_json(rank, each) for rank, each in enumerate(self.ranked, start=1)],
        }


def _assessment_json(rank: int, assessment: Assessment) -> dict[str, Any]:
    storage, predicted, routes, windows = (
        assessment.storage,
        assessment.predicted,
        assessment.routes,
        assessment.windows,
    )
    return {
        "rank": rank,
        "name": assessment.candidate.name,
        "definition": dict(assessment.candidate.definition),
        "isPresent": assessment.is_present,
        "why": assessment.why,
        "problems": [{"kind": problem.kind, "text": problem.text} for problem in assessment.problems],
        "isEstimate": assessment.is_estimate,
        "cardinality": storage.cardinality,
        "largestKey": [{} if value is UNDEFINED else value for value in storage.largest_key],
        "largestBytes": round(storage.largest_bytes),
        "largestShare": round(storage.largest_share, 6),
        "topTenShare": round(storage.top_ten_share, 6),
        "gini": round(storage.gini, 4),
        "absentShare": round(storage.absent_share, 6),
        "growthBytesPerSecond": round(storage.growth_bytes_per_second, 1),
        "fullAfterSeconds": None if storage.full_after_seconds is None else round(storage.full_after_seconds),
        "routes": {
            "point": round(routes.point, 4),
            "single": round(routes.single, 4),
            "several": round(routes.several, 4),
            "fanOut": round(routes.fan_out, 4),
        },
        "ruByKind": {kind: round(ru, 3) for kind, ru in predicted.ru_by_kind.items()},
        "ruPerSecond": round(predicted.ru_per_second, 2),
        "ruNeeded": None if predicted.ru_needed is None else round(predicted.ru_needed, 1),
        "ruRanked": None if predicted.ru_needed is None else round(assessment.ru_ranked, 1),
        "ruInBusiestWindow": round(predicted.ru_in_busiest_window, 1),
        "throttledShare": round(predicted.throttled_share, 6),
        "throttledAtRu": predicted.throttled_at_ru,
        "ruShareByPartition": [round(share, 4) for share in predicted.ru_share_by_partition],
        "partitions": assessment.partitions,
        "windowSeconds": windows.seconds,
        "hottestPartition": _skew_json(windows.physical),
        "hottestKey": _skew_json(windows.logical),
        "brokenBatchShare": round(assessment.broken_batch_share, 4),
        "isUnique": assessment.is_unique,
        "changedPaths": list(assessment.changed_paths),
    }


def _skew_json(skew: Any) -> dict[str, float]:
    return {"mean": round(skew.mean, 4), "p95": round(skew.p95, 4), "worst": round(skew.worst, 4)}


def migration_command(database: str, container: str, candidate: CandidateKey) -> str:
    """Return the command that copies a container to one with this key."""
    words = ["asterism", "rekey", database, container, "--to", f"{container}-rekeyed"]
    for path in candidate.definition["paths"]:
        words += ["--path", path]
    rules = candidate.definition.get("synthetic")
    if rules:
        words += ["--synthetic", json.dumps(rules, separators=(",", ":"), ensure_ascii=False)]
    return shlex.join(words)

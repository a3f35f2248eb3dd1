"""A job that gives a collection another shard key, as the settings of its database's home keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from asterism.models.collections.results import RekeyProblem
from asterism.throughput.budgets import Autoscale, Manual, Throughput


class CollectionRekeyPhase(StrEnum):
    ASKED = "asked"
    # The target is there, and the position is noted from which the source's changes are followed.
    COPYING = "copying"
    # The target has taken the source's place. Readers that began before go on with the source.
    SWITCHED = "switched"
    # The source is being removed.
    REMOVING = "removing"
    # Nothing was switched, and the target is gone. The record stays until the client has its answer.
    FAILED = "failed"


class CollectionRekeyStep(StrEnum):
    """The steps of a job. A fault test stops the process at each of them."""

    ASKED = "the job is recorded"
    TARGET_MADE = "the target is there"
    PREPARED = "the position is noted from which changes are followed"
    SLICE_COPIED = "some documents are copied"
    COPIED = "all documents are copied"
    FROZEN = "writers wait"
    CAUGHT_UP = "all changes are followed"
    CLOSED = "readers wait"
    SWITCHED = "the target has taken the source's place"
    REMOVING = "the source is to be removed"


@dataclass(frozen=True, slots=True)
class CollectionRekeyJob:
    id: str
    name: str
    # The keyspaces; "" is the home.
    source_key: str
    target_key: str
    source_number: int
    # The record of the collection as it will be.
    target_text: str
    throughput: Throughput | None = None
    phase: CollectionRekeyPhase = CollectionRekeyPhase.ASKED
    # How far the source's changes are followed when the job is resumed.
    position: str = ""
    switched_at_wall_seconds: int = 0
    # Of a job that has failed.
    problem: RekeyProblem | None = None
    reason: str = ""

    def to_settings(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "source": self.source_key,
            "target": self.target_key,
            "number": self.source_number,
            "record": self.target_text,
            "throughput": _pack_throughput(self.throughput),
            "phase": self.phase.value,
            "position": self.position,
            "switchedAt": self.switched_at_wall_seconds,
            "problem": None if self.problem is None else self.problem.value,
            "reason": self.reason,
        }

    @classmethod
    def from_settings(cls, job_id: str, stored: Mapping[str, Any]) -> CollectionRekeyJob:
        return cls(
            job_id,
            stored["name"],
            stored["source"],
            stored["target"],
            stored["number"],
            stored["record"],
            _unpack_throughput(stored["throughput"]),
            CollectionRekeyPhase(stored["phase"]),
            stored["position"],
            stored["switchedAt"],
            None if stored["problem"] is None else RekeyProblem(stored["problem"]),
            stored["reason"],
        )

    def failed(self, problem: RekeyProblem, reason: str) -> CollectionRekeyJob:
        return replace(self, phase=CollectionRekeyPhase.FAILED, problem=problem, reason=reason)

    @property
    def is_before_switch(self) -> bool:
        return self.phase in (CollectionRekeyPhase.ASKED, CollectionRekeyPhase.COPYING)


def _pack_throughput(throughput: Throughput | None) -> dict[str, int] | None:
    match throughput:
        case Manual(ru_per_second):
            return {"manual": ru_per_second}
        case Autoscale(max_ru_per_second):
            return {"autoscale": max_ru_per_second}
        case None:
            return None


def _unpack_throughput(stored: Mapping[str, int] | None) -> Throughput | None:
    if stored is None:
        return None
    return Manual(stored["manual"]) if "manual" in stored else Autoscale(stored["autoscale"])

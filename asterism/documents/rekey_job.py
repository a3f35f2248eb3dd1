"""A container being copied into one with another partition key: how far that is, as the catalog keeps it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, cast

from asterism.values.json_text import dumps, loads_stored


class RekeyPhase(StrEnum):
    # The source is made to keep its versions, and the place in them is noted from which they will be followed.
    PREPARING = "preparing"
    COPYING = "copying"
    FOLLOWING = "following"
    # The operator has switched: both were equal, the source refuses writes, and the target is on its own.
    SWITCHED = "switched"
    # Too much cannot be copied; what is there stays, for the operator to look at.
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in (RekeyPhase.SWITCHED, RekeyPhase.FAILED)


class RekeyStep(StrEnum):
    """What a job has just done, for those who watch it closely."""

    TARGET_MADE = "the target and the job's record are there"
    SCRIPTS_COPIED = "the target has the source's scripts"
    VERSIONS_KEPT = "the source keeps its versions"
    PREPARED = "the place is noted from which changes are followed"
    PIECE_COPIED = "some items are copied"
    COPIED = "all items are copied"
    CHANGES_FOLLOWED = "some changes are followed"
    SWITCH_ASKED = "the operator's word is recorded"
    FENCED = "the source refuses writes"
    QUIET = "the writes that were let in are over"
    COMPARED = "both are known to be equal"
    SWITCHED = "the switch is recorded"
    RESTORED = "the source keeps its versions no longer than before"


@dataclass(frozen=True, slots=True)
class Uncopied:
    """An item of the source that cannot be in the target, and why."""

    id: str
    partition_key: list[Any]
    reason: str


@dataclass(slots=True)
class RekeyJob:
    number: int
    source_rid: str
    target_rid: str
    phase: RekeyPhase = RekeyPhase.PREPARING
    # Where on the source's hash line the copying is.
    copied_up_to: str = ""
    # Up to where the source's versions were followed, and when that was.
    feed_position: str = ""
    followed_at_wall_seconds: int = 0
    # The retention that the source had, in minutes, while it has the job's.
    retention_before: int | None = None
    is_switching: bool = False
    # Whether deletes may have been missed, so that the target is to be looked through too.
    must_sweep: bool = False
    items_copied: int = 0
    changes_followed: int = 0
    source_items: int = 0
    target_items: int = 0
    # By the items' references, in hex.
    uncopied: dict[str, Uncopied] = field(default_factory=dict)
    # These are told to other processes, and not kept over a restart.
    trouble: str = ""
    # Whether no more than a page of changes is left to follow.
    is_caught_up: bool = False
    # Whether something changed since the uncopied items were looked at.
    is_changed: bool = True

    def to_bytes(self) -> bytes:
        told = asdict(self)
        del told["is_changed"]
        return dumps({**told, "phase": self.phase.value})

    @classmethod
    def from_bytes(cls, stored: bytes) -> RekeyJob:
        told = cast("dict[str, Any]", loads_stored(stored))
        uncopied = {reference: Uncopied(**one) for reference, one in told["uncopied"].items()}
        return cls(**{**told, "phase": RekeyPhase(told["phase"]), "uncopied": uncopied})

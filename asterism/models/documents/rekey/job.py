"""The catalog's record of a container that is copied into one with another partition key."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from asterism.values.records import Form, StoredRecord


class RekeyPhase(StrEnum):
    # The source is made to keep its versions, and the position is noted from which they will be followed.
    PREPARING = "preparing"
    COPYING = "copying"
    FOLLOWING = "following"
    # The operator has switched: both were equal, the source refuses writes, and the target is on its own.
    SWITCHED = "switched"
    # Too much cannot be copied; what was copied stays, for the operator to inspect.
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in (RekeyPhase.SWITCHED, RekeyPhase.FAILED)


class RekeyStep(StrEnum):
    """The steps of a job. A fault test stops the process at each of them."""

    TARGET_MADE = "the target and the job's record are there"
    SCRIPTS_COPIED = "the target has the source's scripts"
    VERSIONS_KEPT = "the source keeps its versions"
    PREPARED = "the position is noted from which changes are followed"
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


def _pack_uncopied(items: dict[str, Uncopied]) -> dict[str, Any]:
    return {reference: asdict(item) for reference, item in items.items()}


def _unpack_uncopied(stored: dict[str, Any]) -> dict[str, Uncopied]:
    return {reference: Uncopied(**item) for reference, item in stored.items()}


@dataclass(slots=True)
class RekeyJob(StoredRecord):
    NOT_STORED: ClassVar = frozenset({"is_changed"})
    FORMS: ClassVar = {"uncopied": Form(_pack_uncopied, _unpack_uncopied)}

    number: int
    source_rid: str
    target_rid: str
    phase: RekeyPhase = RekeyPhase.PREPARING
    # How far the copy has come on the source's hash line.
    copied_up_to: str = ""
    # How far the source's versions were followed, and when that was.
    feed_position: str = ""
    followed_at_wall_seconds: int = 0
    # The retention that the source had, in minutes, while it has the job's.
    retention_before: int | None = None
    is_switching: bool = False
    # True if deletes may have been missed, so that the target is to be walked too.
    must_sweep: bool = False
    items_copied: int = 0
    changes_followed: int = 0
    source_items: int = 0
    target_items: int = 0
    # By the items' references, in hex.
    uncopied: dict[str, Uncopied] = field(default_factory=dict)
    # For other processes; not kept over a restart.
    trouble: str = ""
    # True if no more than a page of changes is left to follow.
    is_caught_up: bool = False
    # True if something changed since the uncopied items were tried again.
    is_changed: bool = True

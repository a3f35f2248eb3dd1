"""The catalog's record of a logical partition that is moved into a container of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from asterism.values.records import StoredRecord


class PromotionPhase(StrEnum):
    # The source is made to keep its versions, and the position is noted from which they will be followed.
    PREPARING = "preparing"
    COPYING = "copying"
    FOLLOWING = "following"
    # Requests are forwarded, and the old copies are deleted.
    CLEANING = "cleaning"
    # Requests are forwarded, until the operator ends that.
    FORWARDING = "forwarding"


class PromotionStep(StrEnum):
    """The steps of a job that other copies do not have (`rekey.job.RekeyStep`). A fault test stops the process at each
    of them."""

    TARGET_FENCED = "no earlier leader writes to the target"
    HANDED_OVER = "reads go to the target"
    FORWARDED = "writes go to the target"
    NOTED = "the job's record says so"
    CLEANED = "the old copies are gone"


@dataclass(slots=True)
class PromotionJob(StoredRecord):
    NOT_STORED: ClassVar = frozenset({"is_unequal"})

    number: int
    source_rid: str
    target_rid: str
    # The partition key, or the prefix of a hierarchical one, with {} for an absent value.
    key: list[Any]
    phase: PromotionPhase = PromotionPhase.PREPARING
    copied_up_to: str = ""
    feed_position: str = ""
    followed_at_wall_seconds: int = 0
    retention_before: int | None = None
    must_sweep: bool = False
    items_copied: int = 0
    changes_followed: int = 0
    # The items whose unique keys others still hold in the target: reference -> point, both in hex.
    deferred: dict[str, str] = field(default_factory=dict)
    trouble: str = ""
    is_caught_up: bool = False
    # True if the sizes differed when the last hand-over was given up.
    is_unequal: bool = False

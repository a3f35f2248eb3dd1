"""Conditions on a blob, which are checked in the same decision as the call that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.leases import Lease, check_lease_for_read, check_lease_for_write
from asterism.values.ticks import TICKS_PER_SECOND

# An etag (the ticks that it is made from), or any. An etag that is not ours is -1, which no blob has.
ETagCondition = int | Literal["*"]
UNKNOWN_ETAG: Final = -1


class TagCondition(Protocol):
    """An expression on the tags of a blob."""

    def matches(self, tags: Mapping[str, str], /) -> bool: ...


class Conditioned(Protocol):
    """The subject of conditions: a blob or a container. An absent one is None."""

    @property
    def etag(self) -> int: ...

    @property
    def modified_at(self) -> int: ...

    @property
    def lease(self) -> Lease | None: ...


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a call. `modified_since` and `unmodified_since` are whole seconds since 1970, as in headers."""

    if_match: tuple[ETagCondition, ...] | None = None
    if_none_match: tuple[ETagCondition, ...] | None = None
    modified_since: int | None = None
    unmodified_since: int | None = None
    tags: TagCondition | None = None
    lease_id: str | None = None

    @property
    def has_time_or_etag(self) -> bool:
        return any(
            condition is not None
            for condition in (self.if_match, self.if_none_match, self.modified_since, self.unmodified_since)
        )


NO_CONDITIONS: Final = Conditions()


def check_read(conditions: Conditions, found: Conditioned, now: int, tags: Mapping[str, str] | None = None) -> None:
    """Refuse a read of an existing blob or container: NOT_MODIFIED if the caller has it already."""
    if not _is_as_wanted(conditions, found) or not _has_tags(conditions, tags):
        raise BlobRefused(BlobFailure.CONDITION_NOT_MET)
    if not _is_news(conditions, found):
        raise BlobRefused(BlobFailure.NOT_MODIFIED)
    check_lease_for_read(found.lease, conditions.lease_id, now)


def check_write(
    conditions: Conditions,
    found: Conditioned | None,
    now: int,
    tags: Mapping[str, str] | None = None,
    *,
    needs_lease: bool = True,
) -> None:
    """Refuse a write whose conditions do not hold; `found` is None if the blob does not exist. Without `needs_lease`, a
    write that a lease does not concern."""
    if found is None:
        # The time of what does not exist meets every condition.
        if conditions.if_match is not None or conditions.tags is not None:
            raise BlobRefused(BlobFailure.CONDITION_NOT_MET)
        if conditions.lease_id is not None:
            raise BlobRefused(BlobFailure.LEASE_NOT_PRESENT)
        return
    if conditions is not NO_CONDITIONS:
        if conditions.if_none_match is not None and "*" in conditions.if_none_match:
            raise BlobRefused(BlobFailure.EXISTS)
        if not (_is_as_wanted(conditions, found) and _is_news(conditions, found) and _has_tags(conditions, tags)):
            raise BlobRefused(BlobFailure.CONDITION_NOT_MET)
    if needs_lease:
        check_lease_for_write(found.lease, conditions.lease_id, now)


def _is_as_wanted(conditions: Conditions, found: Conditioned) -> bool:
    # If-Match outweighs the time, as in RFC 9110.
    if conditions.if_match is not None:
        return "*" in conditions.if_match or found.etag in conditions.if_match
    until = conditions.unmodified_since
    return until is None or found.modified_at // TICKS_PER_SECOND <= until


def _is_news(conditions: Conditions, found: Conditioned) -> bool:
    if conditions.if_none_match is not None:
        return "*" not in conditions.if_none_match and found.etag not in conditions.if_none_match
    since = conditions.modified_since
    return since is None or found.modified_at // TICKS_PER_SECOND > since


def _has_tags(conditions: Conditions, tags: Mapping[str, str] | None) -> bool:
    return conditions.tags is None or conditions.tags.matches(tags or {})

"""The wishes of an account for its blobs: settings that the door reads from its own options and service properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from asterism.values.ticks import TICKS_PER_SECOND

_DAY_TICKS: Final = 24 * 3600 * TICKS_PER_SECOND


@dataclass(frozen=True, slots=True)
class AccountRules:
    # An overwritten or deleted blob becomes a previous version.
    versioning: bool = False
    # Soft delete: days for which deleted blobs, snapshots and versions can be restored; None deletes at once.
    blob_retention_days: int | None = None
    # The same for containers.
    container_retention_days: int | None = None
    # Soft-deleted snapshots and versions may be removed before their time.
    permanent_delete: bool = False

    def blob_retained_until(self, now: int) -> int | None:
        return None if self.blob_retention_days is None else now + self.blob_retention_days * _DAY_TICKS

    def container_retained_until(self, now: int) -> int | None:
        return None if self.container_retention_days is None else now + self.container_retention_days * _DAY_TICKS


NO_RULES: Final = AccountRules()

"""The recent use of a keyspace and of its partitions, from the history that the process keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from asterism.apis.admin.services import AdminServices
from asterism.keyspaces.routing.keyspace import Keyspace

MINUTE_SECONDS: Final = 60.0
# After this many keyspaces other requests get their turn.
_KEYSPACES_PER_TURN: Final = 50


@dataclass(frozen=True, slots=True)
class RangeUse:
    """The use of a partition range; the peak is that of the busiest step."""

    request_units: float = 0.0
    throttled: int = 0
    peak_ru_per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class RecentUse:
    """The use of a keyspace in the last seconds, by the ids of its ranges; those that are gone are among them."""

    seconds: float
    by_range: dict[int, RangeUse]

    @property
    def ru_per_second(self) -> float:
        return sum(use.request_units for use in self.by_range.values()) / self.seconds

    @property
    def throttled(self) -> int:
        return sum(use.throttled for use in self.by_range.values())


def recent_use(
    services: AdminServices, keyspace: Keyspace, *, seconds: float = MINUTE_SECONDS, steps_max: int = 1
) -> RecentUse | None:
    """Return the use in the last seconds, with peaks of so many steps; None without a history."""
    if not services.history.history_seconds:
        return None
    history = services.history.of_keyspace(keyspace, seconds=seconds, points_max=steps_max)
    return RecentUse(
        history.ended_at - history.began_at,
        {
            range_id: RangeUse(
                sum(steps.request_units),
                sum(steps.throttled),
                max(steps.request_units) / history.step_seconds,
            )
            for range_id, steps in history.by_range.items()
        },
    )


async def recent_uses(services: AdminServices, keyspaces: Iterable[Keyspace]) -> dict[bytes, RecentUse | None]:
    """Return the use of many keyspaces in the last minute, by their resource ids."""
    uses: dict[bytes, RecentUse | None] = {}
    for place, keyspace in enumerate(keyspaces, start=1):
        uses[keyspace.record.rid] = recent_use(services, keyspace)
        if place % _KEYSPACES_PER_TURN == 0:
            await asyncio.sleep(0)
    return uses

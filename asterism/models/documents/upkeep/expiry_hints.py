"""Messages to the process that removes expired items: when those are due that other processes have written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.models.documents.upkeep.expiry_schedule import ExpirySchedule

# A hint is reported for this long after it fell due: by then every process that may lead has heard of it.
_REPORTED_SECONDS = 10


class ExpiryHints:
    """Reports to other processes when the items written here are due. A `Presence` of `Coordination`."""

    is_busy = False

    def __init__(
        self, schedule: ExpirySchedule, *, leads: Callable[[], bool], wall_seconds: Callable[[], float]
    ) -> None:
        self._schedule = schedule
        self._leads = leads
        self._wall_seconds = wall_seconds
        self._heard: dict[tuple[int, str], int] = {}

    def report(self) -> Mapping[str, Any]:
        if self._leads():
            return {}
        self._schedule.take_due(now=self._wall_seconds() - _REPORTED_SECONDS)
        return {"due": {rid.hex(): due_at for rid, due_at in self._schedule.due_at.items()}}

    def hear(self, reports: list[Mapping[str, Any]]) -> None:
        heard: dict[tuple[int, str], int] = {}
        for index, report in enumerate(reports):
            for rid, due_at in report.get("due", {}).items():
                heard[index, rid] = due_at
                if self._leads() and self._heard.get((index, rid)) != due_at:
                    self._schedule.notice(bytes.fromhex(rid), due_at)
        self._heard = heard if self._leads() else {}

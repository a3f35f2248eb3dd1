"""How the process that removes expired items hears when those are due that other processes have written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.documents.expiry_schedule import ExpirySchedule

# A hint is told for this long after it fell due: by then every process that may lead has heard of it.
_TOLD_SECONDS = 10


class ExpiryHints:
    """Tells the others what is due next among the items written here. A `Presence` of `Coordination`."""

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
        self._schedule.take_due(now=self._wall_seconds() - _TOLD_SECONDS)
        return {"due": {rid.hex(): due_at for rid, due_at in self._schedule.due_at.items()}}

    def hear(self, reports: list[Mapping[str, Any]]) -> None:
        heard: dict[tuple[int, str], int] = {}
        for place, report in enumerate(reports):
            for rid, due_at in report.get("due", {}).items():
                heard[place, rid] = due_at
                if self._leads() and self._heard.get((place, rid)) != due_at:
                    self._schedule.notice(bytes.fromhex(rid), due_at)
        self._heard = heard if self._leads() else {}

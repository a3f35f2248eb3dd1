"""What all processes together have served: each counts for itself, and tells the others when one of them is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

from asterism.keyspaces.catalog import Catalog
from asterism.keyspaces.keyspace import Keyspace
from asterism.metrics import PartitionUsage

# A process that does not answer within this has ended, or its numbers can wait.
_ANSWER_SECONDS_MAX = 3.0
# Of each partition's hottest keys.
_HOTTEST_COUNT = 10

Usage = dict[int, PartitionUsage]


class UsageGathering:
    """Asks the others and answers them. A `Presence` of `Coordination`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._numbers = count(1)
        # What this process has asked and who has answered; what it is asked, by whom.
        self._asks: dict[str, tuple[str, dict[str, Mapping[str, Any]]]] = {}
        self._asked: dict[str, str] = {}
        self._others = 0
        # Called when the others should hear of this process soon.
        self.on_news: Callable[[], None] | None = None

    # --- in this process --------------------------------------------------------------------------------------------

    async def of_keyspace(self, keyspace: Keyspace) -> Usage:
        return (await self._gather([keyspace], keyspace.record.rid.hex()))[keyspace.record.rid]

    async def of_all(self) -> dict[bytes, Usage]:
        return await self._gather(self._catalog.keyspaces.values(), "")

    async def _gather(self, keyspaces: Iterable[Keyspace], rid_text: str) -> dict[bytes, Usage]:
        total = {keyspace.record.rid: _copy(keyspace.usage) for keyspace in keyspaces}
        for told in await self._ask(rid_text):
            for name, numbers in told.items():
                rid_hex, _, range_id = name.partition("/")
                usage = total.get(bytes.fromhex(rid_hex))
                if usage is not None:
                    _add(usage.setdefault(int(range_id), PartitionUsage()), numbers)
        return total

    async def _ask(self, rid_text: str) -> list[Mapping[str, Any]]:
        if not self._catalog.is_shared or not self._others:
            return []
        tag = f"{self._catalog.boot_number}.{next(self._numbers)}"
        answers: dict[str, Mapping[str, Any]] = {}
        self._asks[tag] = (rid_text, answers)
        try:
            if self.on_news is not None:
                self.on_news()
            loop = asyncio.get_running_loop()
            give_up_at = loop.time() + _ANSWER_SECONDS_MAX
            while len(answers) < self._others and loop.time() < give_up_at:
                await asyncio.sleep(0.02)
        finally:
            del self._asks[tag]
        return list(answers.values())

    # --- among the others -------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return bool(self._asks or self._asked)

    def report(self) -> Mapping[str, Any]:
        if not self.is_busy:
            return {}
        return {
            "asks": {tag: rid_text for tag, (rid_text, _) in self._asks.items()},
            "usage": {tag: self._own(rid_text) for tag, rid_text in self._asked.items()},
        }

    def hear(self, reports: list[Mapping[str, Any]]) -> None:
        self._others = len(reports)
        self._asked = {tag: rid for report in reports for tag, rid in report.get("asks", {}).items()}
        for report in reports:
            for tag, told in report.get("usage", {}).items():
                if tag in self._asks:
                    self._asks[tag][1][report["name"]] = told

    def _own(self, rid_text: str) -> Mapping[str, Any]:
        if rid_text:
            found = self._catalog.keyspaces.get(bytes.fromhex(rid_text))
            keyspaces = [] if found is None else [found]
        else:
            keyspaces = list(self._catalog.keyspaces.values())
        return {
            f"{keyspace.record.rid.hex()}/{range_id}": _numbers(usage)
            for keyspace in keyspaces
            for range_id, usage in keyspace.usage.items()
        }


def _numbers(usage: PartitionUsage) -> list[Any]:
    hottest = {key.hex(): request_units for key, request_units in usage.hottest.standing_out(_HOTTEST_COUNT)}
    recent = [(key.hex(), request_units) for key, request_units in usage.recent]
    return [usage.requests, usage.throttled, usage.request_units, hottest, recent]


def _add(usage: PartitionUsage, numbers: list[Any]) -> None:
    requests, throttled, request_units, hottest, recent = numbers
    usage.requests += requests
    usage.throttled += throttled
    usage.request_units += request_units
    for key, hot_units in hottest.items():
        usage.hottest.add(bytes.fromhex(key), hot_units)
    usage.recent.extend((bytes.fromhex(key), recent_units) for key, recent_units in recent)


def _copy(usage: Usage) -> Usage:
    copied: Usage = {}
    for range_id, one in usage.items():
        _add(copied.setdefault(range_id, PartitionUsage()), _numbers(one))
    return copied

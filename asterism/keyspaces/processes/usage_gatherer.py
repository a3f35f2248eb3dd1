"""The work of all processes together: each counts for itself, and reports to the others when they ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.metrics import PartitionUsage, RequestCounts, WorkCounts

# A process that does not answer within this has ended, or its numbers can wait.
_ANSWER_SECONDS_MAX = 3.0
# Of each partition's hottest keys.
_HOTTEST_COUNT = 10

Usage = dict[int, PartitionUsage]

# The question about all keyspaces, in the place where others name one.
_ALL = ""


@dataclass(frozen=True, slots=True)
class Served:
    """The work of all processes: of each keyspace, by its resource id, of the doors, and behind them."""

    keyspaces: dict[bytes, Usage]
    requests: RequestCounts
    work: WorkCounts


@dataclass(slots=True)
class _Question:
    """A question of this process to the others, and the answers so far, by the name of the process."""

    rid_text: str
    usage: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    requests: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    work: dict[str, Mapping[str, Any]] = field(default_factory=dict)


class UsageGatherer:
    """Asks the others and answers them. A `Presence` of `Coordination`."""

    def __init__(self, catalog: Catalog, own_work: Callable[[], WorkCounts] = WorkCounts) -> None:
        """`own_work` returns the work of this process behind its requests."""
        self._catalog = catalog
        self._own_work = own_work
        self._numbers = count(1)
        # The requests that the doors of this process have answered.
        self.requests = RequestCounts()
        # Questions of this process, and those of the others: the resource ids that they name.
        self._asks: dict[str, _Question] = {}
        self._asked: dict[str, str] = {}
        self._others = 0
        # Called when the others should hear of this process soon.
        self.on_news: Callable[[], None] | None = None

    # --- in this process --------------------------------------------------------------------------------------------

    async def of_keyspace(self, keyspace: Keyspace) -> Usage:
        question = await self._ask(keyspace.record.rid.hex())
        return _sum_usage([keyspace], question)[keyspace.record.rid]

    async def of_all(self) -> Served:
        question = await self._ask(_ALL)
        requests = RequestCounts()
        for counts in (self.requests.to_json(), *question.requests.values()):
            requests.add_json(counts)
        work = WorkCounts()
        for counts in (self._own_work().to_json(), *question.work.values()):
            work.add_json(counts)
        return Served(_sum_usage(self._catalog.keyspaces.values(), question), requests, work)

    async def _ask(self, rid_text: str) -> _Question:
        question = _Question(rid_text)
        if not self._catalog.is_shared or not self._others:
            return question
        tag = f"{self._catalog.boot_number}.{next(self._numbers)}"
        self._asks[tag] = question
        try:
            if self.on_news is not None:
                self.on_news()
            loop = asyncio.get_running_loop()
            give_up_at = loop.time() + _ANSWER_SECONDS_MAX
            while len(question.usage) < self._others and loop.time() < give_up_at:
                await asyncio.sleep(0.02)
        finally:
            del self._asks[tag]
        return question

    # --- among the others -------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return bool(self._asks or self._asked)

    def report(self) -> Mapping[str, Any]:
        if not self.is_busy:
            return {}
        asked_for_all = [tag for tag, rid_text in self._asked.items() if rid_text == _ALL]
        return {
            "asks": {tag: question.rid_text for tag, question in self._asks.items()},
            "usage": {tag: self._own(rid_text) for tag, rid_text in self._asked.items()},
            "requests": {tag: self.requests.to_json() for tag in asked_for_all},
            "work": {tag: self._own_work().to_json() for tag in asked_for_all},
        }

    def hear(self, reports: list[Mapping[str, Any]]) -> None:
        self._others = len(reports)
        self._asked = {tag: rid for report in reports for tag, rid in report.get("asks", {}).items()}
        for report in reports:
            requests, work = report.get("requests", {}), report.get("work", {})
            for tag, usage in report.get("usage", {}).items():
                question = self._asks.get(tag)
                if question is not None:
                    question.usage[report["name"]] = usage
                    # Absent in the report of an older version.
                    question.requests[report["name"]] = requests.get(tag, {})
                    question.work[report["name"]] = work.get(tag, {})

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


def _sum_usage(keyspaces: Iterable[Keyspace], question: _Question) -> dict[bytes, Usage]:
    total = {keyspace.record.rid: _copy(keyspace.usage) for keyspace in keyspaces}
    for answer in question.usage.values():
        for name, numbers in answer.items():
            rid_hex, _, range_id = name.partition("/")
            usage = total.get(bytes.fromhex(rid_hex))
            if usage is not None:
                _add(usage.setdefault(int(range_id), PartitionUsage()), numbers)
    return total


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
    for range_id, served in usage.items():
        _add(copied.setdefault(range_id, PartitionUsage()), _numbers(served))
    return copied

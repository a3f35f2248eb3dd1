"""The nodes of the fleet as the catalog remembers them, and which partitions are to go to which of them.

A record is changed only by who has seen it as it is (an expectation on the whole of it), so that two processes cannot
give one number to two nodes.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from asterism.partitioning.placement import Move, NodeState, RangeName
from asterism.storage.contract import Batch, Expectation, ExpectationFailed
from asterism.values.identifiers import Lsn, NodeNumber
from asterism.values.json_text import dumps, loads_stored

NODE = b"N"
WANTED_MOVE = b"m"

EMBEDDED_NODE = NodeNumber(0)
EMBEDDED_NAME = "local"

_NUMBER = struct.Struct(">Q")
_RID_BYTES = 8

# Applies a batch to the catalog; raises ExpectationFailed.
Change = Callable[[Batch], Awaitable[Lsn]]
Read = Callable[[bytes], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class NodeRecord:
    number: NodeNumber
    name: str
    labels: frozenset[str] = frozenset()
    state: NodeState = NodeState.ONLINE

    def to_bytes(self) -> bytes:
        told = {"number": self.number, "name": self.name, "labels": sorted(self.labels), "state": self.state.value}
        return dumps(told)

    @classmethod
    def from_bytes(cls, stored: bytes) -> NodeRecord:
        told = cast(dict[str, Any], loads_stored(stored))
        return cls(NodeNumber(told["number"]), told["name"], frozenset(told["labels"]), NodeState(told["state"]))


# A store that was never part of a fleet has no record of itself.
EMBEDDED = NodeRecord(EMBEDDED_NODE, EMBEDDED_NAME)


class Nodes:
    """The records in memory, and their changes. Memory follows only after the batch is durable."""

    def __init__(self, change: Change, read: Read) -> None:
        self._change = change
        self._read = read
        self._records: dict[NodeNumber, NodeRecord] = {}
        # Where the operator wants partitions to be that are elsewhere now.
        self.wanted: dict[RangeName, NodeNumber] = {}
        # Called when a state or a wanted move has changed; set by who carries moves out.
        self.on_change: Callable[[], None] | None = None

    # --- following the store ----------------------------------------------------------------------------------------

    def known_keys(self) -> set[bytes]:
        return {NODE + _NUMBER.pack(number) for number in self._records} | {_wanted_key(name) for name in self.wanted}

    def follow(self, key: bytes, value: bytes | None) -> bool:
        """Takes over what the store has under a key; False if the key is not one of these."""
        if key.startswith(NODE):
            number = NodeNumber(_NUMBER.unpack(key[1:])[0])
            if value is None:
                self._records.pop(number, None)
            else:
                self._records[number] = NodeRecord.from_bytes(value)
        elif key.startswith(WANTED_MOVE):
            name = RangeName(key[1 : 1 + _RID_BYTES], _NUMBER.unpack(key[1 + _RID_BYTES :])[0])
            if value is None:
                self.wanted.pop(name, None)
            else:
                self.wanted[name] = NodeNumber(_NUMBER.unpack(value)[0])
        else:
            return False
        if self.on_change is not None:
            self.on_change()
        return True

    # --- looking up -------------------------------------------------------------------------------------------------

    @property
    def records(self) -> Mapping[NodeNumber, NodeRecord]:
        return self._records or {EMBEDDED_NODE: EMBEDDED}

    def named(self, name: str) -> NodeRecord | None:
        """By name, or else by number."""
        by_name = next((one for one in self.records.values() if one.name == name), None)
        is_number = name.isascii() and name.isdigit() and len(name) < 10
        return by_name or (self.records.get(NodeNumber(int(name))) if is_number else None)

    def online(self) -> list[NodeRecord]:
        return [one for one in self.records.values() if one.state is NodeState.ONLINE]

    def draining(self) -> list[NodeRecord]:
        return [one for one in self.records.values() if one.state is NodeState.DRAINING]

    # --- changing ---------------------------------------------------------------------------------------------------

    async def join(self, name: str, labels: frozenset[str], *, number: NodeNumber | None = None) -> NodeRecord:
        """A node by its number or else by its name, with the name and labels it has now; a new one gets the next
        number, or the one told."""
        while True:
            if number is None:
                known = next((one for one in self._records.values() if one.name == name), None)
            else:
                known = self._records.get(number)
            if known is not None:
                record = replace(known, name=name, labels=labels)
            else:
                record = NodeRecord(number if number is not None else self._next_number(), name, labels)
            if known == record or await self._put(known, record):
                return record

    def _next_number(self) -> NodeNumber:
        return NodeNumber(max(self._records, default=EMBEDDED_NODE) + 1)

    async def set_state(self, record: NodeRecord, state: NodeState) -> NodeRecord:
        while (known := self._records.get(record.number)) is not None or record == EMBEDDED:
            changed = replace(known or record, state=state)
            if known == changed or await self._put(known, changed):
                return changed
        return record

    async def _put(self, known: NodeRecord | None, record: NodeRecord) -> bool:
        """False if the record is not as it was known; it is known then."""
        key = NODE + _NUMBER.pack(record.number)
        expectation = Expectation(key, None if known is None else known.to_bytes())
        try:
            await self._change(Batch(expectations=[expectation], puts=[(key, record.to_bytes())], may_use_reserve=True))
        except ExpectationFailed:
            self.follow(key, await self._read(key))
            return False
        self.follow(key, record.to_bytes())
        return True

    # --- moves that are wanted --------------------------------------------------------------------------------------

    async def want(self, moves: Iterable[Move]) -> None:
        puts = [(_wanted_key(move.name), _NUMBER.pack(move.target)) for move in moves]
        if puts:
            # Also when the store is full: to move partitions away makes room.
            await self._change(Batch(puts=puts, may_use_reserve=True))
            for key, value in puts:
                self.follow(key, value)

    async def want_no_more(self, names: Iterable[RangeName]) -> None:
        keys = [_wanted_key(name) for name in names if name in self.wanted]
        if keys:
            await self._change(Batch(deletes=keys))
            for key in keys:
                self.follow(key, None)


def _wanted_key(name: RangeName) -> bytes:
    return WANTED_MOVE + name.keyspace + _NUMBER.pack(name.range_id)

"""The nodes of the fleet as the catalog remembers them, and the moves of partitions that are wanted.

A change of a record expects the whole of it as the process knows it, so that two processes cannot give one number to
two nodes.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from asterism.partitioning.placement import Move, NodeState, RangeName
from asterism.storage.contract import Batch, Expectation, ExpectationFailed
from asterism.values.identifiers import Lsn, NodeNumber
from asterism.values.records import StoredRecord

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
class NodeRecord(StoredRecord):
    number: NodeNumber
    name: str
    labels: frozenset[str] = frozenset()
    state: NodeState = NodeState.ONLINE


# A store that was never part of a fleet has no record of itself.
EMBEDDED = NodeRecord(EMBEDDED_NODE, EMBEDDED_NAME)


class Nodes:
    """The records in memory, and their changes. Memory follows only after the batch is durable."""

    def __init__(self, change: Change, read: Read) -> None:
        self._change = change
        self._read = read
        self._records: dict[NodeNumber, NodeRecord] = {}
        # The node that the operator wants for partitions that are elsewhere now.
        self.wanted: dict[RangeName, NodeNumber] = {}
        # Called when a state or a wanted move has changed; set by the mover.
        self.on_change: Callable[[], None] | None = None

    # --- following the store ----------------------------------------------------------------------------------------

    def known_keys(self) -> set[bytes]:
        return {NODE + _NUMBER.pack(number) for number in self._records} | {_wanted_key(name) for name in self.wanted}

    def follow(self, key: bytes, value: bytes | None) -> bool:
        """Take over the value that the store has under a key; False if it is a key of other records."""
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
        """Find a node by name, or else by number."""
        by_name = next((record for record in self.records.values() if record.name == name), None)
        is_number = name.isascii() and name.isdigit() and len(name) < 10
        return by_name or (self.records.get(NodeNumber(int(name))) if is_number else None)

    def online(self) -> list[NodeRecord]:
        return [record for record in self.records.values() if record.state is NodeState.ONLINE]

    def draining(self) -> list[NodeRecord]:
        return [record for record in self.records.values() if record.state is NodeState.DRAINING]

    # --- changing ---------------------------------------------------------------------------------------------------

    async def join(self, name: str, labels: frozenset[str], *, number: NodeNumber | None = None) -> NodeRecord:
        """Store a node, found by its number or else by its name, with its present name and labels.

        A new one gets the given number, or else the next.
        """
        while True:
            if number is None:
                known = next((record for record in self._records.values() if record.name == name), None)
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
        """Store a record; False, with memory brought up to date, if the known one is outdated."""
        key = NODE + _NUMBER.pack(record.number)
        expectation = Expectation(key, None if known is None else known.to_bytes())
        try:
            await self._change(Batch(expectations=[expectation], puts=[(key, record.to_bytes())], may_use_reserve=True))
        except ExpectationFailed:
            self.follow(key, await self._read(key))
            return False
        self.follow(key, record.to_bytes())
        return True

    # --- wanted moves --------------------------------------------------------------------------------------

    async def want(self, moves: Iterable[Move]) -> None:
        puts = [(_wanted_key(move.name), _NUMBER.pack(move.target)) for move in moves]
        if puts:
            # Also when the store is full: to move partitions away makes room.
            await self._change(Batch(puts=puts, may_use_reserve=True))
            for key, value in puts:
                self.follow(key, value)

    async def cancel_wanted(self, names: Iterable[RangeName]) -> None:
        keys = [_wanted_key(name) for name in names if name in self.wanted]
        if keys:
            await self._change(Batch(deletes=keys))
            for key in keys:
                self.follow(key, None)


def _wanted_key(name: RangeName) -> bytes:
    return WANTED_MOVE + name.keyspace + _NUMBER.pack(name.range_id)

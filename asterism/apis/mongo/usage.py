"""The use of collections and indexes since the process began, for the stages that tell of it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from asterism.values.bson.types import Document, Int64

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# Collections that are remembered; those met first are forgotten first.
COLLECTIONS_MAX: Final = 10_000

_READS: Final = frozenset({"find", "aggregate", "count", "distinct", "getMore"})
_WRITES: Final = frozenset({"insert", "update", "delete", "findAndModify"})
KINDS: Final = ("reads", "writes", "commands", "transactions")

Namespace = tuple[str, str, str]


@dataclass(slots=True)
class Latency:
    """Times of commands: how many, how long in all, and how many of each length in powers of two."""

    count: int = 0
    microseconds: int = 0
    by_length: Counter[int] = field(default_factory=Counter)

    def note(self, microseconds: int) -> None:
        self.count += 1
        self.microseconds += microseconds
        self.by_length[microseconds.bit_length()] += 1

    def to_document(self, *, with_histogram: bool) -> Document:
        shown: Document = {"latency": Int64(self.microseconds), "ops": Int64(self.count)}
        if with_histogram:
            shown["histogram"] = [
                {"micros": Int64(1 << (length - 1) if length else 0), "count": Int64(count)}
                for length, count in sorted(self.by_length.items())
            ]
        return shown


@dataclass(slots=True)
class CollectionUse:
    latencies: dict[str, Latency] = field(default_factory=lambda: {kind: Latency() for kind in KINDS})
    scans: int = 0
    # By the UUID of the collection and the number of the index, which are never given again.
    index_uses: Counter[tuple[bytes, int]] = field(default_factory=Counter)


class UsageRegistry:
    def __init__(self) -> None:
        self._collections: OrderedDict[Namespace, CollectionUse] = OrderedDict()

    def of(self, account: str, database: str, name: str) -> CollectionUse:
        """Return the use of a collection, which begins with nothing."""
        key = (account, database, name)
        found = self._collections.get(key)
        if found is None:
            found = self._collections[key] = CollectionUse()
            if len(self._collections) > COLLECTIONS_MAX:
                self._collections.popitem(last=False)
        return found

    def note_command(self, call: Call, seconds: float) -> None:
        """Count a command that has ended."""
        command = call.command.name
        target = call.body.get("collection") if command == "getMore" else call.body[call.name]
        if type(target) is not str:
            return
        kind = "reads" if command in _READS else "writes" if command in _WRITES else "commands"
        use = self.of(call.account, call.database, target)
        use.latencies["transactions" if call.is_in_transaction else kind].note(int(seconds * 1_000_000))

"""Commands under way, for `currentOp` and `killOp`, and sums over those that are done."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.apis.mongo.connection import Connection

# Collections whose sums are kept; the sums of those that were used longest ago are forgotten.
_NAMESPACES_MAX: Final = 10_000


class Operation(NamedTuple):
    call: Call
    # In monotonic seconds.
    started_at: float


@dataclass(slots=True)
class Usage:
    """Commands on one collection: how many of each there were, and the seconds that they took."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Operations:
    """The commands of a process: those under way, and how many there were of each."""

    counts: Counter[str] = field(default_factory=Counter)
    under_way: dict[int, Operation] = field(default_factory=dict)
    # By account and namespace.
    usage: dict[tuple[str, str], Usage] = field(default_factory=dict)
    open_connections: dict[int, Connection] = field(default_factory=dict)
    connections: int = 0
    connections_created: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def begin(self, call: Call) -> int:
        number = next(self._numbers)
        self.counts[call.command.name] += 1
        self.bytes_in += len(call.raw)
        self.under_way[number] = Operation(call, call.context.monotonic_seconds())
        return number

    def end(self, number: int) -> None:
        call, started_at = self.under_way.pop(number)
        target = call.body.get(call.name)
        if type(target) is not str:
            return
        key = call.account, f"{call.database}.{target}"
        # Kept in the order of the last use.
        usage = self.usage.pop(key, None) or Usage()
        self.usage[key] = usage
        usage.counts[call.command.name] += 1
        taken = call.context.monotonic_seconds() - started_at
        usage.seconds[call.command.name] = usage.seconds.get(call.command.name, 0.0) + taken
        if len(self.usage) > _NAMESPACES_MAX:
            del self.usage[next(iter(self.usage))]

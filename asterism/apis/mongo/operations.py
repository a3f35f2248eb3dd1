"""Commands under way, for `currentOp` and `killOp`."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call


@dataclass(slots=True)
class Operations:
    """The commands of a process: those under way, and how many there were of each."""

    counts: Counter[str] = field(default_factory=Counter)
    under_way: dict[int, Call] = field(default_factory=dict)
    connections: int = 0
    connections_created: int = 0
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def begin(self, call: Call) -> int:
        number = next(self._numbers)
        self.counts[call.command.name] += 1
        self.under_way[number] = call
        return number

    def end(self, number: int) -> None:
        del self.under_way[number]

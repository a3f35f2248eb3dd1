"""On which node a partition goes, and which partitions should go to another: rules and plans only (spec C15).

A node's load is what its partitions weigh. A partition weighs what it uses of the limits of a partition, bytes and
request units alike, and a little for being there, so that empty ones are divided evenly too. Weights are whole numbers:
equal input gives equal plans.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asterism.limits import Limits
from asterism.values.identifiers import NodeNumber

# What a partition weighs that uses one of the two limits fully, and one that is empty.
WEIGHT_OF_FULL = 1_000_000
WEIGHT_OF_EMPTY = 10_000
# Two nodes whose loads differ by less than this part of the mean are as good as equal: every move costs a copy.
_TOLERANCE_DENOMINATOR = 20


class NodeState(enum.StrEnum):
    """Whether a node takes new partitions; a draining one is being emptied, a removed one has none."""

    ONLINE = "online"
    DRAINING = "draining"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Rules:
    """What an operator asks for a container: `labels` that each of its nodes must have (a region is a label), and
    whether its partitions are to be spread, so that any two of its nodes have equally many, give or take one."""

    labels: frozenset[str] = frozenset()
    spread: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"labels": sorted(self.labels), "spread": self.spread}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Rules:
        return cls(frozenset(told.get("labels", ())), bool(told.get("spread", False)))


NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """A node as a plan sees it: what it is, and what its partitions weigh together."""

    node: NodeNumber
    labels: frozenset[str] = frozenset()
    state: NodeState = NodeState.ONLINE
    weight: int = 0

    def may_take(self, rules: Rules) -> bool:
        return self.state is NodeState.ONLINE and rules.labels <= self.labels


class RangeName(NamedTuple):
    """A partition range of the whole fleet: its keyspace's resource id and its own."""

    keyspace: bytes
    range_id: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A partition where it is now."""

    name: RangeName
    node: NodeNumber
    weight: int


@dataclass(frozen=True, slots=True)
class Move:
    name: RangeName
    source: NodeNumber
    target: NodeNumber


@dataclass(frozen=True, slots=True)
class Plan:
    """Moves, each partition at most once, and the partitions that no node may take as the rules are."""

    moves: tuple[Move, ...]
    stuck: tuple[Placed, ...] = ()


def weight_of(*, size_bytes: int, ru_per_second: float, limits: Limits) -> int:
    used_bytes = size_bytes * WEIGHT_OF_FULL // limits.physical_partition_bytes_max
    used_ru = int(ru_per_second) * WEIGHT_OF_FULL // limits.physical_partition_ru_per_second_max
    return WEIGHT_OF_EMPTY + used_bytes + used_ru


def place(
    weights: Sequence[int],
    nodes: Iterable[NodeLoad],
    rules: Rules = NO_RULES,
    *,
    already_there: Mapping[NodeNumber, int] | None = None,
) -> tuple[NodeNumber, ...]:
    """A node for each new partition of a container, by its weight: the node with the fewest of the container's
    partitions if they are to be spread (`already_there` counts those it has), then the lightest, then the first.

    ValueError when no node may take them.
    """
    loads = {one.node: one.weight for one in nodes if one.may_take(rules)}
    if not loads:
        raise ValueError("no node may take a partition under these rules")
    counts = {node: (already_there or {}).get(node, 0) if rules.spread else 0 for node in loads}
    chosen: list[NodeNumber] = []
    for weight in weights:
        node = min(loads, key=lambda one: (counts[one], loads[one], one))
        loads[node] += weight
        counts[node] += rules.spread
        chosen.append(node)
    return tuple(chosen)


def place_split(
    source: NodeNumber,
    nodes: Sequence[NodeLoad],
    rules: Rules = NO_RULES,
    *,
    already_there: Mapping[NodeNumber, int] | None = None,
) -> tuple[NodeNumber, NodeNumber]:
    """Nodes for the lower and the upper child of a partition, which `already_there` counts: the lower one stays where
    its data is, if it may be there, and the upper one goes where there is room."""
    counts = Counter(already_there or {})
    if any(one.node == source and one.may_take(rules) for one in nodes):
        (high,) = place([WEIGHT_OF_EMPTY], nodes, rules, already_there=counts)
        return source, high
    counts[source] -= 1
    low, high = place([WEIGHT_OF_EMPTY] * 2, nodes, rules, already_there=counts)
    return low, high


def plan_rebalance(
    nodes: Sequence[NodeLoad], placed: Sequence[Placed], rules_of: Mapping[bytes, Rules] | None = None
) -> Plan:
    """The moves that bring every partition to a node it may be on, spread what is to be spread, and then even out the
    loads. Never makes a container's placement worse than its rules; planning again after the moves plans nothing.

    The nodes' own `weight` is not looked at: it follows from `placed`.
    """
    board = _Board(nodes, placed, rules_of or {})
    stuck = board.obey_labels()
    board.spread()
    board.even_out()
    return Plan(board.moves(), stuck)


def plan_drain(
    nodes: Sequence[NodeLoad], placed: Sequence[Placed], rules_of: Mapping[bytes, Rules] | None = None
) -> Plan:
    """Only what must move: partitions on nodes that are draining, or that their rules do not allow."""
    board = _Board(nodes, placed, rules_of or {})
    stuck = board.obey_labels()
    return Plan(board.moves(), stuck)


@dataclass(slots=True)
class _Board:
    """Where everything is while a plan is being made. Moves are made here first, and told at the end."""

    nodes: Sequence[NodeLoad]
    placed: Sequence[Placed]
    rules_of: Mapping[bytes, Rules]
    _labels: dict[NodeNumber, frozenset[str]] = field(default_factory=dict)
    _where: dict[RangeName, NodeNumber] = field(default_factory=dict)
    _loads: dict[NodeNumber, int] = field(default_factory=dict)
    _on: dict[NodeNumber, list[Placed]] = field(default_factory=dict)
    _counts: dict[tuple[bytes, NodeNumber], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._labels = {one.node: one.labels for one in self.nodes}
        self._loads = {one.node: 0 for one in self.nodes}
        self._on = {one.node: [] for one in self.nodes}
        for one in self.placed:
            self._where[one.name] = one.node
            self._put(one, one.node)

    def _put(self, one: Placed, node: NodeNumber) -> None:
        self._loads[node] = self._loads.get(node, 0) + one.weight
        self._on.setdefault(node, []).append(one)
        key = (one.name.keyspace, node)
        self._counts[key] = self._counts.get(key, 0) + 1

    def _move(self, one: Placed, target: NodeNumber) -> None:
        source = self._where[one.name]
        self._loads[source] -= one.weight
        self._on[source].remove(one)
        self._counts[one.name.keyspace, source] -= 1
        self._where[one.name] = target
        self._put(one, target)

    def moves(self) -> tuple[Move, ...]:
        changed = [(one, self._where[one.name]) for one in self.placed if self._where[one.name] != one.node]
        return tuple(Move(one.name, one.node, target) for one, target in changed)

    def _rules(self, keyspace: bytes) -> Rules:
        return self.rules_of.get(keyspace, NO_RULES)

    def _allowed(self, keyspace: bytes) -> list[NodeNumber]:
        rules = self._rules(keyspace)
        return [one.node for one in self.nodes if one.may_take(rules)]

    def _count(self, keyspace: bytes, node: NodeNumber) -> int:
        return self._counts.get((keyspace, node), 0)

    # --- what the rules demand --------------------------------------------------------------------------------------

    def obey_labels(self) -> tuple[Placed, ...]:
        stuck: list[Placed] = []
        allowed = {keyspace: self._allowed(keyspace) for keyspace in {one.name.keyspace for one in self.placed}}
        for one in sorted(self.placed, key=lambda one: (-one.weight, one.name)):
            keyspace = one.name.keyspace
            if one.node in allowed[keyspace]:
                continue
            if not allowed[keyspace]:
                stuck.append(one)
                continue
            self._move(one, min(allowed[keyspace], key=lambda node: self._preference(keyspace, node)))
        return tuple(stuck)

    def _preference(self, keyspace: bytes, node: NodeNumber) -> tuple[int, int, int]:
        count = self._count(keyspace, node) if self._rules(keyspace).spread else 0
        return count, self._loads[node], node

    def spread(self) -> None:
        for keyspace in sorted({one.name.keyspace for one in self.placed}):
            allowed = self._allowed(keyspace)
            if self._rules(keyspace).spread and allowed:
                self._spread_one(keyspace, allowed)

    def _spread_one(self, keyspace: bytes, allowed: list[NodeNumber]) -> None:
        while True:
            most = max(allowed, key=lambda node: (self._count(keyspace, node), self._loads[node], node))
            fewest = min(allowed, key=lambda node: (self._count(keyspace, node), self._loads[node], node))
            if self._count(keyspace, most) - self._count(keyspace, fewest) <= 1:
                return
            own = [one for one in self._on[most] if one.name.keyspace == keyspace]
            self._move(min(own, key=lambda one: (one.weight, one.name)), fewest)

    # --- what evens out the loads -----------------------------------------------------------------------------------

    def even_out(self) -> None:
        """Each move makes the sum of the squares of the loads smaller, so there is an end; it ends when no single move
        would."""
        takers = [one.node for one in self.nodes if one.state is NodeState.ONLINE]
        if not takers:
            return
        tolerance = sum(self._loads[node] for node in takers) // (len(takers) * _TOLERANCE_DENOMINATOR)
        while (better := self._best_move(takers, tolerance)) is not None:
            self._move(*better)

    def _best_move(self, takers: list[NodeNumber], tolerance: int) -> tuple[Placed, NodeNumber] | None:
        by_load = sorted(takers, key=lambda node: (self._loads[node], node))
        lightest = self._loads[by_load[0]]
        for source in reversed(by_load):
            if self._loads[source] - lightest <= tolerance:
                return None
            # What halves the difference best comes first.
            half = (self._loads[source] - lightest) // 2
            for one in sorted(self._on[source], key=lambda one: (abs(one.weight - half), one.name)):
                target = self._better_place(one, source, by_load, tolerance)
                if target is not None:
                    return one, target
        return None

    def _better_place(
        self, one: Placed, source: NodeNumber, by_load: list[NodeNumber], tolerance: int
    ) -> NodeNumber | None:
        keyspace = one.name.keyspace
        rules = self._rules(keyspace)
        for target in by_load:
            difference = self._loads[source] - self._loads[target]
            if difference <= max(tolerance, one.weight):
                return None
            is_allowed = rules.labels <= self._labels[target]
            keeps_spread = not rules.spread or self._count(keyspace, target) < self._count(keyspace, source)
            if is_allowed and keeps_spread:
                return target
        return None

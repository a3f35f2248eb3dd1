"""Placement of partitions on nodes: the node of a new partition, and plans for moves between nodes (spec C15).

A node's load is the sum of its partitions' weights. A partition's weight is the used fraction of its limits, bytes and
request units alike, plus a small constant, so that empty partitions are divided evenly too. Weights are whole numbers:
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

# Weight of a partition that uses one of the two limits fully, and of an empty one.
WEIGHT_OF_FULL = 1_000_000
WEIGHT_OF_EMPTY = 10_000
# Loads that differ by less than this fraction of the mean count as equal: every move costs a copy.
_TOLERANCE_DENOMINATOR = 20


class NodeState(enum.StrEnum):
    """State of a node. Only an online node takes new partitions; a draining one is being emptied, a removed one is
    empty."""

    ONLINE = "online"
    DRAINING = "draining"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Rules:
    """An operator's placement rules for a container: `labels` that each of its nodes must have (a region is a label).
    With `spread`, any two of its nodes have equally many of its partitions, give or take one."""

    labels: frozenset[str] = frozenset()
    spread: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"labels": sorted(self.labels), "spread": self.spread}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Rules:
        return cls(frozenset(record.get("labels", ())), bool(record.get("spread", False)))


NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """A node as a plan sees it, with the sum of its partitions' weights."""

    node: NodeNumber
    labels: frozenset[str] = frozenset()
    state: NodeState = NodeState.ONLINE
    weight: int = 0

    def may_take(self, rules: Rules) -> bool:
        return self.state is NodeState.ONLINE and rules.labels <= self.labels


class RangeName(NamedTuple):
    """Name of a partition range in the whole fleet: its keyspace's resource id and its own id."""

    keyspace: bytes
    range_id: int


@dataclass(frozen=True, slots=True)
class PlacedPartition:
    """A partition on its present node."""

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
    """Moves, each partition at most once, and the partitions that no node may take under the rules."""

    moves: tuple[Move, ...]
    stuck: tuple[PlacedPartition, ...] = ()


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
    """Choose a node for each new partition of a container, by its weight: the node with the fewest of the container's
    partitions if they are spread (`already_there` counts the present ones), then the lightest, then the first.

    Raises ValueError if no node may take them.
    """
    loads = {load.node: load.weight for load in nodes if load.may_take(rules)}
    if not loads:
        raise ValueError("no node may take a partition under these rules")
    counts = {node: (already_there or {}).get(node, 0) if rules.spread else 0 for node in loads}
    chosen: list[NodeNumber] = []
    for weight in weights:
        node = min(loads, key=lambda candidate: (counts[candidate], loads[candidate], candidate))
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
    """Choose nodes for the lower and the upper child of a partition, which `already_there` counts: the lower one stays
    on the source, if the rules allow it, and the upper one goes to the node that `place` prefers."""
    counts = Counter(already_there or {})
    if any(load.node == source and load.may_take(rules) for load in nodes):
        (high,) = place([WEIGHT_OF_EMPTY], nodes, rules, already_there=counts)
        return source, high
    counts[source] -= 1
    low, high = place([WEIGHT_OF_EMPTY] * 2, nodes, rules, already_there=counts)
    return low, high


def plan_rebalance(
    nodes: Sequence[NodeLoad], placed: Sequence[PlacedPartition], rules_of: Mapping[bytes, Rules] | None = None
) -> Plan:
    """Plan moves that bring every partition to a node that its rules allow, that then spread containers with that rule
    and even out the loads. Evening out never breaks a container's rules; a plan made after the moves is empty.

    The nodes' own `weight` is ignored: it follows from `placed`.
    """
    board = _Draft(nodes, placed, rules_of or {})
    stuck = board.obey_labels()
    board.spread()
    board.even_out()
    return Plan(board.moves(), stuck)


def plan_drain(
    nodes: Sequence[NodeLoad], placed: Sequence[PlacedPartition], rules_of: Mapping[bytes, Rules] | None = None
) -> Plan:
    """Plan only the necessary moves: partitions on nodes that are draining, or that their rules do not allow."""
    board = _Draft(nodes, placed, rules_of or {})
    stuck = board.obey_labels()
    return Plan(board.moves(), stuck)


@dataclass(slots=True)
class _Draft:
    """Placement of all partitions while a plan is being made: `moves` lists the differences from `placed`."""

    nodes: Sequence[NodeLoad]
    placed: Sequence[PlacedPartition]
    rules_of: Mapping[bytes, Rules]
    _labels: dict[NodeNumber, frozenset[str]] = field(default_factory=dict)
    _where: dict[RangeName, NodeNumber] = field(default_factory=dict)
    _loads: dict[NodeNumber, int] = field(default_factory=dict)
    _on: dict[NodeNumber, list[PlacedPartition]] = field(default_factory=dict)
    _counts: dict[tuple[bytes, NodeNumber], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._labels = {load.node: load.labels for load in self.nodes}
        self._loads = {load.node: 0 for load in self.nodes}
        self._on = {load.node: [] for load in self.nodes}
        for partition in self.placed:
            self._where[partition.name] = partition.node
            self._put(partition, partition.node)

    def _put(self, partition: PlacedPartition, node: NodeNumber) -> None:
        self._loads[node] = self._loads.get(node, 0) + partition.weight
        self._on.setdefault(node, []).append(partition)
        key = (partition.name.keyspace, node)
        self._counts[key] = self._counts.get(key, 0) + 1

    def _move(self, partition: PlacedPartition, target: NodeNumber) -> None:
        source = self._where[partition.name]
        self._loads[source] -= partition.weight
        self._on[source].remove(partition)
        self._counts[partition.name.keyspace, source] -= 1
        self._where[partition.name] = target
        self._put(partition, target)

    def moves(self) -> tuple[Move, ...]:
        changed = [partition for partition in self.placed if self._where[partition.name] != partition.node]
        return tuple(Move(partition.name, partition.node, self._where[partition.name]) for partition in changed)

    def _rules(self, keyspace: bytes) -> Rules:
        return self.rules_of.get(keyspace, NO_RULES)

    def _allowed(self, keyspace: bytes) -> list[NodeNumber]:
        rules = self._rules(keyspace)
        return [load.node for load in self.nodes if load.may_take(rules)]

    def _count(self, keyspace: bytes, node: NodeNumber) -> int:
        return self._counts.get((keyspace, node), 0)

    # --- moves that the rules demand --------------------------------------------------------------------------------

    def obey_labels(self) -> tuple[PlacedPartition, ...]:
        stuck: list[PlacedPartition] = []
        allowed = {
            keyspace: self._allowed(keyspace) for keyspace in {partition.name.keyspace for partition in self.placed}
        }
        for partition in sorted(self.placed, key=lambda partition: (-partition.weight, partition.name)):
            keyspace = partition.name.keyspace
            if partition.node in allowed[keyspace]:
                continue
            if not allowed[keyspace]:
                stuck.append(partition)
                continue
            self._move(partition, min(allowed[keyspace], key=lambda node: self._preference(keyspace, node)))
        return tuple(stuck)

    def _preference(self, keyspace: bytes, node: NodeNumber) -> tuple[int, int, int]:
        count = self._count(keyspace, node) if self._rules(keyspace).spread else 0
        return count, self._loads[node], node

    def spread(self) -> None:
        for keyspace in sorted({partition.name.keyspace for partition in self.placed}):
            allowed = self._allowed(keyspace)
            if self._rules(keyspace).spread and allowed:
                self._spread_keyspace(keyspace, allowed)

    def _spread_keyspace(self, keyspace: bytes, allowed: list[NodeNumber]) -> None:
        while True:
            most = max(allowed, key=lambda node: (self._count(keyspace, node), self._loads[node], node))
            fewest = min(allowed, key=lambda node: (self._count(keyspace, node), self._loads[node], node))
            if self._count(keyspace, most) - self._count(keyspace, fewest) <= 1:
                return
            own = [partition for partition in self._on[most] if partition.name.keyspace == keyspace]
            self._move(min(own, key=lambda partition: (partition.weight, partition.name)), fewest)

    # --- moves that even out the loads ------------------------------------------------------------------------------

    def even_out(self) -> None:
        """Move partitions until no single move improves the balance. Each move makes the sum of the squares of the
        loads smaller, so the loop ends."""
        takers = [load.node for load in self.nodes if load.state is NodeState.ONLINE]
        if not takers:
            return
        tolerance = sum(self._loads[node] for node in takers) // (len(takers) * _TOLERANCE_DENOMINATOR)
        while (better := self._best_move(takers, tolerance)) is not None:
            self._move(*better)

    def _best_move(self, takers: list[NodeNumber], tolerance: int) -> tuple[PlacedPartition, NodeNumber] | None:
        by_load = sorted(takers, key=lambda node: (self._loads[node], node))
        lightest = self._loads[by_load[0]]
        for source in reversed(by_load):
            if self._loads[source] - lightest <= tolerance:
                return None
            # The partition that halves the difference best comes first.
            half = (self._loads[source] - lightest) // 2
            for partition in sorted(
                self._on[source], key=lambda partition: (abs(partition.weight - half), partition.name)
            ):
                target = self._better_place(partition, source, by_load, tolerance)
                if target is not None:
                    return partition, target
        return None

    def _better_place(
        self, partition: PlacedPartition, source: NodeNumber, by_load: list[NodeNumber], tolerance: int
    ) -> NodeNumber | None:
        keyspace = partition.name.keyspace
        rules = self._rules(keyspace)
        for target in by_load:
            difference = self._loads[source] - self._loads[target]
            if difference <= max(tolerance, partition.weight):
                return None
            is_allowed = rules.labels <= self._labels[target]
            keeps_spread = not rules.spread or self._count(keyspace, target) < self._count(keyspace, source)
            if is_allowed and keeps_spread:
                return target
        return None

"""A compiled filter: the function that decides, and the facts that index planning and upserts read from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asterism.languages.mongo.expressions.operator import Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import MISSING, Document

# Decides about one value, or about MISSING where the path leads nowhere.
Test = Callable[[Any], bool]
Matches = Callable[[Document], bool]
# Returns the position of the array element that made a condition hold, or None when no array was entered.
Position = Callable[[Any], int | None]


class Condition(NamedTuple):
    """A fact that holds for every matching document: `operator` is eq, gt, gte, lt, lte, in, exists, size, type,
    regex_prefix, elemMatch, geo (a region) or text (a search). The value of elemMatch is the tuple of conditions on one
    element: their paths are relative to the element, and empty for the element itself."""

    path: str
    operator: str
    value: Any


def no_position(_: Any) -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a filter: a condition on a path, or a combination of parts."""

    kind: str
    matches: Matches
    position: Position = no_position
    path: str = ""
    value: Any = None
    children: tuple[Node, ...] = ()


@dataclass(slots=True)
class VariablesCell:
    """The variables that `$expr` reads while a document is looked at. `$lookup` has other ones for every document."""

    variables: Variables = field(default_factory=dict)


# The order in which the server sorts the parts of a conjunction before it evaluates them. The last part that entered an
# array decides what `$` means.
_KINDS_IN_ORDER = (
    *("and", "or", "elemMatchObject", "elemMatch", "size", "eq", "lte", "lt", "gt", "gte", "regex", "mod", "exists"),
    *("in", "in_patterns", "bitsAllSet", "bitsAllClear", "bitsAnySet", "bitsAnyClear", "not", "nor", "type"),
)
_KIND_RANKS = {kind: rank for rank, kind in enumerate(_KINDS_IN_ORDER)}
_PLANNED_KINDS = frozenset({"eq", "gt", "gte", "lt", "lte", "in", "exists", "size", "type"})


def conjunction(children: tuple[Node, ...]) -> Node:
    """Return the part that holds when all children hold; conjunctions among them are merged."""
    flat: list[Node] = []
    for child in children:
        flat.extend(child.children if child.kind == "and" else (child,))
    if len(flat) == 1:
        return flat[0]
    parts = tuple(flat)
    return Node("and", _all_of(tuple(part.matches for part in parts)), _last_position(parts), children=parts)


def disjunction(children: tuple[Node, ...]) -> Node:
    """Return the part that holds when one child holds."""
    if len(children) == 1:
        return children[0]
    tests = tuple(child.matches for child in children)

    def matches(document: Document) -> bool:
        for test in tests:  # noqa: SIM110 - a loop, since `any` over a generator costs twice as much
            if test(document):
                return True
        return False

    # The server rewrites equalities on one path into $in, which knows the array element; other alternatives do not.
    path = children[0].path
    same_path = all(child.kind in ("eq", "in") and child.path == path for child in children)
    return Node("or", matches, _first_position(children) if same_path else no_position, children=children)


def negation(child: Node, kind: str = "not") -> Node:
    test = child.matches
    return Node(kind, lambda document: not test(document), path=child.path, children=(child,))


def _all_of(tests: tuple[Matches, ...]) -> Matches:
    if not tests:
        return lambda _: True
    if len(tests) == 2:
        first, second = tests
        return lambda document: first(document) and second(document)

    def matches(document: Document) -> bool:
        for test in tests:  # noqa: SIM110 - a loop, since `all` over a generator costs twice as much
            if not test(document):
                return False
        return True

    return matches


def _last_position(children: tuple[Node, ...]) -> Position:
    ordered = sorted(children, key=lambda child: (_KIND_RANKS.get(child.kind, len(_KIND_RANKS)), child.path))
    positions = tuple(child.position for child in reversed(ordered) if child.position is not no_position)
    if not positions:
        return no_position

    def position(document: Any) -> int | None:
        for find in positions:
            index = find(document)
            if index is not None:
                return index
        return None

    return position


def _first_position(children: tuple[Node, ...]) -> Position:
    def position(document: Any) -> int | None:
        found = [index for child in children if (index := child.position(document)) is not None]
        return min(found, default=None)

    return position


@dataclass(frozen=True, slots=True)
class Match:
    """A compiled filter."""

    node: Node
    cell: VariablesCell
    matches: Matches
    # The conjunction as facts for the planner: conditions that must hold.
    conditions: tuple[Condition, ...] = ()
    # The alternatives of a $or that must hold (the first one, if there are several); empty without one.
    alternatives: tuple[Match, ...] = ()
    # The objects that filters/text.py and filters/geo.py made of $text and $near: the search that orders the results.
    text: Any = None
    geo: Any = None
    uses_expr: bool = False
    uses_where: bool = False

    @property
    def is_planned(self) -> bool:
        """True if the conditions say all that the filter does."""
        node = self.node
        return all(part.kind in _PLANNED_KINDS for part in (node.children if node.kind == "and" else (node,)))

    def foresee(self, documents: Sequence[Document]) -> None:
        """Let the scripts of $where decide about many documents at once: those that the rest of a conjunction holds
        for."""
        parts = self.node.children if self.node.kind == "and" else (self.node,)
        others = _all_of(tuple(part.matches for part in parts if part.kind != "where"))
        scripts = [part.value for part in parts if part.kind == "where" and part.value is not None]
        if scripts and not self.uses_expr:
            candidates = [document for document in documents if others(document)]
            for script in scripts:
                script.foresee(candidates)

    def array_index(self, document: Document) -> int | None:
        """Return the position of the array element that a matching document matched with: what `$` stands for."""
        return self.node.position(document)

    def with_variables(self, variables: Variables) -> Matches:
        """Return a decision in which `$expr` sees the variables: those of `let`."""
        cell, matches = self.cell, self.matches
        if not self.uses_expr:
            return matches

        def decide(document: Document) -> bool:
            cell.variables = variables
            return matches(document)

        return decide

    @property
    def id_value(self) -> Any:
        """The value that `_id` must equal, or MISSING."""
        for path, operator, value in self.conditions:
            if path == "_id" and operator == "eq":
                return value
        return MISSING

    def equalities(self) -> dict[str, Any]:
        """Return the fields that an upsert takes from the filter, by their paths."""
        found: dict[str, Any] = {}
        _collect_equalities(self.node, found)
        return found


def _collect_equalities(node: Node, found: dict[str, Any]) -> None:
    if node.kind == "and":
        for child in node.children:
            _collect_equalities(child, found)
    elif node.kind == "eq":
        _add_equality(node.path, node.value, found)
    elif node.kind == "in" and len(node.value) == 1:
        _add_equality(node.path, node.value[0], found)


def _add_equality(path: str, value: Any, found: dict[str, Any]) -> None:
    for other in found:
        if other == path or other.startswith(path + ".") or path.startswith(other + "."):
            raise MongoFailure(54, f"cannot infer query fields to set, path '{path}' is matched twice")
    found[path] = value


def facts_of(node: Node) -> tuple[Condition, ...]:
    """Return the conditions that must hold where the node holds."""
    if node.kind == "and":
        return tuple(fact for child in node.children for fact in facts_of(child))
    if node.kind in _PLANNED_KINDS:
        return (Condition(node.path, node.kind, node.value),)
    if node.kind == "geo" or node.kind == "text":
        return (Condition(node.path, node.kind, node.value),)
    if node.kind == "regex" and node.value is not None:
        return (Condition(node.path, "regex_prefix", node.value),)
    if node.kind in ("elemMatch", "elemMatchObject"):
        return (Condition(node.path, "elemMatch", facts_of(node.children[0])),)
    if node.kind == "not" and node.children[0].kind == "exists":
        return (Condition(node.path, "exists", False),)
    return ()


def alternatives_of(node: Node) -> tuple[Node, ...]:
    """Return the children of the first disjunction that must hold."""
    for child in node.children if node.kind == "and" else (node,):
        if child.kind == "or":
            return child.children
    return ()

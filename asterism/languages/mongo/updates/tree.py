"""The changes of an update as a tree of paths, applied in one walk that copies only what it changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Matches
from asterism.languages.mongo.updates.operator import ApplyState, Change
from asterism.languages.mongo.updates.paths import (
    PADDING_MAX,
    POSITIONAL,
    Parts,
    element_index,
    identifier_of,
    is_array_update,
    name_order,
)
from asterism.languages.mongo.updates.rename import RenamePaths
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import MISSING


class Leaf:
    """The change at the end of a path; without one, a path that no other change may touch."""

    __slots__ = ("apply", "path", "tolerates_dead_paths")

    def __init__(self, path: str, change: Change, *, tolerates_dead_paths: bool = False) -> None:
        self.path, self.apply, self.tolerates_dead_paths = path, change, tolerates_dead_paths

    def refuse(self, name: str, parent: Any, state: ApplyState) -> None:
        """Fail, since the field cannot exist below `parent`, unless the operator passes over such paths."""
        if self.tolerates_dead_paths:
            return
        if isinstance(self.apply, RenamePaths) and self.apply(MISSING, state) is MISSING:
            return
        raise MongoFailure(
            28, f"Cannot create field '{name}' in an element of type {type_name(parent)} (path '{self.path}')"
        )


class ObjectNode:
    """The changes below a path by field names, or by indexes where the value is an array."""

    __slots__ = ("children", "merged", "path", "positional", "steps")

    def __init__(self, path: str) -> None:
        self.path = path
        self.children: dict[str, Node] = {}
        # The child behind `$`, whose name is known only with the document.
        self.positional: Node | None = None
        self.steps: list[tuple[str, Node]] = []
        self.merged: dict[str, Node] = {}

    def apply(self, value: Any, state: ApplyState) -> Any:
        steps = self.steps if self.positional is None else self._steps_at(state.position(self.path))
        if type(value) is dict:
            return _apply_to_document(steps, value, state)
        if value is MISSING:
            created = _apply_to_document(steps, {}, state)
            return created or MISSING
        if type(value) is list:
            return _apply_to_array(steps, value, state)
        for name, child in steps:
            child.refuse(name, value, state)
        return value

    def _steps_at(self, index: int) -> list[tuple[str, Node]]:
        """Return the steps with the positional child in the place of the field it means for this document."""
        name, positional = str(index), self.positional
        assert positional is not None
        if name not in self.children:
            return [*self.steps, (name, positional)]
        if name not in self.merged:
            self.merged[name] = merge(self.children[name], positional, f"{self.path}.{name}")
        return [(step, self.merged[name] if step == name else child) for step, child in self.steps]

    def refuse(self, name: str, parent: Any, state: ApplyState) -> None:
        for _, child in self.steps:
            child.refuse(name, parent, state)
        if self.positional is not None:
            self.positional.refuse(name, parent, state)


class ArrayNode:
    """The changes of all elements of an array, `$[]`, and of those that a filter selects, `$[identifier]`."""

    __slots__ = ("children", "filters", "merged", "path")

    def __init__(self, path: str, filters: dict[str, Matches]) -> None:
        self.path, self.filters = path, filters
        self.children: dict[str, Node] = {}
        self.merged: dict[Parts, Node] = {}

    def apply(self, value: Any, state: ApplyState) -> Any:
        if value is MISSING:
            raise MongoFailure(2, f"The path '{self.path}' must exist in the document in order to apply array updates.")
        if type(value) is not list:
            raise MongoFailure(2, f"Cannot apply array updates to non-array element {self.path}: {type_name(value)}")
        changed = False
        elements: list[Any] = []
        for element in value:
            identifiers = tuple(
                identifier
                for identifier in self.children
                if not identifier or self.filters[identifier]({identifier: element})
            )
            new = self._child(identifiers).apply(element, state) if identifiers else element
            if new is MISSING:
                new = None
            changed = changed or new is not element
            elements.append(new)
        return elements if changed else value

    def _child(self, identifiers: Parts) -> Node:
        """Return the changes of an element that several identifiers select."""
        if len(identifiers) == 1:
            return self.children[identifiers[0]]
        if identifiers not in self.merged:
            node = self.children[identifiers[0]]
            for identifier in identifiers[1:]:
                node = merge(node, self.children[identifier], self.path)
            self.merged[identifiers] = node
        return self.merged[identifiers]

    def refuse(self, _name: str, _parent: Any, _state: ApplyState) -> None:
        raise MongoFailure(2, f"The path '{self.path}' must exist in the document in order to apply array updates.")


Node = Leaf | ObjectNode | ArrayNode


def _apply_to_document(steps: list[tuple[str, Node]], value: dict[str, Any], state: ApplyState) -> dict[str, Any]:
    result = value
    for name, child in steps:
        old = value.get(name, MISSING)
        new = child.apply(old, state)
        if new is old:
            continue
        if result is value:
            result = dict(value)
        if new is MISSING:
            del result[name]
        else:
            result[name] = new
    return result


def _apply_to_array(steps: list[tuple[str, Node]], value: list[Any], state: ApplyState) -> list[Any]:
    result = value
    for name, child in steps:
        index = element_index(name)
        if index is None:
            child.refuse(name, value, state)
            continue
        old = result[index] if index < len(result) else MISSING
        new = child.apply(old, state)
        # An element cannot be removed without moving the others: null takes its place.
        if new is MISSING and old is not MISSING:
            new = None
        if new is old:
            continue
        if result is value:
            result = list(value)
        if index >= len(result):
            if index - len(result) > PADDING_MAX:
                raise MongoFailure(34, f"can't backfill more than {PADDING_MAX} elements")
            result.extend([None] * (index + 1 - len(result)))
        result[index] = new
    return result


def conflict(path: str) -> MongoFailure:
    return MongoFailure(40, f"Updating the path '{path}' would create a conflict at '{path}'")


class TreeBuilder:
    """Collects changes by their paths and refuses those that touch one another."""

    def __init__(self, filters: dict[str, Matches]) -> None:
        self.filters = filters
        self.root = ObjectNode("")

    def add(self, parts: Parts, leaf: Leaf) -> None:
        node: ObjectNode | ArrayNode = self.root
        for depth, part in enumerate(parts[:-1], 1):
            child = _child_of(node, part)
            needs_array = is_array_update(parts[depth])
            if child is None:
                path = ".".join(parts[:depth])
                child = ArrayNode(path, self.filters) if needs_array else ObjectNode(path)
                _set_child(node, part, child)
            if isinstance(child, Leaf) or isinstance(child, ArrayNode) != needs_array:
                raise conflict(leaf.path)
            node = child
        if _child_of(node, parts[-1]) is not None:
            raise conflict(leaf.path)
        _set_child(node, parts[-1], leaf)

    def build(self) -> ObjectNode:
        _arrange(self.root)
        return self.root


def _child_of(node: ObjectNode | ArrayNode, part: str) -> Node | None:
    if isinstance(node, ArrayNode):
        return node.children.get(identifier_of(part))
    return node.positional if part == POSITIONAL else node.children.get(part)


def _set_child(node: ObjectNode | ArrayNode, part: str, child: Node) -> None:
    if isinstance(node, ArrayNode):
        node.children[identifier_of(part)] = child
    elif part == POSITIONAL:
        node.positional = child
    else:
        node.children[part] = child


def _arrange(node: Node) -> None:
    """Put the children in the order in which they are applied."""
    if isinstance(node, Leaf):
        return
    names = sorted(node.children, key=name_order)
    if isinstance(node, ObjectNode):
        node.steps = [(name, node.children[name]) for name in names]
    else:
        node.children = {name: node.children[name] for name in names}
    for child in _children(node):
        _arrange(child)


def _children(node: ObjectNode | ArrayNode) -> Iterator[Node]:
    yield from node.children.values()
    if isinstance(node, ObjectNode) and node.positional is not None:
        yield node.positional


def merge(left: Node, right: Node, path: str) -> Node:
    """Return the changes of two nodes that turned out to concern one value."""
    if isinstance(left, ObjectNode) and isinstance(right, ObjectNode):
        merged: ObjectNode | ArrayNode = ObjectNode(path)
    elif isinstance(left, ArrayNode) and isinstance(right, ArrayNode):
        merged = ArrayNode(path, left.filters)
    else:
        raise MongoFailure(40, f"Update created a conflict at '{path}'")
    for node in (left, right):
        for name, child in node.children.items():
            present = merged.children.get(name)
            merged.children[name] = child if present is None else merge(present, child, f"{path}.{name}")
        if isinstance(node, ObjectNode) and isinstance(merged, ObjectNode) and node.positional is not None:
            present = merged.positional
            merged.positional = node.positional if present is None else merge(present, node.positional, f"{path}.$")
    _arrange(merged)
    return merged

"""Patch: a few changes inside of one item, named by paths, done all or not at all.

Paths are JSON pointers. `add` inserts into arrays where `set` replaces, and neither creates a path whose parent does
not exist. Messages name the operation by its number, as the service's do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from asterism.errors import MalformedRequest, PreconditionFailed
from asterism.limits import ITEM_NESTING_LEVELS_MAX
from asterism.models.documents.cosmos.properties import RESERVED_PROPERTIES
from asterism.values.item import Item, check_nesting
from asterism.values.undefined import UNDEFINED

# The service refuses more with 400.
PATCH_OPERATIONS_MAX: Final = 10

_APPEND: Final = "-"
_NEEDS_VALUE: Final = frozenset({"add", "set", "replace", "incr"})
_KINDS: Final = (*sorted(_NEEDS_VALUE), "remove", "move")

Segments = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PatchOperation:
    kind: str
    path: Segments
    value: Any = UNDEFINED
    source: Segments = ()


@dataclass(frozen=True, slots=True)
class Patch:
    """Operations in their order, and the condition that the item must meet first. A `DocumentEdit`."""

    operations: tuple[PatchOperation, ...]
    condition: Callable[[Item], bool] | None = None

    def apply(self, item: Item) -> None:
        """Change `item`, which must not be used if this raises PreconditionFailed or MalformedRequest."""
        if self.condition is not None and not self.condition(item):
            raise PreconditionFailed
        for number, operation in enumerate(self.operations, start=1):
            _Changer(item, number, operation).change()
        # A patch can put a value of any depth below a path of any depth.
        check_nesting(item, levels_max=ITEM_NESTING_LEVELS_MAX)


def parse_operations(given: object, *, key_paths: Sequence[Segments]) -> tuple[PatchOperation, ...]:
    """Return the operations of a request. `key_paths` lead to the partition key, which a patch cannot change."""
    if not isinstance(given, list) or not given:
        raise MalformedRequest(reason="A patch needs 'operations', a list with at least one of them.")
    if len(given) > PATCH_OPERATIONS_MAX:
        raise MalformedRequest(
            reason=f"The number of patch operations can't exceed '{PATCH_OPERATIONS_MAX}', and there are {len(given)}."
        )
    return tuple(_parse_operation(number, entry, key_paths) for number, entry in enumerate(given, start=1))


def _parse_operation(number: int, entry: object, key_paths: Sequence[Segments]) -> PatchOperation:
    if not isinstance(entry, Mapping):
        _refuse(number, "it must be an object with 'op' and 'path'.")
    kind = entry.get("op")
    if kind not in _KINDS:
        _refuse(number, f"the operation '{str(kind)[:32]}' is not one of {', '.join(_KINDS)}.")
    value = entry.get("value", UNDEFINED)
    if kind in _NEEDS_VALUE and value is UNDEFINED:
        _refuse(number, f"{kind} needs a 'value'.")
    if kind == "incr" and (not isinstance(value, int | float) or isinstance(value, bool)):
        _refuse(number, "the value of incr must be a number.")
    path = _parse_path(number, entry.get("path"), key_paths)
    source = _parse_path(number, entry.get("from"), key_paths) if kind == "move" else ()
    if source and path[: len(source)] == source and path != source:
        _refuse(number, "the path of a move cannot lie inside of what is moved.")
    if source and source[-1] == _APPEND:
        _refuse(number, "'-' is the place behind the end of an array, where there is nothing to move.")
    return PatchOperation(kind, path, value, source)


def _parse_path(number: int, path: object, key_paths: Sequence[Segments]) -> Segments:
    if not isinstance(path, str) or not path.startswith("/") or len(path) < 2:
        _refuse(number, f"the path '{str(path)[:64]}' must begin with '/' and name a property.")
    segments = tuple(text.replace("~1", "/").replace("~0", "~") for text in path[1:].split("/"))
    if segments[0] in RESERVED_PROPERTIES:
        _refuse(number, f"the system property '{segments[0]}' and all below it cannot be patched.")
    for key_path in key_paths:
        shared = min(len(key_path), len(segments))
        if key_path[:shared] == segments[:shared]:
            _refuse(number, f"the path '{path[:64]}' touches the partition key, which cannot be patched.")
    return segments


def _refuse(number: int, sentence: str) -> NoReturn:
    raise MalformedRequest(reason=f"For Operation({number}): {sentence}")


@dataclass(slots=True)
class _Changer:
    """An operation and the item that it changes."""

    item: Item
    number: int
    operation: PatchOperation

    def change(self) -> None:
        operation = self.operation
        match operation.kind:
            case "remove":
                self._take(operation.path)
            case "move":
                self._move()
            case "incr":
                self._increment()
            case "replace":
                parent, name = self._existing(operation.path)
                parent[name] = self._value()
            case _:
                self._put(operation.path, self._value(), inserts=operation.kind == "add")

    def _value(self) -> Any:
        """Return a copy of the operation's value: a later operation may change it, and a unit of work that was
        overtaken applies the patch again."""
        value = self.operation.value
        return deepcopy(value) if isinstance(value, dict | list) else value

    def _refuse(self, sentence: str) -> NoReturn:
        _refuse(self.number, sentence)

    def _parent(self, path: Segments) -> dict[str, Any] | list[Any]:
        """Return the existing object or array that holds the last segment of a path."""
        node: Any = self.item
        for name in path[:-1]:
            if isinstance(node, dict) and name in node:
                node = node[name]
            elif isinstance(node, list):
                node = node[self._index(name, last=len(node) - 1)]
            else:
                self._refuse_beyond(name)
        if not isinstance(node, dict | list):
            self._refuse_beyond(path[-1])
        return node

    def _refuse_beyond(self, name: str) -> NoReturn:
        kind = self.operation.kind.capitalize()
        self._refuse(
            f"{kind} Operation can only reach a child of an existing node (array or object) and cannot create a path "
            f"recursively; no path found beyond: '{name[:64]}'."
        )

    def _index(self, name: str, *, last: int) -> int:
        """Return an index of an array. A pointer's number has neither leading zeros nor a sign."""
        is_number = name.isascii() and name.isdigit() and (name == "0" or name[0] != "0")
        # Longer numbers are outside of every array, and would take their time to read.
        if not is_number or len(name) > 9 or int(name) > last:
            self._refuse(f"the array has no element '{name[:64]}'.")
        return int(name)

    def _existing(self, path: Segments) -> tuple[Any, Any]:
        """Return the holder of the value at a path, and its name or index there."""
        parent = self._parent(path)
        name = path[-1]
        if isinstance(parent, list):
            return parent, self._index(name, last=len(parent) - 1)
        if name not in parent:
            kind = self.operation.kind.capitalize()
            self._refuse(f"{kind} Operation can only be performed on a path that exists; there is no '{name[:64]}'.")
        return parent, name

    def _take(self, path: Segments) -> Any:
        parent, name = self._existing(path)
        return parent.pop(name)

    def _put(self, path: Segments, value: Any, *, inserts: bool) -> None:
        parent = self._parent(path)
        name = path[-1]
        if isinstance(parent, dict):
            parent[name] = value
        elif name == _APPEND:
            parent.append(value)
        elif inserts:
            parent.insert(self._index(name, last=len(parent)), value)
        else:
            parent[self._index(name, last=len(parent) - 1)] = value

    def _move(self) -> None:
        source, path = self.operation.source, self.operation.path
        # Found before anything is taken away, so that a path that cannot be says so and not something else.
        self._existing(source)
        if source != path:
            self._put(path, self._take(source), inserts=True)

    def _increment(self) -> None:
        path, step = self.operation.path, self.operation.value
        parent = self._parent(path)
        if isinstance(parent, dict) and path[-1] not in parent:
            parent[path[-1]] = step
            return
        holder, name = self._existing(path)
        before = holder[name]
        if not isinstance(before, int | float) or isinstance(before, bool):
            self._refuse("Incr Operation can only be performed on a number.")
        after = before + step
        if isinstance(after, float) and not math.isfinite(after):
            self._refuse("the sum is not a number that JSON has.")
        holder[name] = after

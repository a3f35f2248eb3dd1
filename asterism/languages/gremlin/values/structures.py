"""Values that Gremlin has beside those of Python: paths, entries of maps, trees, and hashable lists and maps."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any


class Path:
    """The objects that a traverser came by, each with the labels of its step."""

    __slots__ = ("labels", "objects")

    def __init__(self, labels: Sequence[Set[str]], objects: Sequence[Any]) -> None:
        self.labels = labels
        self.objects = objects

    def __len__(self) -> int:
        return len(self.objects)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Path)
            and list(self.objects) == list(other.objects)
            and [frozenset(names) for names in self.labels] == [frozenset(names) for names in other.labels]
        )

    def __hash__(self) -> int:
        return hash((Path, tuple(freeze(value) for value in self.objects)))

    def __repr__(self) -> str:
        return "path[" + ", ".join(repr(value) for value in self.objects) + "]"


class MapEntry:
    """A key and its value, as `unfold()` takes them out of a map."""

    __slots__ = ("key", "value")

    def __init__(self, key: Any, value: Any) -> None:
        self.key = key
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapEntry) and bool(self.key == other.key) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash((MapEntry, freeze(self.key)))

    def __repr__(self) -> str:
        return f"{self.key!r}={self.value!r}"


class Tree(dict[Any, Any]):
    """A tree of paths: each key is an object, and its value the tree of those that followed it."""

    __slots__ = ()


class FrozenList(list[Any]):
    """A list that is a key of a map or a member of a set; it must not be changed."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]  # A list has none, because it may change.
        return hash((FrozenList, tuple(self)))


class FrozenMap(dict[Any, Any]):
    """A map that is a key of a map or a member of a set; it must not be changed."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]  # A dict has none, because it may change.
        # Values need no hash here: maps with the same keys are told apart by equality.
        return hash((FrozenMap, frozenset(self)))


FrozenSet = frozenset


def freeze(value: Any) -> Any:
    """Return a value in a form that has a hash, with all that it contains; equal to the value."""
    if isinstance(value, list | tuple):
        return FrozenList(map(freeze, value))
    if isinstance(value, dict):
        return FrozenMap((freeze(key), freeze(entry)) for key, entry in value.items())
    if isinstance(value, set):
        return FrozenSet(value)
    return value

"""Entries of maps, and lists, maps and sets that have a hash, so that they can be keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


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


class BulkSet(list[Any]):
    """The values that `aggregate` collects, each as often as it came: a list here, but a set to `typeOf`."""

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
        # Values too: `select` and `project` make maps that all have the same keys.
        try:
            return hash((FrozenMap, frozenset(self.items())))
        except TypeError:
            # A value without a hash; such maps are told apart by equality.
            return hash((FrozenMap, frozenset(self)))


FrozenSet = frozenset


class OrderedSet(frozenset[Any]):
    """A set that remembers the order of its members, as the keys of a map do."""

    __slots__ = ("_members",)

    _members: tuple[Any, ...]

    def __new__(cls, members: Iterable[Any] = ()) -> OrderedSet:
        ordered = tuple(dict.fromkeys(members))
        made = super().__new__(cls, ordered)
        made._members = ordered
        return made

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members)


def freeze(value: Any) -> Any:
    """Return a value in a form that has a hash, with all that it contains; equal to the value."""
    if isinstance(value, list | tuple):
        return FrozenList(map(freeze, value))
    if isinstance(value, dict):
        return FrozenMap((freeze(key), freeze(entry)) for key, entry in value.items())
    if isinstance(value, set):
        return FrozenSet(value)
    return value

"""The keys of a document in an index: one for each element of an array, or for each path of a wildcard index.

In a key, a missing field is null, and an empty array is MISSING, which sorts below null and is not equal to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, final

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Matches
from asterism.languages.mongo.indexes.key_pattern import WILDCARD, is_wildcard_path
from asterism.languages.mongo.indexes.specification import Keys
from asterism.languages.mongo.indexes.wildcard_projections import PathFilter
from asterism.values.bson.key_bytes import encode_key
from asterism.values.bson.order import sort_key
from asterism.values.bson.types import MISSING, Document, Int64, MinKey

Parts = tuple[str, ...]
KeysOf = Callable[[Document], Keys]


@final
class _Absent:
    """A path that leads nowhere, told apart from an empty array."""


_ABSENT: Final = _Absent()
_NO_KEYS: Keys = ((), False)


def where(holds: Matches | None, keys_of: KeysOf) -> KeysOf:
    """Return the keys of documents for which the condition of a partial index holds."""
    if holds is None:
        return keys_of
    return lambda document: keys_of(document) if holds(document) else _NO_KEYS


def ordered_keys(key: Document, *, sparse: bool) -> KeysOf:
    """Return the keys of an index of fields with directions."""
    paths = [tuple(path.split(".")) for path in key]

    def keys_of(document: Document) -> Keys:
        found: list[tuple[Any, ...]] = []
        is_multikey = _expand([(document, path) for path in paths], found)
        kept = [values for values in found if not sparse or any(value is not _ABSENT for value in values)]
        distinct = {
            tuple(map(sort_key, stored)): stored for stored in (tuple(map(_stored, kept_key)) for kept_key in kept)
        }
        return list(distinct.values()), is_multikey

    return keys_of


def _stored(value: Any) -> Any:
    return None if value is _ABSENT else value


def _expand(places: Sequence[tuple[Any, Parts]], found: list[tuple[Any, ...]]) -> bool:
    """Collect the keys of values with the rest of their paths; return whether an array was entered. All fields that
    stop at an array must stop at the same one."""
    reached = [_advance(value, path) for value, path in places]
    arrays = [(value, path) for value, path, is_array in reached if is_array]
    if not arrays:
        found.append(tuple(value for value, _, _ in reached))
        return False
    array = arrays[0][0]
    if any(other is not array for other, _ in arrays):
        raise MongoFailure(171, "cannot index parallel arrays")
    for element in array or [MISSING]:
        _expand_element(element, reached, found)
    return True


def _expand_element(element: Any, reached: Sequence[tuple[Any, Parts, bool]], found: list[tuple[Any, ...]]) -> None:
    places: list[tuple[Any, Parts]] = []
    for value, path, is_array in reached:
        if not is_array:
            places.append((_Final(value), ()))
        elif not path:
            # An array inside the array is a value; it is not entered.
            places.append((_Final(element), ()))
        elif type(element) is dict or (type(element) is list and path[0].isdigit()):
            places.append((element, path))
        else:
            places.append((_Final(_ABSENT), ()))
    _expand(places, found)


@final
class _Final:
    """A value of the key that is known, also if it is an array."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _advance(value: Any, path: Parts) -> tuple[Any, Parts, bool]:
    """Follow a path to its end or to the first array; return the value, the rest of the path, and whether it is an
    array to be expanded."""
    if type(value) is _Final:
        return value.value, (), False
    for depth, part in enumerate(path):
        if type(value) is dict:
            value = value.get(part, _ABSENT)
        elif type(value) is list:
            if not part.isdigit():
                return value, path[depth:], True
            value = value[int(part)] if int(part) < len(value) else _ABSENT
        else:
            return _ABSENT, (), False
    return value, (), type(value) is list


def hashed_keys(key: Document, *, sparse: bool) -> KeysOf:
    """Return the keys of an index with one hashed field: its value is replaced by 64 bits."""
    ordered = ordered_keys(key, sparse=sparse)
    position = list(key.values()).index("hashed")

    def keys_of(document: Document) -> Keys:
        keys, is_multikey = ordered(document)
        if is_multikey:
            raise MongoFailure(16766, "hashed indexes do not currently support array values")
        return [(*values[:position], _hash(values[position]), *values[position + 1 :]) for values in keys], False

    return keys_of


def _hash(value: Any) -> Int64:
    digest = hashlib.md5(encode_key(value), usedforsecurity=False).digest()
    return Int64(int.from_bytes(digest[:8], "little", signed=True))


def wildcard_keys(key: Document, paths: PathFilter) -> KeysOf:
    """Return the keys of a wildcard index. The wildcard takes two values of a key: the path and the value there."""
    names = list(key)
    position = next(index for index, name in enumerate(names) if is_wildcard_path(name))
    prefix = tuple(names[position].split("."))[:-1]
    others = {name: key[name] for name in names if name != names[position]}
    other_keys = ordered_keys(others, sparse=False) if others else None

    def keys_of(document: Document) -> Keys:
        pairs: list[tuple[str, Any]] = []
        is_multikey = False
        for path, value, in_array in _leaves(document, prefix):
            if paths.includes(path):
                pairs.append((path, value))
                is_multikey = is_multikey or in_array
        if other_keys is None:
            return list(_distinct(pairs)), is_multikey
        fixed, entered_array = other_keys(document)
        if entered_array:
            raise MongoFailure(7246301, "The regular fields of a compound wildcard index cannot hold arrays")
        values = fixed[0]
        # A document without any such path still has an entry for its other fields.
        distinct = list(_distinct(pairs)) or [(MinKey(), MinKey())]
        return [(*values[:position], *pair, *values[position:]) for pair in distinct], is_multikey

    return keys_of


def _distinct(pairs: list[tuple[str, Any]]) -> Iterator[tuple[Any, Any]]:
    yield from {(path, sort_key(value)): (path, value) for path, value in pairs}.values()


def _leaves(document: Document, prefix: Parts) -> Iterator[tuple[str, Any, bool]]:
    """Yield the paths below a prefix with their values, and whether an array stood on the way."""
    for value, in_array in _below(document, prefix, in_array=False):
        yield from _walk(value, ".".join(prefix), in_array=in_array)


def _below(value: Any, parts: Parts, *, in_array: bool) -> Iterator[tuple[Any, bool]]:
    if not parts:
        yield value, in_array
    elif type(value) is dict:
        if parts[0] in value:
            yield from _below(value[parts[0]], parts[1:], in_array=in_array)
    elif type(value) is list:
        for element in value:
            if type(element) is dict:
                yield from _below(element, parts, in_array=True)


def _walk(value: Any, path: str, *, in_array: bool) -> Iterator[tuple[str, Any, bool]]:
    if type(value) is dict and value:
        for name, inner in value.items():
            yield from _walk(inner, f"{path}.{name}" if path else name, in_array=in_array)
    elif type(value) is list and value:
        for element in value:
            if type(element) is dict:
                yield from _walk(element, path, in_array=True)
            else:
                yield path, element, True
    elif path:
        yield path, MISSING if type(value) is list else value, in_array or type(value) is list


__all__ = ["WILDCARD", "hashed_keys", "ordered_keys", "where", "wildcard_keys"]

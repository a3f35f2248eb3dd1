"""The partition key of an item: its definition, its value in an item, its value in a request."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NoReturn

from asterism.errors import MalformedRequest, PartitionKeyMismatch
from asterism.limits import PARTITION_KEY_BYTES_MAX, PARTITION_KEY_LEVELS_MAX
from asterism.partitioning.key_path import check_key_path, parse_key_path
from asterism.values.undefined import UNDEFINED, Undefined

Component = str | int | float | bool | None | Undefined
PartitionKey = tuple[Component, ...]

# The key of every item in a fixed container, which has no partition key (spec C12).
SYSTEM_KEY: PartitionKey = ()

# Integers up to here are doubles without loss; larger ones are rounded to the double that JSON's readers see.
_EXACT_INTEGER_MAX = 2**53
# UTF-8 needs at most four bytes a character, so strings up to here need not be measured.
CHARACTERS_SURELY_SHORT = PARTITION_KEY_BYTES_MAX // 4
# Longer headers are parsed each time, so that a few large keys cannot fill memory.
_CACHED_HEADER_CHARACTERS_MAX = 256
_CACHED_HEADERS_MAX = 8192

# In a stored definition: which strings of a version 1 key have a digest in their points.
_DIGESTS = "digests"


class PartitionKeyKind(enum.Enum):
    HASH = "Hash"
    MULTI_HASH = "MultiHash"
    # The line is the order of the keys themselves, not of their hashes. Only for keyspaces made by the program itself.
    RANGE = "Range"
    # The line is a row of numbers, chosen when the keyspace is created; each is a logical partition, and by itself in a
    # physical one. Only for keyspaces made by the program itself.
    NUMBERED = "Numbered"


# Kinds whose line is the order of the keys: it has no middle without data.
_ORDERED_KINDS = frozenset({PartitionKeyKind.RANGE, PartitionKeyKind.NUMBERED})
_POINT_NUMBER_BYTES = 2
# Points stay below the end of the line, `FF`.
NUMBERED_POINTS_MAX = 0xFF00


def numbered_point(number: int) -> bytes:
    """Return the point of a number on a numbered line."""
    return number.to_bytes(_POINT_NUMBER_BYTES, "big")


def number_of_point(point: bytes) -> int:
    return int.from_bytes(point[:_POINT_NUMBER_BYTES], "big")


@dataclass(frozen=True, slots=True)
class PartitionKeyDefinition:
    """The paths of the key in an item, and the version of the service's hash function that places it.

    `system_key` marks a fixed container: its path is only shown to clients, and every item has `SYSTEM_KEY`.
    """

    paths: tuple[str, ...]
    kind: PartitionKeyKind = PartitionKeyKind.HASH
    version: int = 2
    system_key: bool = False
    # A version 1 key keeps the first 100 characters of a string; a stored point of one with as many bytes as this gets
    # a digest of the whole (see `effective_key.storage_point`). Older containers have it from 101 characters on.
    digests_cut_strings_only: bool = False
    segments: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    # The name of the property if the key is a single top-level property: by far the usual case, kept fast.
    only_property: str | None = field(init=False, repr=False, compare=False)
    # True for a single value that the service's second hash function places: nearly every key.
    hashes_version_2: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        segments = tuple(parse_key_path(path) for path in self.paths)
        single = len(segments) == 1 and len(segments[0]) == 1 and not self.system_key
        object.__setattr__(self, "segments", segments)
        object.__setattr__(self, "only_property", segments[0][0] if single else None)
        is_hashed = self.kind is PartitionKeyKind.HASH and self.version == 2 and not self.system_key
        object.__setattr__(self, "hashes_version_2", is_hashed)

    @property
    def is_ordered(self) -> bool:
        """Return True if the line is the order of the keys themselves."""
        return self.kind in _ORDERED_KINDS

    @classmethod
    def parse(cls, definition: object) -> PartitionKeyDefinition:
        """Read the JSON object that a client sends to create a container."""
        return cls._parse(definition, check_path=check_key_path)

    @classmethod
    def _parse(cls, definition: object, *, check_path: Callable[[str], object]) -> PartitionKeyDefinition:
        if not isinstance(definition, Mapping):
            raise MalformedRequest(reason="The partition key definition must be an object with 'paths'.")
        kind = _parse_kind(definition.get("kind", PartitionKeyKind.HASH.value))
        version = definition.get("version")
        if version is None:
            version = default_version(kind.value)
        if type(version) is not int or version not in (1, 2):
            raise MalformedRequest(reason="The partition key definition's 'version' must be 1 or 2.")
        if kind is PartitionKeyKind.MULTI_HASH and version != 2:
            raise MalformedRequest(reason="A hierarchical partition key (MultiHash) needs version 2.")
        system_key = definition.get("systemKey", False)
        if not isinstance(system_key, bool):
            raise MalformedRequest(reason="The partition key definition's 'systemKey' must be true or false.")
        if system_key and kind is PartitionKeyKind.MULTI_HASH:
            raise MalformedRequest(reason="A container without a partition key cannot have the kind MultiHash.")
        paths = _parse_paths(definition.get("paths"), kind, check_path)
        return cls(paths=paths, kind=kind, version=version, system_key=system_key)

    @classmethod
    def from_record(cls, stored: Mapping[str, object]) -> PartitionKeyDefinition:
        """Read a record of `to_record`, including kinds that clients cannot ask for and paths that are now refused."""
        kind = next((ordered for ordered in _ORDERED_KINDS if stored.get("kind") == ordered.value), None)
        if kind is None:
            parsed = cls._parse(stored, check_path=parse_key_path)
            return parsed if _DIGESTS in stored else replace(parsed, digests_cut_strings_only=parsed.version == 1)
        paths = _parse_paths(stored.get("paths"), PartitionKeyKind.HASH, parse_key_path)
        return cls(paths=paths, kind=kind)

    def to_json(self) -> dict[str, object]:
        """Return the definition as clients see it."""
        shown: dict[str, object] = {"paths": list(self.paths), "kind": self.kind.value, "version": self.version}
        if self.system_key:
            shown["systemKey"] = True
        return shown

    def to_record(self) -> dict[str, object]:
        """Return the definition as it is stored: with the choice of digests, which clients do not see."""
        if self.version == 1 and not self.digests_cut_strings_only:
            return {**self.to_json(), _DIGESTS: "long"}
        return self.to_json()


def default_version(kind: object) -> int:
    """Return the version of a definition without one: the service's first, which has no hierarchical keys."""
    return 2 if kind == PartitionKeyKind.MULTI_HASH.value else 1


def _parse_kind(kind: object) -> PartitionKeyKind:
    for known in (PartitionKeyKind.HASH, PartitionKeyKind.MULTI_HASH):
        if kind == known.value:
            return known
    raise MalformedRequest(reason="The partition key definition's 'kind' must be 'Hash' or 'MultiHash'.")


def _parse_paths(paths: object, kind: PartitionKeyKind, check_path: Callable[[str], object]) -> tuple[str, ...]:
    if isinstance(paths, str) or not isinstance(paths, Sequence) or not paths:
        raise MalformedRequest(reason="The partition key definition needs 'paths', a list with at least one path.")
    if kind is PartitionKeyKind.HASH and len(paths) != 1:
        raise MalformedRequest(
            reason="Too many partition key paths: the kind Hash has exactly one; several need the kind MultiHash."
        )
    if len(paths) > PARTITION_KEY_LEVELS_MAX:
        raise MalformedRequest(reason=f"Too many partition key paths: at most {PARTITION_KEY_LEVELS_MAX} are allowed.")
    segments = []
    for path in paths:
        if not isinstance(path, str):
            raise MalformedRequest(reason="Each partition key path must be a string.")
        check_path(path)
        segments.append(parse_key_path(path))
    if len(set(segments)) != len(segments):
        raise MalformedRequest(reason="The partition key definition names a path twice.")
    return tuple(paths)


def extract(definition: PartitionKeyDefinition, item: Mapping[str, object]) -> PartitionKey:
    """Return the item's own key: one component per path, UNDEFINED where the item has no value at the path."""
    name = definition.only_property
    if name is not None:
        value = item.get(name, UNDEFINED)
        if type(value) is str and len(value) <= CHARACTERS_SURELY_SHORT:
            return (value,)
        return (_extracted(value),)
    if definition.system_key:
        return SYSTEM_KEY
    return tuple([_extracted(value_at(item, segments)) for segments in definition.segments])


def value_at(item: Mapping[str, object], segments: tuple[str, ...]) -> object:
    """Return the value at a path of an item; UNDEFINED without one."""
    value: object = item
    for segment in segments:
        # Items are dicts, and the check for any Mapping is ten times slower.
        if not isinstance(value, dict) and not isinstance(value, Mapping):
            return UNDEFINED
        value = value.get(segment, UNDEFINED)
    return value


def _extracted(value: object) -> Component:
    # An object or array at the path is not a key value; clients and service treat the item as if it had none.
    return UNDEFINED if isinstance(value, dict | list) else as_component(value)


def as_component(value: object) -> Component:
    """Return the value as a key component: numbers in the form in which equal doubles are equal, and sizes checked."""
    if isinstance(value, str):
        _check_string(value)
        return value
    if value is None or value is UNDEFINED or isinstance(value, bool | Undefined):
        return value
    if isinstance(value, int | float):
        return _number(value)
    raise MalformedRequest(reason="A partition key value must be a string, a number, a boolean or null.")


def _number(value: int | float) -> int | float:
    number = as_double(value)
    if number is None:
        raise MalformedRequest(reason="A partition key value is not a number that fits a double.")
    return number


def as_double(value: int | float) -> int | float | None:
    """Return a number as the double that every client reads, or as the equal whole number; None if it fits none."""
    if isinstance(value, int) and -_EXACT_INTEGER_MAX <= value <= _EXACT_INTEGER_MAX:
        return value
    try:
        # Adding zero turns -0.0 into 0.0: equal numbers must be one logical partition.
        number = float(value) + 0.0
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _check_string(value: str) -> None:
    try:
        bytes_count = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:
        raise MalformedRequest(reason="A partition key value contains a lone surrogate.") from None
    if bytes_count > PARTITION_KEY_BYTES_MAX:
        raise MalformedRequest(reason=f"A partition key value is longer than {PARTITION_KEY_BYTES_MAX} bytes of UTF-8.")


def parse_header(text: str, definition: PartitionKeyDefinition) -> PartitionKey:
    """Read a key as requests carry it: a JSON array in which `{}` is the undefined value, and which is empty for a
    fixed container. A hierarchical key may be a prefix (see `is_full`)."""
    key = _parse_cached(text) if len(text) <= _CACHED_HEADER_CHARACTERS_MAX else _parse_components(text)
    if len(key) == len(definition.paths) and not definition.system_key:
        return key
    if definition.system_key:
        if key in (SYSTEM_KEY, (UNDEFINED,)):
            return SYSTEM_KEY
        raise PartitionKeyMismatch
    if definition.kind is PartitionKeyKind.MULTI_HASH and 0 < len(key) < len(definition.paths):
        return key
    raise PartitionKeyMismatch


def _refuse_constant(_name: str) -> NoReturn:
    raise ValueError


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _parse_components(text: str) -> PartitionKey:
    if text[:2] == '["' and text[-2:] == '"]' and len(text) <= _CACHED_HEADER_CHARACTERS_MAX:
        # One string without an escape: nearly every key, and read without a JSON parser.
        inner = text[2:-2]
        if '"' not in inner and "\\" not in inner and inner.isprintable():
            return (inner,)
    return tuple([as_component(UNDEFINED if value == {} else value) for value in parse_values(text)])


def named_values(text: str) -> tuple[object, ...]:
    """Return the values of a request's partition key, whatever they are; they must not be changed."""
    return _named_cached(text) if len(text) <= _CACHED_HEADER_CHARACTERS_MAX else tuple(parse_values(text))


@lru_cache(maxsize=_CACHED_HEADERS_MAX)
def _named_cached(text: str) -> tuple[object, ...]:
    return tuple(parse_values(text))


def parse_values(text: str) -> list[object]:
    """Read the JSON array of a request's partition key, whatever its values are."""
    if text[:2] == '["' and text[-2:] == '"]' and "\\" not in text and text.isprintable():
        # Texts without an escape: quotes only stand around them, and no JSON parser is needed.
        texts = text[2:-2].replace('", "', '","').split('","')
        if not any('"' in value for value in texts):
            return list(texts)
    try:
        values = _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise MalformedRequest(reason="The partition key header is not valid JSON.") from None
    if not isinstance(values, list):
        raise MalformedRequest(reason="The partition key header must be a JSON array.")
    return values


_parse_cached = lru_cache(maxsize=_CACHED_HEADERS_MAX)(_parse_components)


def is_full(definition: PartitionKeyDefinition, key: PartitionKey) -> bool:
    """Return True if the key names one logical partition, and not a prefix of a hierarchy."""
    return definition.system_key or len(key) == len(definition.paths)


def header_agrees_with_item(header_key: PartitionKey, item_key: PartitionKey) -> bool:
    """Return True if a request's key is the key of the item it carries.

    Null is not absent: the Python client sends null for a level of a hierarchical key that the item lacks, and the
    service refuses that too.
    """
    if len(header_key) == 1 and type(header_key[0]) is str:
        # Nearly every key; only a string equals a string.
        return header_key == item_key
    return len(header_key) == len(item_key) and all(map(same_component, header_key, item_key))


def same_component(left: Component, right: Component) -> bool:
    """Compare as the database does: numbers as doubles, and true is not 1."""
    if type(left) is type(right):
        return left == right
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return left == right

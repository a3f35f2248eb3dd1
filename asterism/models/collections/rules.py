"""The rules of one collection, compiled from its record: where a document lies and which index entries it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from asterism.keyspaces.routing.families import after_prefix
from asterism.models.collections.layout import (
    ARRAY_VALUES,
    INDEX_KEY_BYTES_MAX,
    SINGLE_VALUES,
    index_prefix,
    unique_entry,
)
from asterism.models.collections.records import ID_INDEX, CollectionRecord, IndexRecord
from asterism.models.collections.results import ShardKeyProblem
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.partitioning.partition_key import Component, PartitionKeyDefinition
from asterism.values.bson.key_bytes import encode_key, invert
from asterism.values.bson.types import MISSING, Document, Int64, Missing, Regex
from asterism.values.undefined import UNDEFINED

# Of a document, for one index: its keys, each a value for every field of the index, and whether an array stood on the
# way. No keys: the document has no entry in the index.
KeysOfDocument = Callable[[Document], tuple[Sequence[tuple[Any, ...]], bool]]
# Of a condition on a field of texts with a meaning of their own, such as cells of places or stems of words: the texts
# that its entries may have, each with whether all that begin so are meant. None: the condition says nothing about them.
TextsOfCondition = Callable[[Any], Sequence[tuple[str, bool]] | None]
# The sort key of text under a collation.
Collate = Callable[[str], bytes]

# Values that the service's hash function knows, up to here exactly.
_EXACT_INTEGER_MAX = 2**53
# In front of the key bytes of a value that it does not know: no text of a client begins so and hashes alike.
_FOREIGN_MARK = "\ue000bson:"


# The key of an array without elements, below that of null: `[]` and null are two values.
_EMPTY_ARRAY = b"\x06"


class IndexProfile(NamedTuple):
    """The rules of one index, as the language of indexes compiles them."""

    keys_of: KeysOfDocument
    # None for the order of bytes.
    collate: Collate | None
    # Entries can be found by conditions on the fields, in order: not of text, geo, hashed and wildcard indexes.
    is_ordered: bool
    # For indexes of text and places: fields, by their position in the key, that conditions of their own kind find.
    special_fields: Mapping[int, TextsOfCondition] = {}


# Compiles an index of a collection; raises the language's own refusal for a specification that cannot be right.
CompileIndex = Callable[[CollectionRecord, IndexRecord], IndexProfile]


class Entries(NamedTuple):
    """Index entries of a document: keys without the document's number, and the unique keys it holds."""

    keys: dict[bytes, None]
    # Entry -> the index and the values, for the message of a duplicate.
    unique: dict[bytes, tuple[IndexRecord, tuple[Any, ...]]]


class IndexRules:
    """One index of a collection."""

    __slots__ = (
        "_directions",
        "_prefixes",
        "collate",
        "is_ordered",
        "keys_of",
        "number_of_collection",
        "record",
        "special_fields",
    )

    def __init__(self, collection: CollectionRecord, record: IndexRecord, profile: IndexProfile) -> None:
        self.record = record
        self.collate = profile.collate
        self.keys_of = profile.keys_of
        self.is_ordered = profile.is_ordered
        self.special_fields = profile.special_fields
        self.number_of_collection = collection.number
        self._prefixes = (
            index_prefix(collection.number, record.number, SINGLE_VALUES),
            index_prefix(collection.number, record.number, ARRAY_VALUES),
        )
        self._directions = list(record.key.values())

    def prefix(self, region: int) -> bytes:
        return self._prefixes[region]

    def field_bytes(self, value: object, position: int) -> bytes:
        data = _EMPTY_ARRAY if value is MISSING else encode_key(value, self.collate)
        return invert(data) if _is_descending(self._directions[position]) else data

    def encode(self, values: Sequence[object]) -> bytes:
        if len(values) == 1:
            return self.field_bytes(values[0], 0)
        return b"".join([self.field_bytes(value, position) for position, value in enumerate(values)])

    def is_descending(self, position: int) -> bool:
        return _is_descending(self._directions[position])

    def add_entries(self, document: Document, point: bytes, entries: Entries) -> None:
        keys, is_array = self.keys_of(document)
        if not keys:
            return
        is_unique = self.record.is_unique
        for values in keys:
            encoded = self.encode(values)
            is_careful = is_array or len(encoded) > INDEX_KEY_BYTES_MAX
            entries.keys[self._prefixes[ARRAY_VALUES if is_careful else SINGLE_VALUES] + encoded] = None
            if is_unique:
                key = unique_entry(point, self.number_of_collection, self.record.number, encoded)
                entries.unique[key] = self.record, values


def _is_descending(direction: object) -> bool:
    return isinstance(direction, (int, float)) and not isinstance(direction, bool) and direction < 0


# Keeps the documents of a capped collection in the order of their inserts: its keys have no field, so that its entries
# differ by the numbers of documents alone. It has the number of the index of `_id`, which keeps no entries.
_NATURAL_RECORD = IndexRecord(0, "$natural", {})
_NATURAL_PROFILE = IndexProfile(lambda _: (((),), False), None, False)


class CollectionRules:
    """Compiled once for each version of a collection's record."""

    __slots__ = ("_definition", "_fixed_point", "_shard_paths", "indexes", "natural", "record")

    def __init__(
        self,
        record: CollectionRecord,
        definition: PartitionKeyDefinition,
        compile_index: CompileIndex,
    ) -> None:
        self.record = record
        self.indexes = [
            IndexRules(record, index, compile_index(record, index))
            for index in record.indexes
            if index.name != ID_INDEX
        ]
        # The order of inserts, which only capped collections keep.
        self.natural: IndexRules | None = None
        if record.options.get("capped"):
            self.natural = IndexRules(record, _NATURAL_RECORD, _NATURAL_PROFILE)
            self.indexes.append(self.natural)
        self._definition = definition
        self._shard_paths = [tuple(path.split(".")) for path in record.shard_key]
        self._fixed_point = b"" if record.shard_key else storage_point(definition, (str(record.number),))

    @property
    def is_sharded(self) -> bool:
        return bool(self._shard_paths)

    @property
    def point_bytes(self) -> int:
        return 16 * len(self._definition.paths)

    @property
    def fixed_point(self) -> bytes:
        """The point of all documents of a collection without a shard key."""
        return self._fixed_point

    def shard_values(self, document: Document) -> list[object]:
        return [at_path(document, path) for path in self._shard_paths]

    def point_of(self, document: Document, *, allow_missing: bool) -> bytes:
        """Return the point of a document; ShardKeyProblem if it has no place."""
        if not self._shard_paths:
            return self._fixed_point
        return self.point_at(self.shard_values(document), allow_missing=allow_missing)

    def point_at(self, values: Sequence[object], *, allow_missing: bool = True) -> bytes:
        components: list[Component] = []
        for path, value in zip(self.record.shard_key, values, strict=True):
            if value is MISSING and not allow_missing:
                raise ShardKeyProblem(path, f"document does not contain shard key path '{path}'")
            if isinstance(value, (list, Regex)):
                raise ShardKeyProblem(path, f"The shard key path '{path}' cannot hold an array or a regular expression")
            components.append(_component(value))
        return storage_point(self._definition, tuple(components))

    def interval_at(self, values: Sequence[object]) -> KeyRange:
        """Return the places of documents with these values of the shard key, or of its first paths."""
        point = storage_point(self._definition, tuple(map(_component, values)))
        return KeyRange(point, after_prefix(point) or FULL.end)

    def whole_interval(self) -> KeyRange:
        """Return the places of all documents."""
        return FULL if self._shard_paths else KeyRange(self._fixed_point, after_prefix(self._fixed_point) or FULL.end)

    def pinned_point(self, equalities: Mapping[str, object]) -> bytes | None:
        """Return the only point at which documents with these values can be; None if there are several."""
        if not self._shard_paths:
            return self._fixed_point
        values = [equalities.get(path, MISSING) for path in self.record.shard_key]
        if any(value is MISSING or value is None or isinstance(value, (list, Regex)) for value in values):
            return None
        return self.point_at(values)

    def entries(self, document: Document, point: bytes) -> Entries:
        entries = Entries({}, {})
        for index in self.indexes:
            index.add_entries(document, point, entries)
        return entries


def _component(value: object) -> Component:
    """Return a value as the hash function takes it: the service's own types as they are, all others by their key bytes,
    so that values that are equal across types of numbers share a place."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if type(value) is Missing:
        return UNDEFINED
    if isinstance(value, (int, Int64)) and abs(value) <= _EXACT_INTEGER_MAX:
        return int(value)
    if isinstance(value, float) and (value != value or abs(value) <= _EXACT_INTEGER_MAX):
        return value
    return _FOREIGN_MARK + encode_key(value).hex()


def at_path(document: object, path: Sequence[str]) -> object:
    for part in path:
        if isinstance(document, list):
            return document
        if not isinstance(document, dict) or part not in document:
            return MISSING
        document = document[part]
    return document

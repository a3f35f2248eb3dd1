"""The file that `export` writes and `import` reads: JSON lines.

A line without an `id` starts a container: its settings, throughput and scripts. The lines after it, up to the next such
line, are its items, one each. An item that a request had indexed, or left out of the index, against the container's
policy is wrapped: `{"asterism_item": {…}, "indexing": "Exclude"}` (or `"Include"`). No item can be mistaken for that,
because items have an `id`.

A line with `asterism_collection` starts a collection of MongoDB; its options, indexes and shard key are BSON in base64,
which keeps every type. Its documents are `{"asterism_document": "…"}`, BSON in base64 as they are stored.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from asterism.cli.failure import CommandFailed
from asterism.errors import AsterismError
from asterism.values.bson.codec import InvalidBson, decode, encode, split_documents
from asterism.values.json.text import dumps, loads

FORMAT_VERSION = 1
# Far more than an item may have; a file without lines must not fill the memory.
LINE_BYTES_MAX = 64 * 1024 * 1024
# Properties that the server adds to an item, and to a container.
SYSTEM_PROPERTIES = ("_rid", "_self", "_etag", "_attachments", "_ts")
_CONTAINER_MARK = "asterism_container"
_ITEM_MARK = "asterism_item"
_COLLECTION_MARK = "asterism_collection"
_DOCUMENT_MARK = "asterism_document"
# The directives of the protocol that an item's line may have.
EXCLUDE, INCLUDE = "Exclude", "Include"
# The scripts' names in the file, which are also the segments of their paths.
SCRIPT_SEGMENTS = {"sprocs": "StoredProcedures", "triggers": "Triggers", "udfs": "UserDefinedFunctions"}


@dataclass(frozen=True, slots=True)
class ContainerLine:
    """A container without its items. `throughput` is None if it shares its database's: `database_throughput`, which is
    used if the database has to be created."""

    database: str
    settings: dict[str, Any]
    throughput: dict[str, Any] | None = None
    scripts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    database_throughput: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return str(self.settings["id"])

    def to_line(self) -> bytes:
        record = {
            _CONTAINER_MARK: FORMAT_VERSION,
            "database": self.database,
            "settings": self.settings,
            "throughput": self.throughput,
            **self.scripts,
        }
        if self.database_throughput is not None:
            record["database_throughput"] = self.database_throughput
        return dumps(record) + b"\n"


@dataclass(frozen=True, slots=True)
class ItemLine:
    """An item, and the directive of its indexing if it differs from the container's policy."""

    item: dict[str, Any]
    indexing: str | None = None

    def to_line(self) -> bytes:
        record = self.item if self.indexing is None else {_ITEM_MARK: self.item, "indexing": self.indexing}
        return dumps(record) + b"\n"


@dataclass(frozen=True, slots=True)
class CollectionLine:
    """A collection of MongoDB, or a view, without its documents."""

    database: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    indexes: list[dict[str, Any]] = field(default_factory=list)
    # Paths with 1 or "hashed"; empty for a collection without a shard key.
    shard_key: dict[str, Any] = field(default_factory=dict)
    # None if it has no throughput of its own.
    throughput: dict[str, Any] | None = None

    @property
    def is_view(self) -> bool:
        return "viewOn" in self.options

    def to_line(self) -> bytes:
        definition = {"options": self.options, "indexes": self.indexes, "shardKey": self.shard_key}
        record = {
            _COLLECTION_MARK: FORMAT_VERSION,
            "database": self.database,
            "name": self.name,
            # For people; the definition counts.
            "indexes": [index["name"] for index in self.indexes],
            "definition": base64.b64encode(encode(definition)).decode(),
            "throughput": self.throughput,
        }
        return dumps(record) + b"\n"


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """A document of a collection, as the bytes of BSON that the server has."""

    raw: bytes

    def to_line(self) -> bytes:
        return b'{"%b":"%b"}\n' % (_DOCUMENT_MARK.encode(), base64.b64encode(self.raw))


Line = ContainerLine | ItemLine | CollectionLine | DocumentLine


def without_system_properties(resource: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in resource.items() if name not in SYSTEM_PROPERTIES}


def read_dump(path: Path) -> Iterator[tuple[int, int, Line]]:
    """Yield (line number, bytes read so far, parsed line), with one line in memory at a time."""
    try:
        with path.open("rb") as file:
            yield from _lines(file)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}") from None


def _lines(file: BinaryIO) -> Iterator[tuple[int, int, Line]]:
    number, bytes_read = 0, 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        bytes_read += len(line)
        if len(line) > LINE_BYTES_MAX:
            raise CommandFailed(f"line {number}: the line is longer than {LINE_BYTES_MAX:,} bytes")
        if not line.strip():
            continue
        parsed = _parsed(line, number)
        if number == 1 and not isinstance(parsed, ContainerLine | CollectionLine):
            raise CommandFailed("line 1: the file does not begin with a container, as files of `asterism export` do")
        yield number, bytes_read, parsed


def _parsed(line: bytes, number: int) -> Line:
    try:
        record = loads(line)
    except AsterismError as error:
        raise CommandFailed(f"line {number}: {getattr(error, 'reason', error)}") from None
    if not isinstance(record, dict):
        raise CommandFailed(f"line {number}: the line is not a JSON object")
    if "id" in record:
        return ItemLine(record)
    if _DOCUMENT_MARK in record:
        return DocumentLine(_bson(record[_DOCUMENT_MARK], number))
    if record.get(_COLLECTION_MARK) == FORMAT_VERSION:
        return _collection_line(record, number)
    if _ITEM_MARK in record:
        return _item_line(record, number)
    if record.get(_CONTAINER_MARK) != FORMAT_VERSION:
        raise CommandFailed(f"line {number}: the line is neither an item (it has no 'id') nor a container")
    return _container_line(record, number)


def _bson(text: object, number: int) -> bytes:
    try:
        raw = base64.b64decode(text.encode() if isinstance(text, str) else b"-", validate=True)
        (document,) = split_documents(raw)
    except (binascii.Error, ValueError, InvalidBson):
        raise CommandFailed(f"line {number}: the line has no document of BSON in base64") from None
    return document


def _collection_line(record: dict[str, Any], number: int) -> CollectionLine:
    database, name, throughput = record.get("database"), record.get("name"), record.get("throughput")
    try:
        definition = decode(_bson(record.get("definition"), number))
    except InvalidBson:
        definition = {}
    options, indexes, shard_key = (definition.get(part) for part in ("options", "indexes", "shardKey"))
    is_valid = (
        isinstance(database, str)
        and isinstance(name, str)
        and isinstance(options, dict)
        and isinstance(indexes, list)
        and all(isinstance(index, dict) for index in indexes)
        and isinstance(shard_key, dict)
        and (throughput is None or isinstance(throughput, dict))
    )
    if not is_valid:
        raise CommandFailed(f"line {number}: the line of a collection needs 'database', 'name' and 'definition'")
    return CollectionLine(
        str(database), str(name), dict(options or {}), list(indexes or []), dict(shard_key or {}), throughput
    )


def _item_line(record: dict[str, Any], number: int) -> ItemLine:
    item, indexing = record[_ITEM_MARK], record.get("indexing")
    if not isinstance(item, dict) or "id" not in item or indexing not in (EXCLUDE, INCLUDE):
        raise CommandFailed(f"line {number}: it needs an item with an 'id' and 'indexing', {EXCLUDE} or {INCLUDE}")
    return ItemLine(item, indexing)


def _container_line(record: dict[str, Any], number: int) -> ContainerLine:
    database, settings = record.get("database"), record.get("settings")
    throughput, shared = record.get("throughput"), record.get("database_throughput")
    scripts = {segment: record.get(segment, []) for segment in SCRIPT_SEGMENTS}
    is_valid = (
        isinstance(database, str)
        and isinstance(settings, dict)
        and isinstance(settings.get("id"), str)
        and all(offer is None or isinstance(offer, dict) for offer in (throughput, shared))
        and all(
            isinstance(bodies, list) and all(isinstance(body, dict) for body in bodies) for bodies in scripts.values()
        )
    )
    if not is_valid:
        raise CommandFailed(f"line {number}: the line of a container needs 'database' and 'settings' with an 'id'")
    assert isinstance(database, str)
    assert isinstance(settings, dict)
    return ContainerLine(database, settings, throughput, scripts, shared)

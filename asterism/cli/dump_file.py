"""The file that `export` writes and `import` reads: JSON lines.

A line without an `id` starts a container: its settings, throughput and scripts. The lines after it, up to the next such
line, are its items, one each. An item that a request had indexed, or left out of the index, against the container's
policy is wrapped: `{"asterism_item": {…}, "indexing": "Exclude"}` (or `"Include"`). No item can be mistaken for that,
because items have an `id`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from asterism.cli.failure import CommandFailed
from asterism.errors import AsterismError
from asterism.values.json.text import dumps, loads

FORMAT_VERSION = 1
# Far more than an item may have; a file without lines must not fill the memory.
LINE_BYTES_MAX = 64 * 1024 * 1024
# Properties that the server adds to an item, and to a container.
SYSTEM_PROPERTIES = ("_rid", "_self", "_etag", "_attachments", "_ts")
_CONTAINER_MARK = "asterism_container"
_ITEM_MARK = "asterism_item"
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


def without_system_properties(resource: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in resource.items() if name not in SYSTEM_PROPERTIES}


def read_dump(path: Path) -> Iterator[tuple[int, int, ContainerLine | ItemLine]]:
    """Yield (line number, bytes read so far, parsed line), with one line in memory at a time."""
    try:
        with path.open("rb") as file:
            yield from _lines(file)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}") from None


def _lines(file: BinaryIO) -> Iterator[tuple[int, int, ContainerLine | ItemLine]]:
    number, bytes_read = 0, 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        bytes_read += len(line)
        if len(line) > LINE_BYTES_MAX:
            raise CommandFailed(f"line {number}: the line is longer than {LINE_BYTES_MAX:,} bytes")
        if not line.strip():
            continue
        parsed = _parsed(line, number)
        if number == 1 and not isinstance(parsed, ContainerLine):
            raise CommandFailed("line 1: the file does not begin with a container, as files of `asterism export` do")
        yield number, bytes_read, parsed


def _parsed(line: bytes, number: int) -> ContainerLine | ItemLine:
    try:
        record = loads(line)
    except AsterismError as error:
        raise CommandFailed(f"line {number}: {getattr(error, 'reason', error)}") from None
    if not isinstance(record, dict):
        raise CommandFailed(f"line {number}: the line is not a JSON object")
    if "id" in record:
        return ItemLine(record)
    if _ITEM_MARK in record:
        return _item_line(record, number)
    if record.get(_CONTAINER_MARK) != FORMAT_VERSION:
        raise CommandFailed(f"line {number}: the line is neither an item (it has no 'id') nor a container")
    return _container_line(record, number)


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

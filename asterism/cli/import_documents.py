"""Collections in `asterism import`: created where they are missing; documents are inserted, or replace those that have
their `_id` already, so that an import can be repeated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from asterism.cli.dump_file import CollectionLine
from asterism.cli.export_documents import failures
from asterism.cli.failure import CommandFailed
from asterism.values.bson.codec import RawDocument, decode

if TYPE_CHECKING:
    from pymongo.database import Database

    from asterism.cli.mongo_server import MongoServer

# Documents and bytes of a command, whose limits are 100,000 and 48 MB.
_BATCH_DOCUMENTS = 1000
_BATCH_BYTES = 8 * 1024 * 1024
_ID_INDEX = "_id_"
_DUPLICATE_KEY = 11000


@dataclass(slots=True)
class DocumentWriter:
    """Writer of a collection's documents, with a bounded number of them in memory."""

    server: MongoServer
    line: CollectionLine
    _lines: list[int] = field(default_factory=list)
    _documents: list[bytes] = field(default_factory=list)
    _bytes: int = 0

    def add(self, number: int, document: bytes) -> None:
        full = len(self._documents) == _BATCH_DOCUMENTS or self._bytes + len(document) > _BATCH_BYTES
        if self._documents and full:
            self.finish()
        self._lines.append(number)
        self._documents.append(document)
        self._bytes += len(document)

    def finish(self) -> None:
        """Write the documents that are not yet written."""
        if not self._documents:
            return
        database = self.server.database(self.line.database)
        with failures():
            reply = _insert(database, self.line.name, self._documents)
        for error in reply.get("writeErrors", []):
            self._repeat(database, error)
        self._lines, self._documents, self._bytes = [], [], 0

    def _repeat(self, database: Database[dict[str, Any]], error: dict[str, Any]) -> None:
        """Replace a document that exists; any other problem is a failure."""
        number, raw = self._lines[error["index"]], self._documents[error["index"]]
        if error["code"] != _DUPLICATE_KEY or list(error.get("keyPattern", {"_id": 1})) != ["_id"]:
            raise CommandFailed(f"line {number}: {error['errmsg']}")
        document = decode(raw)
        asked = {"_id": document.get("_id")} | {path: _at(document, path) for path in self.line.shard_key}
        update = {"q": {path: {"$eq": value} for path, value in asked.items()}, "u": RawDocument(raw)}
        with failures():
            reply = database.command("update", self.line.name, updates=[update], check=False)
        if reply.get("writeErrors"):
            raise CommandFailed(f"line {number}: {reply['writeErrors'][0]['errmsg']}")


def _insert(database: Database[dict[str, Any]], name: str, documents: list[bytes]) -> dict[str, Any]:
    return database.command(
        "insert",
        name,
        documents=[RawDocument(document) for document in documents],
        ordered=False,
        bypassDocumentValidation=True,
        check=True,
    )


def _at(document: Any, path: str) -> Any:
    for part in path.split("."):
        document = document.get(part) if isinstance(document, dict) else None
    return document


def make_collection(server: MongoServer, line: CollectionLine, number: int) -> None:
    """Create a collection with its shard key and its indexes. An existing one keeps its options; its shard key must be
    the same."""
    database = server.database(line.database)
    with failures():
        existing = list(database.list_collections(filter={"name": line.name}))
        if existing:
            _check_shard_key(database, line, number)
        else:
            database.command("create", line.name, **line.options)
            if line.shard_key:
                namespace = f"{line.database}.{line.name}"
                server.database("admin").command("shardCollection", namespace, key=line.shard_key)
        if line.is_view:
            return
        indexes = [index for index in line.indexes if index.get("name") != _ID_INDEX]
        if indexes:
            database.command("createIndexes", line.name, indexes=indexes)
    if not existing and line.throughput is not None:
        _set_throughput(database, line)


def _check_shard_key(database: Database[dict[str, Any]], line: CollectionLine, number: int) -> None:
    described = database.command({"customAction": "GetCollection", "collection": line.name})
    found = list(described.get("shardKeyDefinition", {}))
    if found != list(line.shard_key):
        raise CommandFailed(
            f"line {number}: {line.database}.{line.name} already exists with "
            f"{'the shard key ' + ', '.join(found) if found else 'no shard key'}; import it under another name with "
            "--container"
        )


def _set_throughput(database: Database[dict[str, Any]], line: CollectionLine) -> None:
    """Set the throughput. Documents are worth more than their throughput, so a refusal is a warning."""
    assert line.throughput is not None
    offer = {"autoScaleSettings": line.throughput["autoscale"]} if "autoscale" in line.throughput else {}
    if not offer:
        offer = {"offerThroughput": line.throughput["manual"]}
    try:
        with failures():
            now = database.command({"customAction": "GetCollection", "collection": line.name})
            if now.get("provisionedThroughput") == line.throughput.get("manual", -1):
                return
            database.command({"customAction": "UpdateCollection", "collection": line.name, **offer})
    except CommandFailed as failure:
        typer.echo(f"The throughput of {line.database}.{line.name} was not set: {failure}", err=True)

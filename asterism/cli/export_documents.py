"""Collections in `asterism export`: their options, indexes and shard keys, and their documents as stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from asterism.cli.dump_file import CollectionLine, DocumentLine
from asterism.cli.failure import CommandFailed
from asterism.values.bson.codec import split_documents

if TYPE_CHECKING:
    from pymongo.database import Database

    from asterism.cli.mongo_server import MongoServer

BATCH_DOCUMENTS = 1000
# Fields of an index that name its collection.
_OF_COLLECTION = frozenset({"ns"})


def collection_lines(
    server: MongoServer, described: list[dict[str, Any]]
) -> Iterator[tuple[CollectionLine, int | None]]:
    """Yield the collections to export, views last, each with the number of its documents."""
    for found in sorted(described, key=lambda each: each["type"] == "view"):
        with failures():
            database = server.database(found["client_database"])
            (listed,) = database.list_collections(filter={"name": found["name"]})
            indexes = [] if found["type"] == "view" else _indexes(database, found["name"])
        throughput = found.get("throughput", {})
        yield (
            CollectionLine(
                database=found["client_database"],
                name=found["name"],
                options=dict(listed.get("options", {})),
                indexes=indexes,
                shard_key=found["shard_key"],
                throughput=_throughput(throughput) if found["shard_key"] else None,
            ),
            found.get("items"),
        )


def _indexes(database: Database[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    listed = database.command("listIndexes", name, cursor={"batchSize": BATCH_DOCUMENTS})["cursor"]["firstBatch"]
    return [{field: value for field, value in index.items() if field not in _OF_COLLECTION} for index in listed]


def _throughput(described: dict[str, Any]) -> dict[str, Any] | None:
    match described.get("mode"):
        case "manual":
            return {"manual": described["ru"]}
        case "autoscale":
            return {"autoscale": {"maxThroughput": described["ru"]}}
    return None


def write_documents(
    server: MongoServer, line: CollectionLine, write: Callable[[bytes], object], advance: Callable[[int], None]
) -> int:
    """Write the documents of a collection, a line each; return their number."""
    if line.is_view:
        return 0
    count = 0
    with failures():
        for batch in server.database(line.database)[line.name].find_raw_batches({}, batch_size=BATCH_DOCUMENTS):
            # The driver's type is that of documents, though a raw batch is bytes.
            documents = split_documents(cast(bytes, batch))
            for document in documents:
                write(DocumentLine(document).to_line())
            count += len(documents)
            advance(len(documents))
    return count


@contextmanager
def failures() -> Iterator[None]:
    """Turn the errors of the driver into failures of the command."""
    from pymongo.errors import OperationFailure, PyMongoError

    try:
        yield
    except OperationFailure as error:
        raise CommandFailed(str((error.details or {}).get("errmsg", error))) from None
    except PyMongoError as error:
        raise CommandFailed(f"the connection to the MongoDB port broke: {error}") from None

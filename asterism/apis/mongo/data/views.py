"""Views: resolved to the collection below them and the pipeline on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from asterism.apis.mongo.config_database import NAME as CONFIG
from asterism.apis.mongo.config_database import config_documents
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.collection import Collection
from asterism.models.collections.records import CollectionRecord
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# MongoDB's own limit.
DEPTH_MAX = 20


class Source(NamedTuple):
    """The origin of the documents of a name. `collection` is None if it does not exist; `pipeline` is the view's."""

    database: str
    name: str
    collection: Collection | None
    pipeline: list[Document]
    is_view: bool
    # Of the view, or of the collection.
    collation: Document | None
    # The documents are made for the command, by the first stage.
    is_made: bool = False

    @property
    def record(self) -> CollectionRecord | None:
        return None if self.collection is None else self.collection.record


def resolve(call: Call, database: str, name: str) -> Source:
    """Return the collection below a name, and the pipelines of the views on the way, the lowest first."""
    store = call.store
    if database == CONFIG:
        made = config_documents(call, name)
        if made is not None:
            return Source(database, name, None, [{"$documents": {"$literal": made}}], True, None, is_made=True)
    collection = store.find(call.account, database, name, call.unit)
    if collection is not None:
        return Source(database, name, collection, [], False, collection.record.options.get("collation"))
    pipelines: list[list[Document]] = []
    collation: Any = None
    for _ in range(DEPTH_MAX + 1):
        record = store.record(call.account, database, name, call.unit)
        if record is None or not record.is_view:
            found = None if record is None else store.find(call.account, database, name, call.unit)
            if not pipelines and record is not None:
                collation = record.options.get("collation")
            flat = [stage for pipeline in reversed(pipelines) for stage in pipeline]
            return Source(database, name, found, flat, bool(pipelines), collation)
        if not pipelines:
            collation = record.options.get("collation")
        pipelines.append(list(record.options.get("pipeline") or ()))
        name = record.options["viewOn"]
    raise MongoFailure(165, f"View depth limit exceeded; maximum depth is {DEPTH_MAX}")

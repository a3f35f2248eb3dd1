"""The target of `$out`: filled under another name, then put in the place of the collection that was there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asterism.apis.mongo.data.insert import insert_documents
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.stage import Batches
from asterism.languages.mongo.time_series import check_measurement, read_time_series
from asterism.models.collections.collection import Collection
from asterism.models.collections.records import CollectionRecord
from asterism.values.bson.codec import encode
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call


class OutTarget:
    __slots__ = ("_bypass", "_call", "_database", "_name", "_series")

    def __init__(self, call: Call, database: str, name: str, *, bypass: bool) -> None:
        self._call = call
        self._database = database
        self._name = name
        self._bypass = bypass
        self._series: Document | None = None

    async def replace_by(self, batches: Batches, options: dict[str, Any]) -> None:
        """Replace the collection by the documents. Its options and indexes are kept; nothing happens if a document
        cannot be written."""
        call = self._call
        store, account = call.store, call.account
        before = store.record(account, self._database, self._name)
        series = options.get("timeseries")
        self._check(before, series)
        kept: Document = dict(before.options) if before is not None else {}
        if series is not None:
            kept["timeseries"] = series
        self._series = kept.get("timeseries")
        temporary = f"tmp.agg_out.{call.context.services.random_bytes(8).hex()}"
        created = await store.create(account, self._database, temporary, kept)
        try:
            indexes = [] if before is None else [index for index in before.indexes if index.name != "_id_"]
            if indexes:
                await store.create_indexes(account, created, indexes)
            collection = store.find(account, self._database, temporary)
            assert collection is not None, "the collection was just created"
            async for documents in batches:
                await self._write(collection, documents)
            await store.rename(account, self._database, temporary, self._name, drop_target=True)
        except BaseException:
            await store.drop(account, self._database, temporary)
            raise

    def _check(self, before: CollectionRecord | None, series: Document | None) -> None:
        """Refuse a target that cannot be replaced."""
        if before is None:
            return
        namespace = f"{self._database}.{self._name}"
        present = before.options.get("timeseries")
        if series is not None and present is None:
            raise MongoFailure(7268700, f"Cannot create a time series collection from a non time series: {namespace}")
        if series is not None and present is not None and _complete(present) != series:
            raise MongoFailure(7406103, f"Time series options of $out differ from those of {namespace}")
        if before.is_view:
            raise MongoFailure(166, f"Namespace {namespace} is a view, not a collection")
        if before.options.get("capped"):
            raise MongoFailure(17152, f"namespace '{namespace}' is capped so it can't be used for $out")
        if before.shard_key:
            raise MongoFailure(28769, f"namespace '{namespace}' is sharded so it can't be used for $out")

    async def _write(self, collection: Collection, documents: list[Document]) -> None:
        if self._series is not None:
            for document in documents:
                check_measurement(document, self._series)
        bodies = [encode(document) for document in documents]
        report = await insert_documents(self._call, collection, bodies, ordered=True, bypass=self._bypass)
        for _, failure in report.failures:
            raise failure


def _complete(options: Document) -> Document:
    """Return the options of a time series as they are compared; a stored granularity comes with the span it implies."""
    own = dict(options)
    if "granularity" in own:
        own.pop("bucketMaxSpanSeconds", None)
    return read_time_series(own, "timeseries")

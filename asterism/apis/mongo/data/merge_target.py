"""The target of `$merge`: single documents, found, inserted and changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from asterism.apis.mongo.data.documents import prepare_document
from asterism.apis.mongo.data.insert import insert_documents
from asterism.apis.mongo.data.problems import failure_of_write
from asterism.apis.mongo.data.scopes import CollationChoice, read_collation
from asterism.apis.mongo.data.selection import Selection
from asterism.apis.mongo.data.targets import find_or_create, find_to_change
from asterism.apis.mongo.data.validation import validator_of
from asterism.apis.mongo.data.variables import CommandScope
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.stage import Uniqueness
from asterism.models.collections.layout import DocumentKey, document_key
from asterism.models.collections.records import CollectionRecord
from asterism.models.collections.results import Change, DuplicateKey
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.order import equal
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call


def unique_over(record: CollectionRecord | None, fields: Sequence[str], collation: CollationChoice) -> Uniqueness:
    """Return the unique index that a collection has over exactly the fields, under the collation."""
    if list(fields) == ["_id"]:
        # Ids are unique under the collation of their collection.
        own = None if record is None else read_collation(None, record.options.get("collation")).specification
        return Uniqueness.FULL if record is None or own == collation.specification else Uniqueness.NONE
    wanted = collation.specification or None
    found = Uniqueness.NONE
    for index in record.indexes if record is not None else ():
        is_suitable = (
            index.is_unique
            and set(index.key) == set(fields)
            and "partialFilterExpression" not in index.options
            and read_collation(index.options.get("collation")).specification == wanted
        )
        if is_suitable and not index.options.get("sparse"):
            return Uniqueness.FULL
        if is_suitable:
            found = Uniqueness.SPARSE
    return found


class MergeTarget:
    __slots__ = ("_bypass", "_call", "_collation", "_database", "_name", "_scope")

    def __init__(
        self, call: Call, database: str, name: str, scope: CommandScope, *, collation: CollationChoice, bypass: bool
    ) -> None:
        self._call = call
        self._database = database
        self._name = name
        self._scope = scope
        self._collation = collation
        self._bypass = bypass

    async def find(self, key: Document) -> Document | None:
        collection = find_to_change(self._call, self._database, self._name)
        if collection is None:
            return None
        filter = {path: {"$eq": value} for path, value in key.items()}
        specification = self._collation.specification
        selection = Selection(collection, self._scope, filter, collation=specification, wanted=1)
        hit = await selection.first(self._call)
        return None if hit is None else hit.decoded()

    async def insert(self, document: Document) -> None:
        collection = await find_or_create(self._call, self._database, self._name)
        report = await insert_documents(self._call, collection, [encode(document)], ordered=True, bypass=self._bypass)
        for _, failure in report.failures:
            raise failure

    async def update(self, before: Document, change: Callable[[Document], Document]) -> bool:
        """Replace a document by what `change` makes of it, and return False if it is gone."""
        call = self._call
        collection = find_to_change(call, self._database, self._name)
        if collection is None:
            return False
        validator = validator_of(collection.record, self._scope, bypass=self._bypass)
        next_time = call.store.services.hybrid_clock.next
        rules = collection.rules

        def decide(_: DocumentKey, present: bytes | None) -> Change:
            if present is None:
                return Change.keep()
            old = decode(present)
            document = change(old)
            if not equal(old["_id"], document["_id"]):
                raise MongoFailure(66, "$merge failed to update the matching document: the _id field is immutable")
            body = prepare_document(encode({"_id": old["_id"], **document}), next_time)
            if body == present:
                return Change.keep()
            document = decode(body)
            if rules.point_of(document, allow_missing=True) != rules.point_of(old, allow_missing=True):
                raise MongoFailure(66, "$merge failed to update the matching document: its shard key is immutable")
            if validator is not None:
                validator.check(document, old)
            return Change.put(body, document=document, operation="replace")

        key = document_key(rules.point_of(before, allow_missing=True), before["_id"])
        gone = False

        def decide_and_note(found: DocumentKey, present: bytes | None) -> Change:
            nonlocal gone
            gone = present is None
            return decide(found, present)

        try:
            await collection.change((key,), decide_and_note, unit=call.unit, spent=call.spent)
        except DuplicateKey as problem:
            raise failure_of_write(problem, is_first=False) from None
        return not gone

"""Commands that list and drop collections."""

from __future__ import annotations

from typing import Final

from asterism.apis.mongo.administration.cursor_options import batch_size_of, matcher, slices_of
from asterism.apis.mongo.arguments import BOOL, OBJECT
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Answer, Command, FieldRule, Target
from asterism.apis.mongo.data.concerns import with_write_concern
from asterism.apis.mongo.data.targets import check_uuid
from asterism.models.collections.records import ID_INDEX, CollectionRecord
from asterism.values.bson.types import Binary, Document

_LIST_FIELDS: Final = {
    "cursor": FieldRule(OBJECT),
    "filter": FieldRule(OBJECT),
    "nameOnly": FieldRule(BOOL),
    "authorizedCollections": FieldRule(BOOL),
}


async def drop(call: Call) -> Document:
    check_uuid(call.field("collectionUUID"), call.record(), call.database, call.target)
    record = await call.store.drop(call.account, call.database, call.target)
    if record is None:
        return {}
    if record.is_view:
        return {"ns": record.namespace}
    return {"nIndexesWas": max(1, len(record.indexes)), "ns": record.namespace}


async def list_collections(call: Call) -> Answer:
    matches = matcher(call)
    is_name_only = call.flag("nameOnly")
    shown = []
    for record in call.store.records(call.account, call.database):
        entry = describe(record, name_only=is_name_only)
        if matches(entry):
            shown.append(entry)
    size = batch_size_of(call)
    return await call.context.cursors.open(
        call, f"{call.database}.$cmd.listCollections", slices_of(shown), batch_size=size, limit=len(shown) or None
    )


def describe(record: CollectionRecord, *, name_only: bool) -> Document:
    kind = "view" if record.is_view else "timeseries" if "timeseries" in record.options else "collection"
    if name_only:
        return {"name": record.name, "type": kind}
    shown: Document = {"name": record.name, "type": kind, "options": record.options}
    if record.is_view:
        return {**shown, "info": {"readOnly": True}}
    if kind == "timeseries":
        return {**shown, "info": {"readOnly": False}}
    shown["info"] = {"readOnly": False, "uuid": Binary(record.uuid, 4)}
    if "clusteredIndex" not in record.options:
        id_index: Document = {"v": 2, "key": {"_id": 1}, "name": ID_INDEX}
        if "collation" in record.options:
            id_index["collation"] = record.options["collation"]
        shown["idIndex"] = id_index
    return shown


COMMANDS = (
    Command("drop", with_write_concern(drop), "Drop a collection.", target=Target.COLLECTION,
            access=Access.DATABASE_ADMIN, fields={"collectionUUID": FieldRule(("binData",))}, api_version_1=True,
            writes=True),
    Command("listCollections", list_collections, "The collections.", fields=_LIST_FIELDS, access=Access.READ,
            api_version_1=True),
)  # fmt: skip

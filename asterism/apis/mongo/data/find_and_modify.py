"""The command `findAndModify`: a change of one document, and the document before or after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from asterism.apis.mongo.arguments import ANY, ARRAY, OBJECT, TRUTH, as_bool
from asterism.apis.mongo.commands import FieldRule
from asterism.apis.mongo.data.changes import Changer, Outcome, Statement, check_statement
from asterism.apis.mongo.data.hints import check_hint_type
from asterism.apis.mongo.data.scopes import open_scope, read_collation
from asterism.apis.mongo.data.targets import check_uuid, collection_name, find_or_create, find_record, find_to_change
from asterism.apis.mongo.data.update import check_update_type, read_array_filters
from asterism.apis.mongo.data.validation import is_bypassed
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.projection import Projection, compile_projection
from asterism.values.bson.types import MISSING, Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.apis.mongo.data.variables import CommandScope

FIELDS: Final = {
    "query": FieldRule(OBJECT),
    "sort": FieldRule(OBJECT),
    "remove": FieldRule(TRUTH),
    "update": FieldRule(ANY),
    "new": FieldRule(TRUTH),
    "fields": FieldRule(OBJECT),
    "upsert": FieldRule(TRUTH),
    "arrayFilters": FieldRule(ARRAY),
    "hint": FieldRule(ANY),
    "collation": FieldRule(OBJECT),
    "let": FieldRule(OBJECT),
    "bypassDocumentValidation": FieldRule(TRUTH),
    "collectionUUID": FieldRule(("binData",)),
    "encryptionInformation": FieldRule(ANY),
    "sampleId": FieldRule(ANY),
}


async def find_and_modify(call: Call) -> Document:
    name = collection_name(call)
    statement, is_new = _read_statement(call)
    scope = open_scope(call, let=call.field("let"))
    project = _read_projection(call, statement, scope)
    check_uuid(call.field("collectionUUID"), find_record(call, call.database, name), call.database, name)
    is_removal = statement.update is None

    def describe(outcome: Outcome) -> Document:
        document = outcome.after if is_new else outcome.before
        record = outcome.to_document()
        if document is not None:
            record["v"] = project(document, scope.variables) if project is not None else document
        return record

    collection = find_to_change(call, call.database, name)
    if collection is None:
        check_statement(statement, scope)
        if not statement.is_upsert:
            return _answer(Outcome(), None, is_removal=is_removal)
        collection = await find_or_create(call, call.database, name)
    bypass = is_bypassed(call.field("bypassDocumentValidation"))
    outcome = await Changer(call, collection, scope, bypass=bypass).run(statement, describe=describe)
    record = describe(outcome) if outcome.retried is None else outcome.retried
    return _answer(outcome, record.get("v"), is_removal=is_removal)


def _answer(outcome: Outcome, value: Document | None, *, is_removal: bool) -> Document:
    last: Document = {"n": outcome.matched}
    if not is_removal:
        last["updatedExisting"] = outcome.matched > 0
        if outcome.upserted is not MISSING:
            last["n"] = 1
            last["upserted"] = outcome.upserted
    return {"lastErrorObject": last, "value": value}


def _read_statement(call: Call) -> tuple[Statement, bool]:
    is_removal, is_new, is_upsert = (_is_set(call, name) for name in ("remove", "new", "upsert"))
    update = call.field("update")
    if is_removal:
        if "update" in call.body:
            raise MongoFailure(9, "Cannot specify both an update and remove=true")
        if is_upsert:
            raise MongoFailure(9, "Cannot specify both upsert=true and remove=true")
        if is_new:
            raise MongoFailure(
                9, "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document"
            )
        if call.field("arrayFilters") is not None:
            raise MongoFailure(9, "Cannot specify arrayFilters and remove=true")
    elif "update" not in call.body:
        raise MongoFailure(9, "Either an update or remove=true must be specified")
    else:
        check_update_type(update)
    hint = call.field("hint", MISSING)
    if hint is not MISSING:
        check_hint_type(hint)
    statement = Statement(
        filter=call.field("query") or {},
        update=update,
        is_upsert=is_upsert,
        array_filters=read_array_filters(call.field("arrayFilters")),
        hint=hint,
        sort=call.field("sort"),
        collation=call.field("collation"),
    )
    return statement, is_new


def _is_set(call: Call, name: str) -> bool:
    value: Any = call.field(name)
    return value is not None and as_bool(value)


def _read_projection(call: Call, statement: Statement, scope: CommandScope) -> Projection | None:
    fields = call.field("fields")
    if not fields:
        return None
    own = scope.with_collation(read_collation(statement.collation).collate)
    return compile_projection(fields, own.context, filter_match=compile_filter(statement.filter, own.context))

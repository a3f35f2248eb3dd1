"""The command `update`: statements one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.mongo.arguments import ANY, ARRAY, BOOL, OBJECT, TRUTH, check_document
from asterism.apis.mongo.commands import FieldRule
from asterism.apis.mongo.data.changes import Changer, Outcome, Statement, check_statement
from asterism.apis.mongo.data.hints import check_hint_type
from asterism.apis.mongo.data.insert import is_ordered, statements_of
from asterism.apis.mongo.data.problems import failure_of_write, may_repeat, write_error
from asterism.apis.mongo.data.scopes import open_scope
from asterism.apis.mongo.data.targets import check_uuid, collection_name, find_or_create, find_record, find_to_change
from asterism.apis.mongo.data.validation import is_bypassed
from asterism.apis.mongo.data.variables import CommandScope
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.codec import decode
from asterism.values.bson.types import MISSING, Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

FIELDS: Final = {
    "updates": FieldRule(ARRAY, is_required=True),
    "ordered": FieldRule(BOOL),
    "bypassDocumentValidation": FieldRule(TRUTH),
    "let": FieldRule(OBJECT),
    "collectionUUID": FieldRule(("binData",)),
    "encryptionInformation": FieldRule(ANY),
}

_STATEMENT: Final = {
    "q": FieldRule(OBJECT, is_required=True),
    # Its type is the compiler's to check.
    "u": FieldRule(ANY, is_required=True, null_code=9),
    "c": FieldRule(OBJECT),
    "upsert": FieldRule(BOOL),
    "multi": FieldRule(BOOL),
    "arrayFilters": FieldRule(ARRAY),
    "hint": FieldRule(ANY),
    "collation": FieldRule(OBJECT),
    "sort": FieldRule(OBJECT),
    "upsertSupplied": FieldRule(BOOL),
    "sampleId": FieldRule(ANY),
    "includeQueryStatsMetricsForOpIndex": FieldRule(ANY),
}


async def update(call: Call) -> Document:
    name = collection_name(call)
    statements = [_read_statement(decode(raw), index) for index, raw in enumerate(statements_of(call, "updates"))]
    check_single(call, statements)
    scope = open_scope(call, let=call.field("let"))
    check_uuid(call.field("collectionUUID"), find_record(call, call.database, name), call.database, name)
    bypass = is_bypassed(call.field("bypassDocumentValidation"))
    ordered = is_ordered(call)
    matched = modified = 0
    upserted: list[Document] = []
    errors: list[Document] = []
    retried: list[int] = []
    for statement in statements:
        try:
            outcome = await run_statement(call, call.database, name, statement, scope, bypass=bypass)
        except Exception as error:
            failure = failure_of_write(error, is_first=may_repeat(call, statement.index))
            errors.append(write_error(statement.index, failure))
            if ordered:
                break
            continue
        matched += outcome.matched
        modified += outcome.modified
        if outcome.retried is not None:
            retried.append(statement.index)
        if outcome.upserted is not MISSING:
            matched += 1
            upserted.append({"index": statement.index, "_id": outcome.upserted})
    answer: Document = {"n": matched, "nModified": modified}
    if upserted:
        answer["upserted"] = upserted
    if retried:
        answer["retriedStmtIds"] = retried
    if errors:
        answer["writeErrors"] = errors
    return answer


def check_single(call: Call, statements: Sequence[Statement]) -> None:
    """Refuse a retryable write that may change many documents: its outcome cannot be kept with each of them."""
    if call.txn_number is not None and not call.is_in_transaction and any(found.is_multi for found in statements):
        raise MongoFailure(72, "Cannot use retryable writes with multi=true or limit=0")


async def run_statement(
    call: Call, database: str, name: str, statement: Statement, scope: CommandScope, *, bypass: bool
) -> Outcome:
    """Carry out one update or delete, on a collection that is created only if an upsert needs it."""
    collection = find_to_change(call, database, name)
    if collection is None:
        check_statement(statement, scope)
        if not statement.is_upsert:
            return Outcome()
        collection = await find_or_create(call, database, name)
    return await Changer(call, collection, scope, bypass=bypass).run(statement)


def _read_statement(fields: Document, index: int) -> Statement:
    check_document("update.updates", fields, _STATEMENT)
    hint = fields.get("hint", MISSING)
    if hint is not MISSING:
        check_hint_type(hint)
    statement = Statement(
        filter=fields["q"],
        update=fields["u"],
        is_multi=bool(fields.get("multi")),
        is_upsert=bool(fields.get("upsert")),
        array_filters=read_array_filters(fields.get("arrayFilters")),
        hint=hint,
        sort=fields.get("sort"),
        collation=fields.get("collation"),
        constants=fields.get("c"),
        index=index,
    )
    check_update_type(statement.update)
    if statement.sort and statement.is_multi:
        raise MongoFailure(9, "Cannot specify sort with multi=true")
    return statement


def check_update_type(update: Any) -> None:
    if not isinstance(update, (dict, list)):
        raise MongoFailure(9, "Update argument must be either an object or an array")


def read_array_filters(filters: Any) -> Sequence[Document]:
    if filters is None:
        return ()
    for filter in filters:
        if not isinstance(filter, dict):
            raise MongoFailure(14, "The elements of arrayFilters must be objects")
    found: Sequence[Document] = filters
    return found

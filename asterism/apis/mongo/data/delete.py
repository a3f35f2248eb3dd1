"""The command `delete`: statements one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from asterism.apis.mongo.arguments import ANY, ARRAY, BOOL, NUMBER, OBJECT, check_document
from asterism.apis.mongo.commands import FieldRule
from asterism.apis.mongo.data.changes import Statement
from asterism.apis.mongo.data.hints import check_hint_type
from asterism.apis.mongo.data.insert import is_ordered, statements_of
from asterism.apis.mongo.data.problems import failure_of_write, may_repeat, write_error
from asterism.apis.mongo.data.scopes import open_scope
from asterism.apis.mongo.data.targets import check_uuid, collection_name, find_record
from asterism.apis.mongo.data.update import check_single, run_statement
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.codec import decode
from asterism.values.bson.numbers import exact_value
from asterism.values.bson.types import MISSING, Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

FIELDS: Final = {
    "deletes": FieldRule(ARRAY, is_required=True),
    "ordered": FieldRule(BOOL),
    "let": FieldRule(OBJECT),
    "collectionUUID": FieldRule(("binData",)),
    "encryptionInformation": FieldRule(ANY),
}

_STATEMENT: Final = {
    "q": FieldRule(OBJECT, is_required=True),
    "limit": FieldRule(NUMBER, is_required=True, code=9),
    "hint": FieldRule(ANY),
    "collation": FieldRule(OBJECT),
    "sampleId": FieldRule(ANY),
}


async def delete(call: Call) -> Document:
    name = collection_name(call)
    statements = [_read_statement(decode(raw), index) for index, raw in enumerate(statements_of(call, "deletes"))]
    check_single(call, statements)
    scope = open_scope(call, let=call.field("let"))
    check_uuid(call.field("collectionUUID"), find_record(call, call.database, name), call.database, name)
    ordered = is_ordered(call)
    deleted = 0
    errors: list[Document] = []
    retried: list[int] = []
    for statement in statements:
        try:
            outcome = await run_statement(call, call.database, name, statement, scope, bypass=True)
        except Exception as error:
            failure = failure_of_write(error, is_first=may_repeat(call, statement.index))
            errors.append(write_error(statement.index, failure))
            if ordered:
                break
            continue
        deleted += outcome.matched
        if outcome.retried is not None:
            retried.append(statement.index)
    answer: Document = {"n": deleted}
    if retried:
        answer["retriedStmtIds"] = retried
    if errors:
        answer["writeErrors"] = errors
    return answer


def _read_statement(fields: Document, index: int) -> Statement:
    check_document("delete.deletes", fields, _STATEMENT)
    hint = fields.get("hint", MISSING)
    if hint is not MISSING:
        check_hint_type(hint)
    limit = exact_value(fields["limit"])
    if limit not in (0, 1):
        raise MongoFailure(9, f"The limit field in delete objects must be 0 or 1. Got {fields['limit']}")
    return Statement(
        filter=fields["q"],
        is_multi=limit == 0,
        hint=hint,
        collation=fields.get("collation"),
        index=index,
    )

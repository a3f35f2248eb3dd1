"""The command `bulkWrite`: inserts, updates and deletes of several collections in one command."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from asterism.apis.mongo.arguments import (
    ANY,
    ARRAY,
    BOOL,
    NUMBER,
    OBJECT,
    TEXT,
    TRUTH,
    as_int,
    check_document,
)
from asterism.apis.mongo.commands import FieldRule
from asterism.apis.mongo.data.answers import open_cursor, slices_of
from asterism.apis.mongo.data.changes import Statement
from asterism.apis.mongo.data.hints import check_hint_type
from asterism.apis.mongo.data.insert import check_count, insert_documents, is_ordered
from asterism.apis.mongo.data.problems import failure_of_write, may_repeat
from asterism.apis.mongo.data.scopes import open_scope
from asterism.apis.mongo.data.targets import check_uuid, find_or_create, find_record, find_to_change, split_namespace
from asterism.apis.mongo.data.update import check_update_type, read_array_filters, run_statement
from asterism.apis.mongo.data.validation import is_bypassed
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.raw_documents import elements
from asterism.values.bson.types import MISSING, Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.apis.mongo.commands import Answer
    from asterism.apis.mongo.data.variables import CommandScope

FIELDS: Final = {
    "ops": FieldRule(ARRAY, is_required=True),
    "nsInfo": FieldRule(ARRAY, is_required=True),
    "ordered": FieldRule(BOOL),
    "bypassDocumentValidation": FieldRule(TRUTH),
    "let": FieldRule(OBJECT),
    "errorsOnly": FieldRule(BOOL),
    "cursor": FieldRule(OBJECT),
}

_NAMESPACE: Final = {
    "ns": FieldRule(TEXT, is_required=True),
    "collectionUUID": FieldRule(("binData",)),
    "encryptionInformation": FieldRule(ANY),
    "isTimeseriesNamespace": FieldRule(BOOL),
}
_COMMON: Final = {"hint": FieldRule(ANY), "collation": FieldRule(OBJECT), "sampleId": FieldRule(ANY)}
_OPERATIONS: Final = {
    "insert": {
        "insert": FieldRule(NUMBER, is_required=True),
        "document": FieldRule(OBJECT, is_required=True),
    },
    "update": {
        "update": FieldRule(NUMBER, is_required=True),
        "filter": FieldRule(OBJECT, is_required=True),
        "updateMods": FieldRule(ANY, is_required=True, null_code=9),
        "arrayFilters": FieldRule(ARRAY),
        "multi": FieldRule(BOOL),
        "upsert": FieldRule(BOOL),
        "upsertSupplied": FieldRule(BOOL),
        "constants": FieldRule(OBJECT),
        "sort": FieldRule(OBJECT),
        **_COMMON,
    },
    "delete": {
        "delete": FieldRule(NUMBER, is_required=True),
        "filter": FieldRule(OBJECT, is_required=True),
        "multi": FieldRule(BOOL),
        **_COMMON,
    },
}

CURSOR_NAMESPACE = "admin.$cmd.bulkWrite"


class Namespace(NamedTuple):
    database: str
    name: str
    uuid: Any


class Operation(NamedTuple):
    """One operation: the document of an insert as bytes, or the statement of an update or a delete."""

    kind: str
    namespace: Namespace
    document: bytes
    statement: Statement | None


@dataclass(slots=True)
class _Totals:
    """The counters of the answer, and the results by operation."""

    errors: int = 0
    inserted: int = 0
    matched: int = 0
    modified: int = 0
    upserted: int = 0
    deleted: int = 0
    results: list[Document] = field(default_factory=list)
    retried: list[int] = field(default_factory=list)

    def fail(self, index: int, failure: MongoFailure, *, is_update: bool) -> None:
        self.errors += 1
        result: Document = {"ok": 0.0, "idx": index, "code": failure.code, "errmsg": failure.message}
        result.update(failure.details)
        result["n"] = 0
        if is_update:
            result["nModified"] = 0
        self.results.append(result)


async def bulk_write(call: Call) -> Answer:
    operations = _read_operations(call)
    scope = open_scope(call, let=call.field("let"))
    ordered = is_ordered(call)
    totals = await _run(call, operations, scope, ordered=ordered)
    if totals.errors and call.transaction is not None:
        await call.context.transactions.fail(call.transaction)
    totals.results.sort(key=lambda result: result["idx"])
    results = totals.results
    if call.field("errorsOnly"):
        results = [result for result in results if not result["ok"]]
    options = call.field("cursor") or {}
    counters: Document = {
        "nErrors": totals.errors,
        "nInserted": totals.inserted,
        "nMatched": totals.matched,
        "nModified": totals.modified,
        "nUpserted": totals.upserted,
        "nDeleted": totals.deleted,
    }
    if totals.retried:
        counters["retriedStmtIds"] = totals.retried
    size = options.get("batchSize")
    return await open_cursor(
        call,
        CURSOR_NAMESPACE,
        slices_of([encode(result) for result in results]),
        batch_size=len(results) + 1 if size is None else as_int(size),
        further=counters,
    )


async def _run(call: Call, operations: list[Operation], scope: CommandScope, *, ordered: bool) -> _Totals:
    totals = _Totals()
    bypass = is_bypassed(call.field("bypassDocumentValidation"))
    at = 0
    while at < len(operations):
        operation = operations[at]
        count = 1
        if operation.kind == "insert":
            while at + count < len(operations) and _continues(operation, operations[at + count]):
                count += 1
            failed = await _insert(call, operations[at : at + count], at, totals, ordered=ordered, bypass=bypass)
        else:
            failed = await _change(call, operation, at, totals, scope, bypass=bypass)
        if failed and ordered:
            break
        at += count
    return totals


def _continues(first: Operation, other: Operation) -> bool:
    return other.kind == "insert" and other.namespace is first.namespace


async def _insert(
    call: Call, operations: list[Operation], at: int, totals: _Totals, *, ordered: bool, bypass: bool
) -> bool:
    """Insert documents of neighboring operations on one collection together. Return whether one has failed."""
    namespace = operations[0].namespace
    try:
        find_to_change(call, namespace.database, namespace.name)
        _check_namespace_uuid(call, namespace)
        collection = await find_or_create(call, namespace.database, namespace.name)
        report = await insert_documents(
            call,
            collection,
            [operation.document for operation in operations],
            ordered=ordered,
            bypass=bypass,
            first_statement=at,
        )
    except Exception as error:
        failure = failure_of_write(error, is_first=may_repeat(call, at))
        for place in range(1 if ordered else len(operations)):
            totals.fail(at + place, failure, is_update=False)
        return True
    failures = dict(report.failures)
    last = min(failures, default=len(operations)) if ordered else len(operations)
    for place in range(len(operations)):
        if place in failures:
            totals.fail(at + place, failures[place], is_update=False)
        elif place < last:
            totals.results.append({"ok": 1.0, "idx": at + place, "n": 1})
    totals.inserted += report.inserted
    totals.retried += [at + place for place in report.retried]
    return bool(failures)


async def _change(
    call: Call, operation: Operation, at: int, totals: _Totals, scope: CommandScope, *, bypass: bool
) -> bool:
    namespace, statement = operation.namespace, operation.statement
    assert statement is not None, "only inserts have no statement"
    is_update = operation.kind == "update"
    try:
        _check_namespace_uuid(call, namespace)
        outcome = await run_statement(call, namespace.database, namespace.name, statement, scope, bypass=bypass)
    except Exception as error:
        totals.fail(at, failure_of_write(error, is_first=may_repeat(call, at)), is_update=is_update)
        return True
    result: Document = {"ok": 1.0, "idx": at, "n": outcome.matched}
    if outcome.retried is not None:
        totals.retried.append(at)
    if not is_update:
        totals.deleted += outcome.matched
    else:
        result["nModified"] = outcome.modified
        totals.modified += outcome.modified
        if outcome.upserted is MISSING:
            totals.matched += outcome.matched
        else:
            result["n"] = 1
            result["upserted"] = {"_id": outcome.upserted}
            totals.upserted += 1
    totals.results.append(result)
    return False


def _check_namespace_uuid(call: Call, namespace: Namespace) -> None:
    if namespace.uuid is not None:
        record = find_record(call, namespace.database, namespace.name)
        check_uuid(namespace.uuid, record, namespace.database, namespace.name)


# --- reading --------------------------------------------------------------------------------------------------------


def _read_operations(call: Call) -> list[Operation]:
    raws = _array(call, "ops")
    namespaces = [_read_namespace(decode(raw)) for raw in _array(call, "nsInfo")]
    check_count(len(raws))
    operations = [_read_operation(raw, index, namespaces) for index, raw in enumerate(raws)]
    is_multi = any(operation.statement is not None and operation.statement.is_multi for operation in operations)
    if is_multi and call.transaction_number is not None and not call.is_in_transaction:
        raise MongoFailure(72, "Cannot use retryable writes with multi=true")
    return operations


def _array(call: Call, name: str) -> list[bytes]:
    inline = call.field(name)
    if inline is not None and not all(isinstance(element, dict) for element in inline):
        raise MongoFailure(14, f"The elements of 'bulkWrite.{name}' must be objects")
    return call.documents(name)


def _read_namespace(fields: Document) -> Namespace:
    check_document("bulkWrite.nsInfo", fields, _NAMESPACE)
    database, name = split_namespace(fields["ns"])
    return Namespace(database, name, fields.get("collectionUUID"))


def _read_operation(raw: bytes, index: int, namespaces: list[Namespace]) -> Operation:
    fields = decode(raw)
    kind = next(iter(fields), "")
    rules = _OPERATIONS.get(kind)
    if rules is None:
        raise MongoFailure(40415, f"BSON field 'bulkWrite.ops.{kind}' is an unknown field.")
    check_document("bulkWrite.ops", fields, rules)
    place = as_int(fields[kind])
    if not 0 <= place < len(namespaces):
        raise MongoFailure(2, f"BulkWrite ops entry {index} has an invalid nsInfo index: {place}")
    if kind == "insert":
        return Operation(kind, namespaces[place], _raw_document(raw), None)
    hint = fields.get("hint", MISSING)
    if hint is not MISSING:
        check_hint_type(hint)
    statement = Statement(
        filter=fields["filter"],
        is_multi=bool(fields.get("multi")),
        hint=hint,
        collation=fields.get("collation"),
        index=index,
    )
    if kind == "update":
        check_update_type(fields["updateMods"])
        statement.update = fields["updateMods"]
        statement.is_upsert = bool(fields.get("upsert"))
        statement.array_filters = read_array_filters(fields.get("arrayFilters"))
        statement.constants = fields.get("constants")
        statement.sort = fields.get("sort")
        if statement.sort and statement.is_multi:
            raise MongoFailure(9, "Cannot specify sort with multi=true")
    return Operation(kind, namespaces[place], b"", statement)


def _raw_document(raw: bytes) -> bytes:
    for _, name, start, end in elements(raw):
        if name == b"document":
            return raw[start:end]
    raise MongoFailure(40414, "BSON field 'bulkWrite.ops.document' is missing but a required field")

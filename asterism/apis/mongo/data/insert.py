"""The command `insert`: documents as bytes, from the message to the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.mongo.arguments import ANY, ARRAY, BOOL, TRUTH
from asterism.apis.mongo.commands import FieldRule
from asterism.apis.mongo.data.capped import check_capped_write, trim
from asterism.apis.mongo.data.documents import prepare_document
from asterism.apis.mongo.data.problems import failure_of_write, write_error
from asterism.apis.mongo.data.retries import retry_token
from asterism.apis.mongo.data.scopes import open_scope
from asterism.apis.mongo.data.targets import check_uuid, collection_name, find_or_create, find_record
from asterism.apis.mongo.data.validation import check_body, is_bypassed, validator_of
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.collection import Collection
from asterism.models.collections.results import InsertResult, RetryToken
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# As hello tells clients.
BATCH_WRITES_MAX = 100_000

FIELDS: Final = {
    "documents": FieldRule(ARRAY, is_required=True),
    "ordered": FieldRule(BOOL),
    "bypassDocumentValidation": FieldRule(TRUTH),
    "collectionUUID": FieldRule(("binData",)),
    "encryptionInformation": FieldRule(ANY),
}


def statements_of(call: Call, name: str) -> list[bytes]:
    """Return the documents of the array of a write command; refuse none and too many."""
    inline = call.field(name)
    if inline is not None and not all(isinstance(element, dict) for element in inline):
        raise MongoFailure(14, f"The elements of '{call.name}.{name}' must be objects")
    found = call.documents(name)
    check_count(len(found))
    return found


def check_count(count: int) -> None:
    if not 0 < count <= BATCH_WRITES_MAX:
        raise MongoFailure(16, f"Write batch sizes must be between 1 and {BATCH_WRITES_MAX}. Got {count} operations.")


def is_ordered(call: Call) -> bool:
    return call.field("ordered") is not False


class InsertReport:
    """The outcome of inserts: how many, and the failures by the place of their documents."""

    __slots__ = ("failures", "inserted", "retried")

    def __init__(self) -> None:
        self.inserted = 0
        self.failures: list[tuple[int, MongoFailure]] = []
        self.retried: list[int] = []


async def insert(call: Call) -> Document:
    name = collection_name(call)
    documents = statements_of(call, "documents")
    check_uuid(call.field("collectionUUID"), find_record(call, call.database, name), call.database, name)
    ordered = is_ordered(call)
    collection = await find_or_create(call, call.database, name)
    report = await insert_documents(
        call,
        collection,
        documents,
        ordered=ordered,
        bypass=is_bypassed(call.field("bypassDocumentValidation")),
    )
    answer: Document = {"n": report.inserted}
    if report.retried:
        answer["retriedStmtIds"] = report.retried
    if report.failures:
        answer["writeErrors"] = [write_error(index, failure) for index, failure in report.failures]
    return answer


async def insert_documents(
    call: Call,
    collection: Collection,
    documents: Sequence[bytes],
    *,
    ordered: bool,
    bypass: bool,
    first_statement: int = 0,
) -> InsertReport:
    """Check and insert documents. Ordered inserts end at the first failure."""
    report = InsertReport()
    record = collection.record
    check_capped_write(call, collection)
    validator = None
    if "validator" in record.options and not bypass:
        validator = validator_of(record, open_scope(call), bypass=False)
    next_time = call.store.services.hybrid_clock.next
    ready: list[bytes] = []
    places: list[int] = []
    for index, raw in enumerate(documents):
        try:
            body = prepare_document(raw, next_time)
            check_body(validator, body)
        except Exception as error:
            report.failures.append((index, failure_of_write(error, is_first=False)))
            if ordered:
                break
            continue
        ready.append(body)
        places.append(index)
    if not ready:
        return report
    token = retry_token(call, first_statement)
    result = await _insert_where_it_is(call, collection, ready, token, ordered=ordered)
    if record.options.get("capped"):
        await trim(call, collection)
    report.inserted = result.inserted
    report.retried = [places[index] for index in result.retried]
    if result.problems:
        found: list[Any] = [
            (places[problem.index], failure_of_write(problem.error, is_first=False)) for problem in result.problems
        ]
        # An ordered batch has not come to the document that could not be prepared.
        report.failures = found if ordered else sorted(report.failures + found, key=lambda entry: entry[0])
    return report


async def _insert_where_it_is(
    call: Call, collection: Collection, documents: Sequence[bytes], token: RetryToken | None, *, ordered: bool
) -> InsertResult:
    """Insert documents, some of them perhaps into a collection that takes the place of one that was dropped or re-keyed
    meanwhile."""
    total = InsertResult()
    record = collection.record
    only: Sequence[int] | None = None
    while True:
        result = await collection.insert(
            documents,
            ordered=ordered,
            retry=token,
            unit=call.unit,
            spent=call.spent,
            allow_missing_shard_key=call.context.settings.allow_missing_shard_key,
            only=only,
        )
        total.inserted += result.inserted
        total.problems += result.problems
        total.retried += result.retried
        only = result.left
        if not only or (ordered and total.problems):
            return total
        await call.store.catch_up()
        collection = await find_or_create(call, record.database, record.name)

"""Execution of the operations that a script queued, in order, and their results as the text of the next turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from asterism.scripts.operations import (
    FeedOptions,
    FeedOutcome,
    ItemOutcome,
    ItemReference,
    OperationRefused,
    ScriptOperations,
    ScriptQuery,
    WriteOptions,
)
from asterism.values.json.text import dumps

OperationOutcome = ItemOutcome | FeedOutcome | OperationRefused

PAGE_SIZE_DEFAULT = 100
# A millisecond or two of the event loop.
CREATES_AT_ONCE_MAX = 100
PAGE_SIZE_MAX = 1000

# (operations, reference, body, options) as they come from the sandbox.
_Carrier = Callable[[ScriptOperations, Any, Any, Mapping[str, Any]], Awaitable[OperationOutcome]]

_CARRIERS: Mapping[str, _Carrier] = {
    "create": lambda to, _reference, body, options: to.create(body, _write_options(options)),
    "upsert": lambda to, _reference, body, options: to.upsert(body, _write_options(options)),
    "replace": lambda to, reference, body, options: to.replace(_reference(reference), body, _write_options(options)),
    "read": lambda to, reference, _body, options: to.read(_reference(reference), _write_options(options)),
    "delete": lambda to, reference, _body, options: to.delete(_reference(reference), _write_options(options)),
    "query": lambda to, _reference, body, options: to.query(_query(body), _feed_options(options)),
    "feed": lambda to, _reference, _body, options: to.read_feed(_feed_options(options)),
}


class NotAnOperation(Exception):
    """A message that the prelude never writes: a script broke its own prelude."""


def prepare(operation: list[Any], operations: ScriptOperations) -> Awaitable[OperationOutcome]:
    """Return a queued operation, ready to be awaited."""
    try:
        number, kind, reference, body, options = operation
        if type(number) is not int:
            raise NotAnOperation
        return _CARRIERS[kind](operations, reference, body, options)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise NotAnOperation from None


def creates_from(queued: Sequence[list[Any]], start: int) -> list[list[Any]]:
    """Return the consecutive creates from a position in the queue on, at most `CREATES_AT_ONCE_MAX` of them."""
    end = start
    while end < min(len(queued), start + CREATES_AT_ONCE_MAX) and _is_create(queued[end]):
        end += 1
    return list(queued[start:end])


def _is_create(operation: object) -> bool:
    match operation:
        case [int(), "create", _, dict(), dict()]:
            return True
        case _:
            return False


async def create_all(creates: Sequence[list[Any]], operations: ScriptOperations) -> list[bytes] | None:
    """Return the results of all creates; None if they have to be carried out one by one."""
    outcomes = await operations.create_many([create[3] for create in creates]) if len(creates) > 1 else None
    if outcomes is None:
        return None
    return [operation_result(create, outcome) for create, outcome in zip(creates, outcomes, strict=True)]


def operation_result(operation: list[Any], outcome: OperationOutcome) -> bytes:
    """Return the outcome of a queued operation as the sandbox reads it, without a document that the script ignores."""
    number, options = operation[0], operation[4]
    if isinstance(outcome, ItemOutcome) and outcome.resource is not None and options.get("isBlind") is True:
        return b'[%d,null,null,{"statusCode":%d}]' % (number, outcome.status)
    return result_text(number, outcome)


def result_text(number: int, outcome: OperationOutcome) -> bytes:
    """Return an outcome as the sandbox reads it: `[number, error, resource, options]`."""
    match outcome:
        case ItemOutcome(status=304):
            return b'[%d,null,null,{"statusCode":304,"notModified":true}]' % number
        case ItemOutcome(status=status, resource=None):
            return b'[%d,null,null,{"statusCode":%d}]' % (number, status)
        case ItemOutcome(status=status, resource=bytes() as resource):
            return b'[%d,null,%b,{"statusCode":%d}]' % (number, resource, status)
        case FeedOutcome(resources=resources, continuation=None, status=status):
            return b'[%d,null,[%b],{"statusCode":%d}]' % (number, b",".join(resources), status)
        case FeedOutcome(resources=resources, continuation=continuation, status=status):
            options = dumps({"statusCode": status, "continuation": continuation})
            return b"[%d,null,[%b],%b]" % (number, b",".join(resources), options)
        case OperationRefused(number=status, body=body):
            return b"[%d,%b,null,null]" % (number, dumps({"number": status, "body": body}))
        case _:
            raise TypeError(f"not an outcome: {outcome!r}")


def _reference(value: Mapping[str, Any]) -> ItemReference:
    return ItemReference(value["id"], value["rid"])


def _query(value: Mapping[str, Any]) -> ScriptQuery:
    # The query's parser refuses anything that is not text, as the script's own error.
    given = value.get("parameters")
    parameters = [entry for entry in given if isinstance(entry, dict)] if isinstance(given, list) else []
    return ScriptQuery(str(value.get("query", "")), parameters)


def _write_options(value: Mapping[str, Any]) -> WriteOptions:
    if value["etag"] is None and value["ifNoneMatch"] is None and value["indexAction"] == "default":
        return _PLAIN_WRITE
    return WriteOptions(value["etag"], value["ifNoneMatch"], value["indexAction"])


def _feed_options(value: Mapping[str, Any]) -> FeedOptions:
    asked = value["pageSize"]
    size = int(asked) if isinstance(asked, int | float) and asked >= 1 else PAGE_SIZE_DEFAULT
    return FeedOptions(min(size, PAGE_SIZE_MAX), value["continuation"])


_PLAIN_WRITE = WriteOptions()

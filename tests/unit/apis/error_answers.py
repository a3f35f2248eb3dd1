"""Examples of every error, and the bytes with which each door answers them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from asterism import errors
from asterism.apis.admin.errors import response_for
from asterism.apis.nosql.errors import error_response, failure_response
from asterism.apis.nosql.items.batches import _failure as failed_operation
from asterism.apis.storage.refusals import Refusal, internal_error
from asterism.apis.table.errors import error_body, error_headers, refusal_of
from asterism.errors import AsterismError
from asterism.keyspaces.catalog.forwarding import ForwardingRule, ForwardingState
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.limits import GIB
from asterism.models.blobs.failures import BlobFailure
from asterism.models.messages.messages import Failure
from asterism.models.queues.messages import MessageFailure
from asterism.models.tables.entities import FailureReason

Recorded = dict[str, Any]

FIELDS: dict[str, object] = {
    "account": "blue",
    "request_units": 1.0,
    "quota": "databases_max",
    "limit": 1,
    "total": 2,
    "reason": "Because.",
    "code": "SC1001",
    "position": 2,
    "index": 1,
    "status": 400,
    "segment": 1,
    "given": bytes(8),
    "computed": bytes(8),
    "start": 3,
    "end": 5,
    "more": (),
    "plan_json": '{"queryInfo":{}}',
    "what": "item",
    "bytes_max": 2 * GIB,
    "kind": "container",
    "name": "c",
    "item_id": "i",
    "paths": ("/a", "/b"),
    "retry_after_seconds": 0.0104,
    "key": "10ff",
    "written": 1,
    "planned": 3,
    "rule": ForwardingRule(1, b"\x01", ["big"], bytes(8), "new", ForwardingState.FORWARDING),
}
# Models name the field for their reasons alike; each has reasons of its own type.
FAILURES: dict[str, object] = {
    "BlobFailure": BlobFailure.NOT_FOUND,
    "Failure": Failure.LOCK_LOST,
    "FailureReason": FailureReason.EXISTS,
    "MessageFailure": MessageFailure.NOT_FOUND,
}


def all_errors() -> list[type[AsterismError]]:
    """Every class of the list that is raised: those without subclasses, and not made by a test; and malformed requests,
    of which a language has a kind of its own."""
    found = {*_leaves(AsterismError), errors.MalformedRequest}
    known = (kind for kind in found if kind.__module__.startswith("asterism."))
    return sorted(known, key=lambda kind: kind.__name__)


def _leaves(kind: type[AsterismError]) -> Iterator[type[AsterismError]]:
    children = kind.__subclasses__()
    if not children:
        yield kind
    for child in children:
        yield from _leaves(child)


def example(kind: type[AsterismError]) -> AsterismError:
    return kind(
        **{
            field.name: FAILURES[str(field.type)] if field.name == "failure" else FIELDS[field.name]
            for field in fields(kind)
        }
    )


def examples() -> dict[str, AsterismError]:
    """One of each error, and more where a door words an error by its fields."""
    found = {kind.__name__: example(kind) for kind in all_errors()}
    more = MalformedQuery("2206", "No path.", 7, 9)
    found |= {
        "MalformedQuery, several": MalformedQuery("SC2203", "No TOP.", 3, 5, (more,)),
        "ResourceNotFound, table": errors.ResourceNotFound(kind="table", name="t"),
        "OwnerNotFound, table": errors.OwnerNotFound(kind="table", name="t"),
        "ResourceNotFound, long name": errors.ResourceNotFound(kind="database", name="d" * 300),
        "RequestRateTooLarge, seconds": errors.RequestRateTooLarge(retry_after_seconds=2.25),
        "TooLarge, odd size": errors.TooLarge(what="batch", bytes_max=100),
    }
    return found


def _nosql(error: AsterismError) -> Recorded:
    response = error_response(error, "the-activity")
    return _recorded(response.status, response.headers, response.body)


def _nosql_batch(error: AsterismError) -> Recorded:
    return dict(failed_operation(error))


def _admin(error: AsterismError) -> Recorded:
    response = response_for(error)
    return _recorded(response.status, response.headers, response.body)


def _table(error: AsterismError) -> Recorded:
    return _refused(refusal_of(error))


def _refused(refusal: Refusal) -> Recorded:
    body = error_body(refusal, request_id="the-request", now_wall_seconds=0)
    return _recorded(refusal.status, error_headers(refusal), body)


def _recorded(status: int, headers: list[tuple[str, str]], body: bytes) -> Recorded:
    return {"status": status, "headers": [f"{name}: {value}" for name, value in headers], "body": body.decode()}


def examples_at(door: str) -> dict[str, AsterismError]:
    """The examples that can reach a door: all but those of another protocol's own errors."""
    own = f"asterism.apis.{door.partition(' ')[0]}."
    return {
        name: error
        for name, error in examples().items()
        if type(error).__module__.startswith(own) or not type(error).__module__.startswith("asterism.apis.")
    }


DOORS: dict[str, Callable[[AsterismError], Recorded]] = {
    "nosql": _nosql,
    "nosql batch": _nosql_batch,
    "table": _table,
    "admin": _admin,
}


def unexpected() -> dict[str, Recorded]:
    """The answers for what no error of the list describes."""
    response = failure_response("the-activity")
    return {
        "nosql": _recorded(response.status, response.headers, response.body),
        "table": _refused(internal_error()),
    }

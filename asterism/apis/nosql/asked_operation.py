"""The operation that a request asks for, before its handler runs: several share an address, and headers say which.

Handlers name their operation themselves, when they run. Faults that a test suite injects must know it before.
"""

from __future__ import annotations

from typing import Final

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.routes import ROUTES

# By the operation of the route: headers and what they make of it, the first that is true.
_BY_HEADER: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    route.operation: ((headers.IS_QUERY, f"query_{route.operation.removeprefix('create_')}s"),)
    for route in ROUTES
    if route.method == "POST" and route.operation.startswith("create_")
} | {
    "create_item": (
        (headers.IS_QUERY_PLAN, "plan_query"),
        (headers.IS_QUERY, "query_items"),
        (headers.IS_BATCH, "run_batch"),
        (headers.IS_UPSERT, "upsert_item"),
    )
}
_CHANGES: Final = "read_changes"

OPERATIONS: Final = frozenset(
    {_CHANGES}
    | {route.operation for route in ROUTES}
    | {operation for rows in _BY_HEADER.values() for _, operation in rows}
)


def asked_operation(call: Call) -> str:
    given = call.request.headers
    if call.operation == "list_items" and headers.CHANGE_FEED in given:
        return _CHANGES
    for header, operation in _BY_HEADER.get(call.operation, ()):
        if headers.is_true(given.get(header)):
            return operation
    return call.operation

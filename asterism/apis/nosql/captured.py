"""Requests of this door as a capture keeps them (`apis/captures`): read from the request and its answer, after that was
sent. Handlers do nothing for it, but that a query adds what it has compiled and read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from asterism.advisor.captured_request import CapturedRequest, KeyComponent
from asterism.advisor.value_digests import Scalar
from asterism.apis.captures.known_values import bounds, equalities, path_text, scalars_of, shown_lists
from asterism.apis.nosql import headers
from asterism.apis.nosql.headers import is_true
from asterism.languages.cosmos_sql.shape import shape_of
from asterism.partitioning.key_path import parse_key_path
from asterism.values.item import Item
from asterism.values.json.text import loads
from asterism.values.undefined import UNDEFINED

if TYPE_CHECKING:
    from asterism.apis.captures.recorder import Recorder
    from asterism.apis.nosql.call import Call
    from asterism.apis.transports.http import HeaderList, Response
    from asterism.languages.cosmos_sql.request import QueryRequest
    from asterism.reading.conditions import PropertyPath
    from asterism.reading.query_page import QueryPage

_OK: Final = (200, 207)
# Requests that no other partition key would have made better: malformed ones, and those without the right.
_STATUSES_NOT_KEPT: Final = frozenset({400, 401, 413})
_SYSTEM_PROPERTIES: Final = frozenset({"_rid", "_self", "_etag", "_ts", "_attachments"})
# Operations of a patch whose value is that of the property afterwards.
_SETTING: Final = frozenset({"add", "replace", "set"})
_BATCH: Final = "run_batch"
_CHANGE_FEED: Final = "(change feed)"


@dataclass(slots=True)
class SampledCall:
    """A request that a capture keeps. The handler of a query adds what it has compiled and read."""

    recorder: Recorder
    key_paths: tuple[PropertyPath, ...]
    query: QueryRequest | None = None
    page: QueryPage | None = None
    # Of the answer, once it is there. Its body is held for a batch alone.
    answered_at: float = 0.0
    status: int = 0
    headers: HeaderList = field(default_factory=list)
    body_bytes: int = 0
    body: bytes = b""


def keep(call: Call, sampled: SampledCall, response: Response) -> None:
    """Hand a request that was sampled, with its answer, to its recorder, which describes it when there is time."""
    describe = _DESCRIPTIONS.get(call.operation)
    if describe is None or response.status in _STATUSES_NOT_KEPT:
        return
    sampled.answered_at = call.context.clock.wall_seconds()
    sampled.status, sampled.headers, sampled.body_bytes = response.status, response.headers, len(response.body)
    if call.operation == _BATCH:
        sampled.body = response.body
    bytes_held = len(call.request.body) + len(sampled.body)
    if sampled.page is not None:
        # Its results are the body of the answer.
        sampled.page = replace(sampled.page, results=[])
    sampled.recorder.add(partial(describe, call, sampled), bytes_held=bytes_held)


# --- single items -----------------------------------------------------------------------------------------------------


def _request(call: Call, operation: str, sampled: SampledCall) -> CapturedRequest:
    """Return what all operations have in common."""
    charge = _header(sampled, headers.CHARGE)
    return CapturedRequest(
        at=round(sampled.answered_at, 3),
        operation=operation,
        key=_key_of(call.request.headers.get(headers.PARTITION_KEY)),
        charge=None if charge is None else float(charge),
        status=sampled.status,
    )


def _header(sampled: SampledCall, wanted: str) -> str | None:
    for name, value in sampled.headers:
        if name == wanted:
            return value
    return None


def _key_of(text: str | None) -> tuple[KeyComponent, ...] | None:
    # Read as it was sent: a key may be named by other values than its own, by those that it is computed from.
    values = None if text is None else loads(text)
    if not isinstance(values, list) or not values:
        return None
    return tuple([UNDEFINED if value == {} else value for value in values])


def _read(call: Call, sampled: SampledCall) -> list[CapturedRequest]:
    request = _request(call, "read", sampled)
    request.item_id = call.item_name
    if sampled.status in _OK:
        request.size_bytes = sampled.body_bytes
    return [request]


def _delete(call: Call, sampled: SampledCall) -> list[CapturedRequest]:
    request = _request(call, "delete", sampled)
    request.item_id = call.item_name
    return [request]


def _patch(call: Call, sampled: SampledCall) -> list[CapturedRequest]:
    request = _request(call, "patch", sampled)
    request.item_id = call.item_name
    request.values = _values_set(loads(call.request.body))
    request.size_bytes = sampled.body_bytes or None
    return [request]


def _writer(operation: str) -> Callable[[Call, SampledCall], list[CapturedRequest]]:
    def describe(call: Call, sampled: SampledCall) -> list[CapturedRequest]:
        request = _request(call, operation, sampled)
        _add_item(request, cast(Item, loads(call.request.body)), size_bytes=len(call.request.body))
        return [request]

    return describe


def _add_item(request: CapturedRequest, item: Item, *, size_bytes: int) -> None:
    item_id = item.get("id")
    request.item_id = item_id if isinstance(item_id, str) else None
    request.values = scalars_of(item, is_hidden=_SYSTEM_PROPERTIES.__contains__)
    request.size_bytes = size_bytes


def _values_set(patch: object) -> dict[str, Scalar]:
    """Return the scalars that a patch sets, by path."""
    operations = patch.get("operations") if isinstance(patch, dict) else patch
    values: dict[str, Scalar] = {}
    for operation in cast("Sequence[Mapping[str, Any]]", operations):
        value = operation.get("value")
        if str(operation.get("op")).lower() in _SETTING and not isinstance(value, dict | list):
            path = path_text(parse_key_path(operation["path"]))
            if path is not None:
                values[path] = value
    return values


# --- several operations in one request --------------------------------------------------------------------------------


def _batch(call: Call, sampled: SampledCall) -> list[CapturedRequest]:
    """Return the operations of a batch under its name, or those of a bulk request, which stand alone."""
    request = call.request
    entries = cast("list[dict[str, Any]]", loads(request.body))
    # A request that was refused as a whole has no results of its operations.
    results = loads(sampled.body) if sampled.status in _OK else [{}] * len(entries)
    name = sampled.recorder.new_batch_name() if is_true(request.headers.get(headers.BATCH_ATOMIC)) else None
    size_bytes = len(request.body) // len(entries)
    kept = []
    for entry, result in zip(entries, cast("list[dict[str, Any]]", results), strict=True):
        operation = _request(call, entry["operationType"].lower(), sampled)
        operation.batch = name
        operation.key = _key_of(entry.get("partitionKey")) or operation.key
        operation.status = result.get("statusCode", sampled.status)
        operation.charge = result.get("requestCharge", 0.0)
        body = entry.get("resourceBody")
        if operation.operation == "patch":
            operation.item_id, operation.values = entry.get("id"), _values_set(body)
        elif isinstance(body, dict):
            _add_item(operation, body, size_bytes=size_bytes)
        else:
            operation.item_id = entry.get("id")
        kept.append(operation)
    return kept


def _script(call: Call, sampled: SampledCall) -> list[CapturedRequest]:
    request = _request(call, "script", sampled)
    request.shape = call.script_name
    return [request]


# --- many items -------------------------------------------------------------------------------------------------------


def _pages(call: Call, operation: str, sampled: SampledCall) -> CapturedRequest:
    given = call.request.headers
    request = _request(call, operation, sampled)
    request.of_range = headers.PARTITION_RANGE_ID in given or headers.START_EPK in given
    request.continued = headers.CONTINUATION in given
    request.partitions = 1
    if sampled.status in _OK:
        count = _header(sampled, headers.ITEM_COUNT)
        request.results, request.size_bytes = int(count or 0), sampled.body_bytes
    return request


def _feed(call: Call, sampled: SampledCall) -> list[CapturedRequest]:
    request = _pages(call, "feed", sampled)
    request.loaded = request.results
    return [request]


def _changes(call: Call, sampled: SampledCall) -> list[CapturedRequest]:
    request = _pages(call, "feed", sampled)
    request.loaded = request.results
    request.shape = _CHANGE_FEED
    return [request]


def _query(call: Call, sampled: SampledCall) -> list[CapturedRequest]:
    request = _pages(call, "query", sampled)
    query, page = sampled.query, sampled.page
    if query is not None:
        compiled = query.compiled
        condition = compiled.index_conditions()
        fixed = equalities(condition)
        # In the order of the filter, which decides into which index the engine looks first.
        pinned = {path: values for path, values in _pinned_values(sampled).items() if path not in fixed}
        request.equal = shown_lists(fixed | pinned)
        between = {text: pair for path, pair in bounds(condition).items() if (text := path_text(path)) is not None}
        request.between = between
        order = (path_text(path) for path, _ in compiled.index_use.order_paths or ())
        request.order = tuple(text for text in order if text is not None)
        request.shape = shape_of(query.tree, text=query.text)
    if page is not None:
        request.loaded, request.partitions = page.items_loaded, len(page.ranges_read)
    return [request]


def _pinned_values(sampled: SampledCall) -> dict[PropertyPath, tuple[Scalar, ...]]:
    """Return the values of the present partition key that the filter leaves, however it is written."""
    query, paths = sampled.query, sampled.key_paths
    keys = None if query is None else query.compiled.pinned_partition_keys(paths)
    if not keys:
        return {}
    levels = min(map(len, keys))
    found = {path: [key[level] for key in keys] for level, path in enumerate(paths[:levels])}
    return {
        path: cast("tuple[Scalar, ...]", tuple(dict.fromkeys(values)))
        for path, values in found.items()
        if UNDEFINED not in values
    }


_DESCRIPTIONS: Final[Mapping[str, Callable[[Call, SampledCall], list[CapturedRequest]]]] = {
    "read_item": _read,
    "create_item": _writer("create"),
    "upsert_item": _writer("upsert"),
    "replace_item": _writer("replace"),
    "patch_item": _patch,
    "delete_item": _delete,
    _BATCH: _batch,
    "execute_sproc": _script,
    "query_items": _query,
    "list_items": _feed,
    "read_changes": _changes,
}

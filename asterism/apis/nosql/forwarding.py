"""Requests for a partition key that was promoted, carried out where its items are now (`models/documents/promotion`).

A handler runs into the rule of the container that the path names, and is run again on the container of the rule. The
answer names the ranges that the client knows, and has no session token: clients file tokens under either container,
by the path or by the links in the items, and those of one mean nothing in the other. Instead, every forwarded read sees
the newest state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.session import ConsistencyRules
from asterism.apis.transports.http import Headers, Response
from asterism.errors import MalformedRequest, OwnerNotFound, StorageUnavailable
from asterism.keyspaces.catalog.forwarding import ForwardingRule
from asterism.models.documents.batch import Operation
from asterism.models.documents.bulk import run_operation
from asterism.models.documents.container import Container
from asterism.models.documents.forwarding import PartitionFenced, PartitionForwarded, scope_of_rule
from asterism.models.documents.results import ItemAnswer
from asterism.partitioning.effective_key import to_text
from asterism.partitioning.partition_key import PartitionKey
from asterism.values import resource_ids
from asterism.values.json.text import dumps, loads

Handler = Callable[[Call], Awaitable[Response]]
Detour = PartitionForwarded | PartitionFenced

# A hand-over takes a moment, and is given up before this; clients give a request up later.
_FENCED_SECONDS_MAX: Final = 15.0
_LOOK_SECONDS: Final = 0.02
# Every forwarded read is of the newest state.
_NEWEST: Final = ConsistencyRules("Strong")
# Before the position of a change feed in the other container: those of the container that clients name mean nothing
# there.
_FEED_MARK: Final = "forwarded-"
_ITEM_SEGMENTS: Final = 6


async def answer_elsewhere(call: Call, handler: Handler, detour: Detour) -> Response:
    """Answer a request whose handler has met a rule: after the hand-over, and in the container of the rule."""
    while True:
        try:
            if isinstance(detour, PartitionForwarded):
                return await _answer_forwarded(call, handler, detour.rule)
            await _hand_over_done(call.context, call.items_container(), detour)
            return await handler(call)
        except (PartitionForwarded, PartitionFenced) as another:
            detour = another


async def run_elsewhere(
    context: Context, source: Container, key: PartitionKey, operation: Operation, detour: Detour
) -> ItemAnswer:
    """Carry out an operation of a bulk request that has met a rule."""
    while True:
        try:
            if isinstance(detour, PartitionFenced):
                await _hand_over_done(context, source, detour)
                return await run_operation(source, key, operation)
            context.store.forwarding_use.note(detour.rule.number)
            target = _target_of(context, detour.rule)
            own_key = (*key, operation.item_id.decode()) if _has_ids(source, target) else key
            answer = await run_operation(target, own_key, operation)
            answer.range_id, answer.lsn = await _place_of(context, source, detour.rule)
            return answer
        except (PartitionForwarded, PartitionFenced) as another:
            detour = another


async def _hand_over_done(context: Context, source: Container, fenced: PartitionFenced) -> None:
    """Return when the rule has another state, or was dropped."""
    keyspace, clock = source.keyspace, context.clock
    until = clock.monotonic_seconds() + _FENCED_SECONDS_MAX
    while fenced.rule in (keyspace.record.forwarding or ()):
        if clock.monotonic_seconds() > until:
            raise StorageUnavailable(reason=fenced.text)
        await keyspace.changed(seconds_max=_LOOK_SECONDS)
        await context.store.services.router.follow()


async def _answer_forwarded(call: Call, handler: Handler, rule: ForwardingRule) -> Response:
    source, context = call.items_container(), call.context
    context.store.forwarding_use.note(rule.number)
    forwarded = ForwardedCall(call, source, _target_of(context, rule), rule)
    try:
        response = await handler(forwarded)
    except (PartitionForwarded, PartitionFenced) as detour:
        # A key below a promoted prefix may have been promoted from there.
        response = await answer_elsewhere(forwarded, handler, detour)
    finally:
        call.operation, call.sampled = forwarded.operation, forwarded.sampled
    await _disguise(response, call, source, rule)
    return response


def _target_of(context: Context, rule: ForwardingRule) -> Container:
    target = context.store.find_container(rule.target_rid)
    if target is None:
        raise OwnerNotFound(kind="container", name=rule.target_name)
    return target


def _has_ids(source: Container, target: Container) -> bool:
    """Return whether the id is a level of the target's key, behind the levels of the source's."""
    return len(target.record.definition.paths) > len(source.record.definition.paths)


async def _place_of(context: Context, source: Container, rule: ForwardingRule) -> tuple[int, int]:
    """Return the range of the source that the client finds the key in, and its present LSN."""
    partition, lsn, _ = await context.store.services.router.read(source.keyspace, rule.prefix, ())
    return partition.id, lsn


async def _disguise(response: Response, call: Call, source: Container, rule: ForwardingRule) -> None:
    """Give an answer the range and the path of the container that the client has named, and no session token."""
    context, given = call.context, call.request.headers
    range_id, lsn = await _place_of(context, source, rule)
    changes = dict(context.facts(source).headers)
    changes[headers.LSN] = str(lsn)
    changes[headers.PARTITION_RANGE_ID] = given.get(headers.PARTITION_RANGE_ID) or str(range_id)
    for place, (name, value) in reversed(list(enumerate(response.headers))):
        if name == headers.SESSION_TOKEN:
            del response.headers[place]
        elif name == headers.ETAG and headers.CHANGE_FEED in given:
            response.headers[place] = name, f'"{_FEED_MARK}{value.strip(_QUOTES)}"'
        elif name in changes:
            response.headers[place] = name, changes[name]


_QUOTES: Final = '"'


class ForwardedCall(Call):
    """A call whose items are in another container than the one that its path names."""

    __slots__ = ("_named_item", "_target")

    def __init__(self, call: Call, source: Container, target: Container, rule: ForwardingRule) -> None:
        super().__init__(replace(call.context, consistency_rules=_NEWEST), call.request, call.request_id)
        self.operation, self.sampled = call.operation, call.sampled
        self._target = target
        self._named_item = call.item_id_in(source) if len(call.parts) == _ITEM_SEGMENTS else None
        self.parts = list(call.parts)
        changes = _changed_headers(call.request.headers, rule)
        if len(call.parts) == _ITEM_SEGMENTS and self._named_item is None and call.parts[4] == "docs":
            self._find_item(call, source)
        if _has_ids(source, target):
            changes |= self._with_id(call)
        self.request = replace(call.request, headers=_ChangedHeaders(call.request.headers, changes))

    def items_container(self) -> Container:
        return self._target

    def item_id_in(self, container: Container) -> str | None:  # noqa: ARG002
        return self._named_item

    def _find_item(self, call: Call, source: Container) -> None:
        """Find the item that a path of resource ids names. Items kept their numbers, which end those ids."""
        text = call.item_name
        if call.request.method == "PUT":
            body = loads(call.request.body)
            if isinstance(body, dict) and body.get("_rid") == text and isinstance(body.get("id"), str):
                self._named_item = str(body["id"])
                return
        rid, own = resource_ids.from_text(text), source.record.rid
        if rid is not None and rid.startswith(own):
            self.parts[5] = resource_ids.to_text(self._target.record.rid + rid[len(own) :])

    def _with_id(self, call: Call) -> dict[str, str | None]:
        """Return the header of the full key, where a request is for an item; a query reads all ids below the key."""
        given = call.request.headers
        if is_true(given.get(headers.IS_BATCH)) or call.parts[4] in ("sprocs", "operations"):
            raise MalformedRequest(
                reason="The items of this partition key are in the container "
                f"'{self._target.record.name}' now, each in a logical partition of its own. Transactions and scripts "
                "cannot span them; write the items one by one."
            )
        text = given.get(headers.PARTITION_KEY)
        if call.request.method == "PUT" or (call.request.method == "POST" and not _is_query(given)):
            # The item itself has the key; that the header agrees with it was checked in the source.
            return {headers.PARTITION_KEY: None}
        if text is None or len(call.parts) != _ITEM_SEGMENTS:
            return {}
        if self._named_item is None:
            raise MalformedRequest(reason="An item of this partition key is addressed by its id, not by a resource id.")
        return {headers.PARTITION_KEY: dumps([*_values(text), self._named_item]).decode()}


def _is_query(given: Headers) -> bool:
    return is_true(given.get(headers.IS_QUERY)) or is_true(given.get(headers.IS_QUERY_PLAN))


def _values(text: str) -> list[object]:
    values = loads(text.encode())
    return values if isinstance(values, list) else []


def _changed_headers(given: Headers, rule: ForwardingRule) -> dict[str, str | None]:
    changes: dict[str, str | None] = {headers.CONSISTENCY_LEVEL: None}
    if headers.PARTITION_RANGE_ID in given:
        # Ranges of the source; the request is for no more of it than the key.
        scope = scope_of_rule(rule)
        changes |= {
            headers.PARTITION_RANGE_ID: None,
            headers.START_EPK: given.get(headers.START_EPK) or to_text(scope.start),
            headers.END_EPK: given.get(headers.END_EPK) or to_text(scope.end),
        }
    if headers.CHANGE_FEED in given:
        changes[headers.IF_NONE_MATCH] = _feed_position(given.get(headers.IF_NONE_MATCH))
    return changes


def _feed_position(text: str | None) -> str | None:
    """Return the position of a change feed in the target. A reader that comes from the source begins there anew: it
    sees items twice rather than never."""
    known = (text or "").strip().removeprefix("W/").strip(_QUOTES)
    if known == "*":
        return known
    return known.removeprefix(_FEED_MARK) if known.startswith(_FEED_MARK) else None


class _ChangedHeaders:
    """The headers of a request, some of them with other values; None leaves one out."""

    __slots__ = ("_changes", "_given")

    def __init__(self, given: Headers, changes: Mapping[str, str | None]) -> None:
        self._given = given
        self._changes = changes

    def get(self, key: str, /) -> str | None:
        return self._changes[key] if key in self._changes else self._given.get(key)

    def __contains__(self, key: str, /) -> bool:
        return self._changes[key] is not None if key in self._changes else key in self._given

    def keys(self) -> list[str]:
        return [key for key in dict.fromkeys([*self._given.keys(), *self._changes]) if key in self]

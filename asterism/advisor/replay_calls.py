"""How a captured request is carried out by a client of a container with another partition key.

A client knows what the request knew: the id and the present key of an item, all of an item that it writes, what a query
fixes. Where that gives the key, the request is a point read or goes to one partition; where it does not, a client asks
for the id in all partitions, and only then can it write. All of it is decided here, without a connection.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from asterism.advisor.candidate_keys import CandidateKey, KnownValues
from asterism.advisor.captured_request import CapturedRequest, KeyComponent
from asterism.advisor.replay_items import Item, ItemModel, with_values, written_item
from asterism.advisor.replay_queries import page_items, query_body, query_by_id
from asterism.advisor.value_digests import Scalar
from asterism.partitioning.key_path import parse_key_path
from asterism.partitioning.partition_key import value_at
from asterism.values.undefined import UNDEFINED

CallKind = Literal["read", "create", "upsert", "replace", "patch", "delete", "query", "feed", "batch"]
NamedKey = Sequence[KeyComponent]

# Clients of a container with a synthetic key send items without one: the server computes it.
_ABSENT_KEY: NamedKey = (UNDEFINED,)


@dataclass(frozen=True, slots=True)
class Call:
    """A request of the client. Without a key it goes to every partition, or where its filter leads (`is_pinned`)."""

    kind: CallKind
    key: NamedKey | None = None
    item_id: str = ""
    # Of a write the item, or the operations of a patch or a batch; the body of a query.
    body: Any = None
    page_items: int = 0
    is_pinned: bool = False
    # The places of all keys that the server asks for the item, if it has to ask several.
    searched: tuple[bytes, ...] = ()

    @property
    def fans_out(self) -> bool:
        return self.key is None and not self.is_pinned

    @property
    def key_text(self) -> str:
        """The key as a header has it."""
        return json.dumps([{} if value is UNDEFINED else value for value in self.key or ()])


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """The calls in their order. A call that fails ends them."""

    calls: tuple[Call, ...]
    # A transactional batch whose operations have several keys now.
    breaks_batch: bool = False
    # A write that gives an item another key: the item is deleted, and created anew.
    moves_item: bool = False


class Client:
    """A client of a container with a candidate key, which sends the requests of a capture one after the other."""

    def __init__(self, candidate: CandidateKey, present: CandidateKey, items: ItemModel) -> None:
        self._candidate = candidate
        self._present = present
        self._items = items
        self._levels = len(candidate.parsed.paths)

    def carry_out(self, request: CapturedRequest) -> CarriedOut:
        """Return the calls for a request; none for a script, which no capture describes."""
        match request.operation:
            case "read":
                return CarriedOut((self._read(request),))
            case "create" | "upsert" | "replace":
                return self._write(request)
            case "patch":
                return self._patch(request)
            case "delete":
                return self._delete(request)
            case "query":
                return CarriedOut((self._query(request),))
            case "feed":
                return CarriedOut((self._feed(request),))
            case _:
                return CarriedOut(())

    def carry_out_batch(self, requests: Sequence[CapturedRequest]) -> CarriedOut:
        """Return one transactional batch if all operations have one key, or else the operations one by one."""
        parts = [self.carry_out(request) for request in requests]
        calls = tuple(call for part in parts for call in part.calls)
        moves = any(part.moves_item for part in parts)
        keys = {self._batch_key(call) for call in calls}
        kinds = {call.kind for call in calls}
        if len(calls) > 1 and len(keys) == 1 and None not in keys and not kinds & {"query", "feed", "batch"}:
            operations = [_operation(call) for call in calls]
            return CarriedOut((Call("batch", key=keys.pop(), body=operations),))
        return CarriedOut(calls, breaks_batch=len(calls) > 1, moves_item=moves)

    # --- reads ------------------------------------------------------------------------------------------------------

    def _read(self, request: CapturedRequest) -> Call:
        known = self._known_of_item(request)
        key = self._named_key(known)
        item_id = request.item_id or ""
        if key is None:
            return self._query_by_id(item_id, known)
        return Call("read", key=key, item_id=item_id, searched=self._searched(known))

    def _query_by_id(self, item_id: str, known: KnownValues) -> Call:
        """Return the query of a client that does not know the whole key; the first levels of one narrow it."""
        return Call("query", key=self._prefix(known), item_id=item_id, body=query_by_id(item_id), page_items=1)

    def _query(self, request: CapturedRequest) -> Call:
        whole, size = self._with_named_key(request), page_items(request)
        routes = self._candidate.routes_of(whole.equal, whole.between)
        if routes is None:
            return Call("query", body=query_body(whole), page_items=size)
        if len(routes) == 1:
            body = query_body(self._with_named_key(request, but=self._candidate.sources))
            return Call("query", key=routes[0], body=body, page_items=size)
        sources = self._source_values(whole.equal)
        if sources is not None:
            return Call("query", key=sources, body=query_body(whole), page_items=size)
        # The server finds the keys in the filter, those of a synthetic key too.
        return Call("query", body=query_body(whole), page_items=size, is_pinned=True)

    def _with_named_key(self, request: CapturedRequest, *, but: Sequence[str] = ()) -> CapturedRequest:
        """Add the present key to the filter of a query that named it beside the text, without the paths in `but`."""
        named = {
            path: tuple(values)
            for path, values in self._known_key(request).items()
            if path not in request.equal and path not in but and UNDEFINED not in values
        }
        # As a value that is not absent, it is a JSON scalar.
        conditions = cast("dict[str, tuple[Scalar, ...]]", named)
        return replace(request, equal={**request.equal, **conditions}) if conditions else request

    def _feed(self, request: CapturedRequest) -> Call:
        known = self._known_key(request)
        return Call("feed", key=self._named_key(known) or self._prefix(known), page_items=page_items(request))

    # --- writes -----------------------------------------------------------------------------------------------------

    def _write(self, request: CapturedRequest) -> CarriedOut:
        before = self._items.find(request)
        item = written_item(request, before if request.operation != "create" else None)
        item = self._with_present_key(request, item)
        self._items.put(item)
        kind = cast(CallKind, request.operation)
        if before is not None and kind != "create" and self._has_moved(before, item):
            return self._move(before, item)
        key = self._key_of(item)
        if kind == "replace":
            return CarriedOut((Call(kind, key=key, item_id=str(item["id"]), body=item),))
        return CarriedOut((Call(kind, key=self._key_for_insert(item), item_id=str(item["id"]), body=item),))

    def _patch(self, request: CapturedRequest) -> CarriedOut:
        before = self._items.find(request)
        lookup, key = self._locate(request, before)
        if before is not None:
            after = with_values(before, request.values)
            self._items.put(after)
            if self._has_moved(before, after):
                moved = self._move(before, after)
                return CarriedOut((*lookup, *moved.calls), moves_item=True)
        if key is None:
            return CarriedOut(lookup)
        operations = [{"op": "set", "path": path, "value": value} for path, value in request.values.items()]
        item_id, searched = request.item_id or "", self._searched(self._known_of_item(request))
        return CarriedOut((*lookup, Call("patch", key=key, item_id=item_id, body=operations, searched=searched)))

    def _delete(self, request: CapturedRequest) -> CarriedOut:
        lookup, key = self._locate(request, self._items.find(request))
        self._items.remove(request)
        if key is None:
            return CarriedOut(lookup)
        searched = self._searched(self._known_of_item(request))
        return CarriedOut((*lookup, Call("delete", key=key, item_id=request.item_id or "", searched=searched)))

    def _locate(self, request: CapturedRequest, item: Item | None) -> tuple[tuple[Call, ...], NamedKey | None]:
        """Return the key for a write of an item that is named by its id, and the query that finds it if need be."""
        known = self._known_of_item(request)
        key = self._named_key(known)
        if key is not None:
            return (), key
        lookup = (self._query_by_id(request.item_id or "", known),)
        return lookup, None if item is None else self._key_of(item)

    def _move(self, before: Item, after: Item) -> CarriedOut:
        removal = Call("delete", key=self._key_of(before), item_id=str(before["id"]))
        creation = Call("create", key=self._key_for_insert(after), item_id=str(after["id"]), body=after)
        return CarriedOut((removal, creation), moves_item=True)

    def _has_moved(self, before: Item, after: Item) -> bool:
        return self._candidate.key_of(before) != self._candidate.key_of(after)

    # --- keys -------------------------------------------------------------------------------------------------------

    def _known_key(self, request: CapturedRequest) -> dict[str, Sequence[KeyComponent]]:
        """Return what the present key of a request says, by path."""
        if request.key is None:
            return {}
        return {path: [value] for path, value in zip(self._present.parsed.paths, request.key, strict=False)}

    def _known_of_item(self, request: CapturedRequest) -> dict[str, Sequence[KeyComponent]]:
        known = self._known_key(request)
        return known if request.item_id is None else {**known, "/id": [request.item_id]}

    def _named_key(self, known: KnownValues) -> NamedKey | None:
        """Return the whole key as a request can name it: the key, or the values that a synthetic one is made of."""
        routes = self._candidate.routes_of(known)
        if routes is None or len(routes[0]) < self._levels:
            return None
        return routes[0] if len(routes) == 1 else self._source_values(known)

    def _searched(self, known: KnownValues) -> tuple[bytes, ...]:
        routes = self._candidate.routes_of(known)
        if routes is None or len(routes) < 2 or len(routes[0]) < self._levels:
            return ()
        return tuple(map(self._candidate.point, routes))

    def _prefix(self, known: KnownValues) -> NamedKey | None:
        routes = self._candidate.routes_of(known)
        return routes[0] if routes is not None and len(routes) == 1 else None

    def _source_values(self, known: KnownValues) -> NamedKey | None:
        """Return the known values of the sources of a key with suffixes; that of a hashed suffix may be missing."""
        rule = self._candidate.rule
        if rule is None or rule.suffix is None or self._levels > 1:
            return None
        values = [known.get(path, ()) for path in rule.sources]
        needed = values[: len(rule.parts)]
        if any(len(each) != 1 for each in needed):
            return None
        return tuple(each[0] for each in values if len(each) == 1)

    def _key_of(self, item: Mapping[str, Any]) -> NamedKey:
        """Return the key of a stored item; of a drawn suffix the sources, for which the server asks all suffixes."""
        rule = self._candidate.rule
        if rule is None or not rule.is_random:
            return self._candidate.key_of(item)
        return tuple(_component(value_at(item, parse_key_path(path))) for path in rule.sources)

    def _key_for_insert(self, item: Mapping[str, Any]) -> NamedKey:
        return _ABSENT_KEY if self._candidate.kind == "synthetic" else self._candidate.key_of(item)

    def _batch_key(self, call: Call) -> tuple[KeyComponent, ...] | None:
        """Return the logical partition of a call, as far as it is one; operations of a batch name no key each."""
        if self._candidate.is_random or call.key is None:
            return None
        if call.kind in ("create", "upsert") and isinstance(call.body, dict):
            return self._candidate.key_of(call.body)
        return tuple(call.key) if len(call.key) == self._levels else None

    def _with_present_key(self, request: CapturedRequest, item: Item) -> Item:
        """Add the values of the present key, which captures by hand may leave out of the item."""
        missing = {
            path: values[0]
            for path, values in self._known_key(request).items()
            if values[0] is not UNDEFINED and value_at(item, parse_key_path(path)) is UNDEFINED
        }
        return with_values(item, missing) if missing else item


def _component(value: object) -> KeyComponent:
    return UNDEFINED if isinstance(value, dict | list) else cast(KeyComponent, value)


def _operation(call: Call) -> dict[str, Any]:
    """Return a call as an operation of a batch."""
    operation: dict[str, Any] = {"operationType": call.kind.capitalize()}
    if call.kind in ("read", "replace", "patch", "delete"):
        operation["id"] = call.item_id
    if call.kind == "patch":
        operation["resourceBody"] = {"operations": call.body}
    elif call.body is not None:
        operation["resourceBody"] = call.body
    return operation

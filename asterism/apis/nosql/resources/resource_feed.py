"""Feeds of small resources that belong to another one: users, permissions and scripts share these handlers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context, check_if_match, is_not_modified
from asterism.apis.nosql.headers import is_true, metadata_headers
from asterism.apis.nosql.items.queries import matching
from asterism.apis.nosql.paging import list_page
from asterism.apis.transports.http import Response
from asterism.errors import ResourceNotFound
from asterism.keyspaces.catalog.owned_records import OwnedRecord, OwnedRecords
from asterism.throughput.charge import METADATA, METADATA_CHANGE
from asterism.values.json.text import dumps
from asterism.values.resource_ids import from_text, to_text

ToJson = Callable[[OwnedRecord], dict[str, object]]


def find_owned(records: OwnedRecords, owner_rid: bytes, name_or_rid: str) -> OwnedRecord | None:
    found = records.find(owner_rid, name_or_rid)
    if found is None:
        rid = from_text(name_or_rid)
        found = None if rid is None or not rid.startswith(owner_rid) else records.get(rid)
    return found


class ResourceFeed(ABC):
    """The handlers of a feed. `segment` is its name in paths, `envelope` its name in answers."""

    kind: str
    segment: str
    envelope: str

    @abstractmethod
    def records(self, context: Context) -> OwnedRecords: ...

    @abstractmethod
    def owner_rid(self, call: Call) -> bytes: ...

    @abstractmethod
    def name_at(self, call: Call) -> str:
        """Return the name or the resource id at the end of a path."""

    @abstractmethod
    def parse(self, call: Call) -> tuple[str, dict[str, Any]]:
        """Return the name and the properties of the resource in a request's body."""

    @abstractmethod
    def to_json_for(self, call: Call) -> ToJson:
        """Return how this request's answer shows a record; refuse headers that ask for the impossible."""

    async def delete_record(self, context: Context, record: OwnedRecord) -> None:
        await self.records(context).delete(record)

    def find(self, call: Call) -> OwnedRecord:
        """Return the resource that a path names, by name or by resource id."""
        owner_rid, name = self.owner_rid(call), self.name_at(call)
        found = find_owned(self.records(call.context), owner_rid, name)
        if found is None:
            raise ResourceNotFound(kind=self.kind, name=name)
        return found

    async def post(self, call: Call) -> Response:
        """Create or upsert a resource, or query the feed."""
        context, given = call.context, call.request.headers
        if is_true(given.get(headers.IS_QUERY)):
            call.operation = f"query_{self.segment}"
            return await self.list_all(call)
        owner_rid, records = self.owner_rid(call), self.records(context)
        to_json = self.to_json_for(call)
        name, properties = self.parse(call)
        known = records.find(owner_rid, name) if is_true(given.get(headers.IS_UPSERT)) else None
        if known is not None:
            check_if_match(given, known.etag)
            return _answer(200, await records.replace(known, name, properties, now=context.now()), to_json)
        return _answer(201, await records.create(owner_rid, name, properties, now=context.now()), to_json)

    async def list_all(self, call: Call) -> Response:
        context, request = call.context, call.request
        owner_rid, to_json = self.owner_rid(call), self.to_json_for(call)
        entries = [(record.name, to_json(record)) for record in self.records(context).owned_by(owner_rid)]
        return list_page(
            request.headers,
            await matching(context, request, entries),
            rid=to_text(owner_rid),
            name=self.envelope,
            more_headers=metadata_headers(charge=METADATA),
        )

    async def read(self, call: Call) -> Response:
        record = self.find(call)
        if is_not_modified(call.request.headers, record.etag):
            return Response(304, metadata_headers(charge=METADATA, etag=record.etag))
        return _answer(200, record, self.to_json_for(call), charge=METADATA)

    async def replace(self, call: Call) -> Response:
        context = call.context
        record, to_json = self.find(call), self.to_json_for(call)
        check_if_match(call.request.headers, record.etag)
        name, properties = self.parse(call)
        return _answer(200, await self.records(context).replace(record, name, properties, now=context.now()), to_json)

    async def delete(self, call: Call) -> Response:
        record = self.find(call)
        check_if_match(call.request.headers, record.etag)
        await self.delete_record(call.context, record)
        return Response(204, metadata_headers(charge=METADATA_CHANGE))


def _answer(status: int, record: OwnedRecord, to_json: ToJson, *, charge: float = METADATA_CHANGE) -> Response:
    return Response(status, metadata_headers(charge=charge, etag=record.etag), dumps(to_json(record)))

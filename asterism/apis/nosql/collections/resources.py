"""Databases and collections of MongoDB, read as databases and containers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.collections.view import (
    CollectionView,
    collections_of,
    container_settings,
    database_of,
    view_of,
    views_of,
)
from asterism.apis.nosql.context import header_path, is_not_modified
from asterism.apis.nosql.headers import metadata_headers
from asterism.apis.nosql.items.queries import matching
from asterism.apis.nosql.paging import list_page
from asterism.apis.nosql.resources.containers import container_json
from asterism.apis.nosql.resources.databases import shared_json
from asterism.apis.nosql.resources.pkranges import range_response, ranges_response
from asterism.apis.transports.http import HeaderList, Response
from asterism.errors import OwnerNotFound, ResourceNotFound
from asterism.models.collections.shared_names import SharedName
from asterism.throughput.charge import METADATA
from asterism.values.json.text import dumps
from asterism.values.resource_ids import to_text


async def read_database(call: Call) -> Response:
    found = database_of(call.context, call.database_name)
    answer_headers = metadata_headers(charge=METADATA, etag=found.record.etag)
    if is_not_modified(call.request.headers, found.record.etag):
        return Response(304, answer_headers)
    return Response(200, answer_headers, dumps(shared_json(found)))


async def list_containers(call: Call) -> Response:
    context, database = call.context, _owner(call)
    entries = [(view.record.name, _container_json(view)) for view in views_of(context, database)]
    return list_page(
        call.request.headers,
        await matching(context, call.request, entries),
        rid=to_text(database.record.rid),
        name="DocumentCollections",
        more_headers=_headers(database),
    )


async def read_container(call: Call) -> Response:
    view = view_of(call.context, call.database_name, call.container_name)
    etag = view.keyspace_record.etag
    answer_headers = [*_headers(view.database), (headers.ETAG, etag)]
    if is_not_modified(call.request.headers, etag):
        return Response(304, answer_headers)
    return Response(200, answer_headers, dumps(_container_json(view)))


def _container_json(view: CollectionView) -> dict[str, object]:
    # As of a container, with settings in the protocol's words.
    from_record = container_json(view.keyspace_record)
    system = {name: value for name, value in from_record.items() if name.startswith("_")}
    return {**container_settings(view), **system}


def _headers(database: SharedName) -> HeaderList:
    return [
        *metadata_headers(charge=METADATA),
        (headers.ALT_CONTENT_PATH, header_path(f"dbs/{database.shown}")),
        (headers.CONTENT_PATH, to_text(database.record.rid)),
    ]


def _owner(call: Call) -> SharedName:
    try:
        return database_of(call.context, call.database_name)
    except ResourceNotFound as missing:
        raise OwnerNotFound(kind=missing.kind, name=missing.name) from None


async def list_ranges(call: Call) -> Response:
    view = view_of(call.context, call.database_name, call.container_name)
    return ranges_response(call.request, view.keyspace_record, view.facts)


async def read_range(call: Call) -> Response:
    view = view_of(call.context, call.database_name, call.container_name)
    return range_response(call.range_name, view.keyspace_record, view.facts)


def empty_feed(envelope: str) -> Callable[[Call], Awaitable[Response]]:
    """Return the handler of a feed that collections never have entries in: scripts, conflicts, users."""

    async def list_nothing(call: Call) -> Response:
        if len(call.parts) > 3 and call.parts[2] == "colls":
            rid, common = _container_feed(call)
        else:
            database = _owner(call)
            rid, common = to_text(database.record.rid), _headers(database)
        return list_page(call.request.headers, [], rid=rid, name=envelope, more_headers=common)

    return list_nothing


def _container_feed(call: Call) -> tuple[str, HeaderList]:
    view = view_of(call.context, call.database_name, call.container_name)
    return view.facts.rid, [*view.facts.headers, (headers.CHARGE, str(METADATA))]


def is_collections(call: Call) -> bool:
    """Return whether the path of a request names a database of collections."""
    context, parts = call.context, call.parts
    if context.collections is None or len(parts) < 2 or parts[0] != "dbs":
        return False
    try:
        database = database_of(context, parts[1])
    except ResourceNotFound:
        return False
    return bool(collections_of(context).records(context.account, database.record.name))

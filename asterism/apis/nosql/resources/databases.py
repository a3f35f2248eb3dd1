"""Databases: create, read, delete, list and query."""

from __future__ import annotations

from operator import itemgetter

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context, check_if_match, is_not_modified, json_object
from asterism.apis.nosql.headers import is_true, metadata_headers
from asterism.apis.nosql.items.queries import matching
from asterism.apis.nosql.paging import list_page
from asterism.apis.nosql.resources.throughput import throughput_of
from asterism.apis.transports.http import HeaderList, Response
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.models.collections.shared_names import SharedName
from asterism.models.collections.shared_names import list_databases as list_shared
from asterism.throughput.charge import METADATA, METADATA_CHANGE
from asterism.values.json.text import dumps
from asterism.values.resource_ids import self_link_of_database, to_text


def database_json(record: DatabaseRecord) -> dict[str, object]:
    return {
        "id": record.name,
        "_rid": to_text(record.rid),
        "_self": self_link_of_database(record.rid),
        "_etag": record.etag,
        "_colls": "colls/",
        "_users": "users/",
        "_ts": record.changed_at,
    }


async def post_databases(call: Call) -> Response:
    context, request = call.context, call.request
    if is_true(request.headers.get(headers.IS_QUERY)):
        call.operation = "query_databases"
        return await list_databases(call)
    name = json_object(request, context).get("id")
    record = await context.store.create_database(context.account, name, throughput_of(request.headers))
    return Response(201, metadata_headers(charge=METADATA_CHANGE, etag=record.etag), dumps(database_json(record)))


async def list_databases(call: Call) -> Response:
    context, request = call.context, call.request
    own = [(record.name, database_json(record)) for record in context.store.list_databases(context.account)]
    entries = sorted(own + _databases_of_collections(context), key=itemgetter(0))
    return list_page(
        request.headers,
        await matching(context, request, entries),
        rid="",
        name="Databases",
        more_headers=_feed_headers(),
    )


def _databases_of_collections(context: Context) -> list[tuple[str, dict[str, object]]]:
    if context.collections is None:
        return []
    return [(found.shown, shared_json(found)) for found in list_shared(context.store.catalog, context.account)]


def shared_json(database: SharedName) -> dict[str, object]:
    """Return a database of MongoDB's collections, which this door shows for reading."""
    return {**database_json(database.record), "id": database.shown}


def _feed_headers() -> HeaderList:
    return metadata_headers(charge=METADATA)


async def read_database(call: Call) -> Response:
    request = call.request
    record = call.database()
    answer_headers = metadata_headers(charge=METADATA, etag=record.etag)
    if is_not_modified(request.headers, record.etag):
        return Response(304, answer_headers)
    return Response(200, answer_headers, dumps(database_json(record)))


async def delete_database(call: Call) -> Response:
    context, request = call.context, call.request
    check_if_match(request.headers, call.database().etag)
    await context.store.delete_database(context.account, call.database_name)
    return Response(204, metadata_headers(charge=METADATA_CHANGE))

"""Containers: create, read, replace, delete, list and query."""

from __future__ import annotations

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context, check_if_match, header_path, is_not_modified, json_object
from asterism.apis.nosql.errors import ContainerRecreated
from asterism.apis.nosql.headers import is_true, metadata_headers
from asterism.apis.nosql.items.queries import matching
from asterism.apis.nosql.paging import list_page
from asterism.apis.nosql.resources.quotas import quota_of, sizes_of
from asterism.apis.nosql.resources.throughput import throughput_of
from asterism.apis.transports.http import HeaderList, Request, Response
from asterism.keyspaces.catalog.records import DatabaseRecord, KeyspaceRecord
from asterism.keyspaces.routing.statistics import Size
from asterism.limits import KIB
from asterism.models.documents.container import Container
from asterism.throughput.charge import METADATA, METADATA_CHANGE
from asterism.values.json.text import dumps
from asterism.values.resource_ids import self_link_of_collection, to_text


def container_json(record: KeyspaceRecord) -> dict[str, object]:
    return {
        **record.settings,
        "_rid": to_text(record.rid),
        "_ts": record.changed_at,
        "_self": self_link_of_collection(record.rid),
        "_etag": record.etag,
        "_docs": "docs/",
        "_sprocs": "sprocs/",
        "_triggers": "triggers/",
        "_udfs": "udfs/",
        "_conflicts": "conflicts/",
    }


def _headers(database: DatabaseRecord, *, charge: float, etag: str | None = None) -> HeaderList:
    return [
        *metadata_headers(charge=charge, etag=etag),
        (headers.ALT_CONTENT_PATH, header_path(f"dbs/{database.name}")),
        (headers.CONTENT_PATH, to_text(database.rid)),
    ]


async def post_containers(call: Call) -> Response:
    context, request = call.context, call.request
    if is_true(request.headers.get(headers.IS_QUERY)):
        call.operation = "query_containers"
        return await list_containers(call)
    database = call.owning_database()
    body = json_object(request, context)
    container = await context.store.create_container(database, body, throughput_of(request.headers))
    record = container.keyspace.record
    return Response(201, _headers(database, charge=METADATA_CHANGE, etag=record.etag), dumps(container_json(record)))


async def list_containers(call: Call) -> Response:
    context, request = call.context, call.request
    database = call.owning_database()
    containers = context.store.list_containers(database)
    entries = [(container.record.name, container_json(container.keyspace.record)) for container in containers]
    return list_page(
        request.headers,
        await matching(context, request, entries),
        rid=to_text(database.rid),
        name="DocumentCollections",
        more_headers=_headers(database, charge=METADATA),
    )


async def read_container(call: Call) -> Response:
    context, request = call.context, call.request
    given = request.headers
    database = call.owning_database()
    container = context.store.container(database, call.container_name)
    record = container.keyspace.record
    answer_headers = _headers(database, charge=METADATA, etag=record.etag)
    if is_not_modified(given, record.etag):
        return Response(304, answer_headers)
    body = container_json(record)
    wants_quota = is_true(given.get(headers.POPULATE_QUOTA))
    wants_statistics = is_true(given.get(headers.POPULATE_PARTITION_STATISTICS))
    if wants_quota or wants_statistics:
        sizes = await sizes_of(context, container)
        if wants_statistics:
            body["statistics"] = [_statistics_json(range_id, size) for range_id, size in sizes]
        if wants_quota:
            answer_headers += quota_of(context, container, sizes).headers()
            answer_headers.append(await _index_progress(context, container))
    return Response(200, answer_headers, dumps(body))


def _statistics_json(range_id: int, size: Size) -> dict[str, object]:
    return {
        "id": str(range_id),
        "sizeInKB": size.bytes // KIB,
        "documentCount": size.items,
        "sampledDistinctPartitionKeyCount": 0,
        "partitionKeys": [],
    }


async def _index_progress(context: Context, container: Container) -> tuple[str, str]:
    return headers.INDEX_PROGRESS, str(await context.store.reindexer.percent(container.keyspace))


async def replace_container(call: Call) -> Response:
    context, request = call.context, call.request
    database = call.owning_database()
    container = context.store.container(database, call.container_name)
    _check_intended(request, container)
    check_if_match(request.headers, container.keyspace.record.etag)
    replaced = await context.store.replace_container(container, json_object(request, context))
    record = replaced.keyspace.record
    answer_headers = _headers(database, charge=METADATA_CHANGE, etag=record.etag)
    answer_headers.append(await _index_progress(context, replaced))
    return Response(200, answer_headers, dumps(container_json(record)))


async def delete_container(call: Call) -> Response:
    context, request = call.context, call.request
    database = call.owning_database()
    container = context.store.container(database, call.container_name)
    _check_intended(request, container)
    check_if_match(request.headers, container.keyspace.record.etag)
    await context.store.delete_container(container)
    return Response(204, _headers(database, charge=METADATA_CHANGE))


def _check_intended(request: Request, container: Container) -> None:
    intended = request.headers.get(headers.INTENDED_CONTAINER_RID)
    if intended is not None and intended != to_text(container.record.rid):
        raise ContainerRecreated(name=container.record.name)

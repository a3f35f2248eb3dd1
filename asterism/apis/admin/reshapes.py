"""Split and merge on demand, their history, and the other work in the background."""

from __future__ import annotations

from typing import Any

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.job_progress import percent_of
from asterism.apis.admin.parameters import body_object, keyspace_of, query_parameters, range_id_of
from asterism.apis.admin.promotions import promotions_under_way
from asterism.apis.admin.rekeys import rekeys_under_way
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest
from asterism.keyspaces.reshaping.job import Progress, ReshapeJob
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.documents.upkeep.reindexer import Walk
from asterism.values.json.text import dumps, loads


async def begin_split(services: AdminServices, request: Request) -> Response:
    body = body_object(request)
    keyspace = keyspace_of(services, body)
    job = await services.reshaper.split(keyspace, range_id_of(body.get("range")))
    return await accepted_response(services, job)


async def begin_merge(services: AdminServices, request: Request) -> Response:
    body = body_object(request)
    keyspace = keyspace_of(services, body)
    ranges = body.get("ranges")
    if not isinstance(ranges, list) or len(ranges) != 2:
        raise MalformedRequest(reason="'ranges' must be the ids of two adjacent partition ranges.")
    left_id, right_id = (range_id_of(range_id) for range_id in ranges)
    return await accepted_response(services, await services.reshaper.merge(keyspace, left_id, right_id))


async def show_merge_plan(services: AdminServices, request: Request) -> Response:
    plan = await services.reshaper.merge_plan(_keyspace_asked(services, request))
    pairs = [{"ranges": [str(merge.left_id), str(merge.right_id)]} for merge in plan]
    return Response(200, JSON_HEADERS, dumps({"merges": pairs}))


async def show_jobs(services: AdminServices, _: Request) -> Response:
    under_way = sorted(services.reshaper.progress.values(), key=lambda progress: progress.job.id)
    shown = [described for progress in under_way if (described := await describe_job(services, progress)) is not None]
    for walk in await services.store.reindexer.all_walks():
        shown += await _describe_walk(services, walk)
    shown += await rekeys_under_way(services)
    shown += await promotions_under_way(services)
    return Response(200, JSON_HEADERS, dumps({"jobs": shown, "tasks": _tasks(services)}))


async def show_history(services: AdminServices, request: Request) -> Response:
    keyspace = _keyspace_asked(services, request)
    stored = await services.store.catalog.work.history_of(keyspace.record.rid)
    return Response(200, JSON_HEADERS, dumps({"history": [loads(event) for event in stored]}))


def _tasks(services: AdminServices) -> list[dict[str, Any]]:
    """Describe background work on items: deletions by partition key, and entries updated to new settings."""
    shown = []
    for task in sorted(services.store.housekeeper.tasks.values(), key=lambda task: task.number):
        names = services.names_of(task.keyspace_rid)
        if names is not None:
            database, container = names
            described = {"id": str(task.number), "kind": task.kind.value, "database": database, "container": container}
            shown.append({**described, "items_done": task.done})
    return shown


def _keyspace_asked(services: AdminServices, request: Request) -> Keyspace:
    return keyspace_of(services, query_parameters(request))


async def accepted_response(services: AdminServices, job: ReshapeJob) -> Response:
    progress = services.reshaper.progress.get(job.id) or Progress(job)
    return Response(202, JSON_HEADERS, dumps({"job": await describe_job(services, progress)}))


async def _describe_walk(services: AdminServices, walk: Walk) -> list[dict[str, Any]]:
    """Describe an index transformation as a job; empty if its container is gone, or is of another account."""
    record = walk.keyspace.record
    names = services.names_of(record.rid)
    if names is None:
        return []
    database, container = names
    percent = await services.store.reindexer.percent(walk.keyspace)
    return [
        {
            "id": walk.mark,
            "collection": collection_names(services, record.rid),
            "kind": "index",
            "reason": "indexing policy",
            "database": database,
            "container": container,
            "ranges": [str(partition.id) for partition in record.map.ranges],
            "step": f"{percent} %",
            "percent": percent,
            "entries_copied": walk.items_walked,
            "started_at": record.changed_at,
            "trouble": walk.trouble,
        }
    ]


async def describe_job(services: AdminServices, progress: Progress) -> dict[str, Any] | None:
    """Describe a job under way; None if its container is gone, or is of another account."""
    job = progress.job
    names = services.names_of(job.keyspace_rid)
    if names is None:
        return None
    database, container = names
    return {
        "id": str(job.id),
        "collection": collection_names(services, job.keyspace_rid),
        "kind": job.kind,
        "reason": job.reason,
        "database": database,
        "container": container,
        "ranges": [str(source_id) for source_id in job.source_ids],
        "step": progress.step.value,
        "percent": await percent_of(services, progress),
        "entries_copied": progress.entries_copied,
        "started_at": job.started_at,
        "trouble": progress.trouble,
    }


def collection_names(services: AdminServices, keyspace_rid: bytes) -> dict[str, str | None] | None:
    """Return the names by which clients know a keyspace, with those of its account and database."""
    keyspace = services.store.catalog.keyspaces.get(keyspace_rid)
    collection = None if keyspace is None else services.collection_of(keyspace)
    return None if collection is None else collection.names()

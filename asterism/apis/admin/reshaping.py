"""Split and merge on demand, what has become of them, and what else goes on in the background."""

from __future__ import annotations

from typing import Any

from asterism.apis.admin.console import Console
from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import body_object, keyspace_of, query_parameters, range_id_of
from asterism.apis.admin.rekeying import rekeys_under_way
from asterism.apis.http import Request, Response
from asterism.documents.reindexing import Walk
from asterism.errors import MalformedRequest
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.reshape_job import Progress, ReshapeJob
from asterism.values.json_text import dumps, loads


async def begin_split(console: Console, request: Request) -> Response:
    told = body_object(request)
    keyspace = keyspace_of(console, told)
    job = await console.reshaping.split(keyspace, range_id_of(told.get("range")))
    return accepted(console, job)


async def begin_merge(console: Console, request: Request) -> Response:
    told = body_object(request)
    keyspace = keyspace_of(console, told)
    ranges = told.get("ranges")
    if not isinstance(ranges, list) or len(ranges) != 2:
        raise MalformedRequest(reason="'ranges' must be the ids of two neighbouring partition ranges.")
    left_id, right_id = (range_id_of(one) for one in ranges)
    return accepted(console, await console.reshaping.merge(keyspace, left_id, right_id))


async def show_merge_plan(console: Console, request: Request) -> Response:
    plan = await console.reshaping.merge_plan(_asked_for(console, request))
    pairs = [{"ranges": [str(one.left_id), str(one.right_id)]} for one in plan]
    return Response(200, JSON_HEADERS, dumps({"merges": pairs}))


async def show_jobs(console: Console, _: Request) -> Response:
    under_way = sorted(console.reshaping.progress.values(), key=lambda progress: progress.job.id)
    shown = [described for one in under_way if (described := _describe(console, one)) is not None]
    for walk in await console.store.reindexing.all_walks():
        shown += await _describe_walk(console, walk)
    shown += await rekeys_under_way(console)
    return Response(200, JSON_HEADERS, dumps({"jobs": shown, "tasks": _tasks(console)}))


async def show_history(console: Console, request: Request) -> Response:
    keyspace = _asked_for(console, request)
    stored = await console.store.catalog.work.history_of(keyspace.record.rid)
    return Response(200, JSON_HEADERS, dumps({"history": [loads(one) for one in stored]}))


def _tasks(console: Console) -> list[dict[str, Any]]:
    """Background work on items: deletions by partition key, and entries brought into line with new settings."""
    shown = []
    for task in sorted(console.store.housekeeping.tasks.values(), key=lambda one: one.number):
        names = console.names_of(task.keyspace_rid)
        if names is not None:
            database, container = names
            told = {"id": str(task.number), "kind": task.kind.value, "database": database, "container": container}
            shown.append({**told, "items_done": task.done})
    return shown


def _asked_for(console: Console, request: Request) -> Keyspace:
    return keyspace_of(console, query_parameters(request))


def accepted(console: Console, job: ReshapeJob) -> Response:
    progress = console.reshaping.progress.get(job.id) or Progress(job)
    return Response(202, JSON_HEADERS, dumps({"job": _describe(console, progress)}))


async def _describe_walk(console: Console, walk: Walk) -> list[dict[str, Any]]:
    """An index transformation in the words of a job; nothing when its container is gone, or is of another account."""
    record = walk.keyspace.record
    names = console.names_of(record.rid)
    if names is None:
        return []
    database, container = names
    return [
        {
            "id": walk.mark,
            "kind": "index",
            "reason": "indexing policy",
            "database": database,
            "container": container,
            "ranges": [str(one.id) for one in record.map.ranges],
            "step": f"{await console.store.reindexing.percent(walk.keyspace)} %",
            "entries_copied": walk.items_walked,
            "started_at": record.changed_at,
            "trouble": walk.trouble,
        }
    ]


def _describe(console: Console, progress: Progress) -> dict[str, Any] | None:
    """A job under way; None when its container is gone, or is of another account."""
    job = progress.job
    names = console.names_of(job.keyspace_rid)
    if names is None:
        return None
    database, container = names
    return {
        "id": str(job.id),
        "kind": job.kind,
        "reason": job.reason,
        "database": database,
        "container": container,
        "ranges": [str(one) for one in job.source_ids],
        "step": progress.step.value,
        "entries_copied": progress.entries_copied,
        "started_at": job.started_at,
        "trouble": progress.trouble,
    }

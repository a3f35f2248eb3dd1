"""Copying a container to another partition key: begun, watched and ended."""

from __future__ import annotations

from typing import Any

from asterism.apis.admin.console import Console
from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import body_object, text_of
from asterism.apis.http import Request, Response
from asterism.documents.rekey_job import RekeyJob, RekeyPhase
from asterism.errors import MalformedRequest
from asterism.values.json_text import dumps

# Of the items that cannot be copied; the count tells of the rest.
_SHOWN_UNCOPIED = 20


async def begin_rekey(console: Console, request: Request) -> Response:
    told = body_object(request)
    source = console.container(text_of(told, "database"), text_of(told, "container"))
    job = await console.store.begin_rekey(source, text_of(told, "target"), _paths(told.get("path")))
    return Response(202, JSON_HEADERS, dumps({"rekey": await _describe(console, job)}))


async def switch_rekey(console: Console, request: Request) -> Response:
    told = body_object(request)
    target = console.container(text_of(told, "database"), text_of(told, "target"))
    job = await console.store.rekeying.switch(target)
    return Response(202, JSON_HEADERS, dumps({"rekey": await _describe(console, job)}))


async def show_rekeys(console: Console, _: Request) -> Response:
    jobs = sorted(console.store.rekeying.jobs.values(), key=lambda job: job.number)
    shown = [told for job in jobs if (told := await _describe(console, job)) is not None]
    return Response(200, JSON_HEADERS, dumps({"rekeys": shown}))


def _paths(told: object) -> list[str]:
    paths = [told] if isinstance(told, str) else told
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        raise MalformedRequest(reason="'path' must be the path of the new partition key, or a list of paths.")
    return paths


async def rekeys_under_way(console: Console) -> list[dict[str, Any]]:
    """Copyings that are not over, in the words of other jobs."""
    jobs = [job for job in console.store.rekeying.jobs.values() if not job.phase.is_over]
    return [shown for job in jobs if (shown := await _as_job(console, job)) is not None]


async def _as_job(console: Console, job: RekeyJob) -> dict[str, Any] | None:
    told = await _describe(console, job)
    if told is None:
        return None
    target = console.keyspace(told["database"], told["target"]).record
    step = "switching" if job.is_switching else job.phase.value
    if job.phase is RekeyPhase.COPYING:
        # Items come and go meanwhile, so that the two counts are not of one moment.
        step = f"copying, {min(99, 100 * job.items_copied // max(told['source_items'], 1))} %"
    return {
        "id": told["id"],
        "kind": "rekey",
        "reason": f"to {told['target']}",
        "database": told["database"],
        "container": told["container"],
        "ranges": [str(one.id) for one in console.keyspace(told["database"], told["container"]).record.map.ranges],
        "step": step,
        "entries_copied": job.items_copied + job.changes_followed,
        "started_at": target.changed_at,
        "trouble": job.trouble or ("some items have no place in the target" if job.uncopied else ""),
    }


async def _describe(console: Console, job: RekeyJob) -> dict[str, Any] | None:
    """A job; None when one of its containers is gone, or is of another account."""
    source = console.names_of(bytes.fromhex(job.source_rid))
    target = console.names_of(bytes.fromhex(job.target_rid))
    if source is None or target is None:
        return None
    source_items, target_items = job.source_items, job.target_items
    if not job.phase.is_over:
        count = console.store.rekeying.item_count
        source_items = await count(console.container(*source))
        target_items = await count(console.container(*target))
    return {
        "id": str(job.number),
        "database": source[0],
        "container": source[1],
        "target": target[1],
        "phase": job.phase.value,
        "is_caught_up": job.is_caught_up,
        "is_switching": job.is_switching,
        "is_source_read_only": bool(console.keyspace(*source).record.writes_refused),
        "items_copied": job.items_copied,
        "changes_followed": job.changes_followed,
        "source_items": source_items,
        "target_items": target_items,
        "uncopied_count": len(job.uncopied),
        "uncopied": [
            {"id": one.id, "partition_key": one.partition_key, "reason": one.reason}
            for one in list(job.uncopied.values())[:_SHOWN_UNCOPIED]
        ],
        "trouble": job.trouble,
    }

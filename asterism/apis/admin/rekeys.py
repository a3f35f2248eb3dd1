"""Copies of a container with another partition key: begin, watch and end them."""

from __future__ import annotations

from typing import Any

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.job_progress import PERCENT_MAX, estimate_percent
from asterism.apis.admin.parameters import body_object, text_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest
from asterism.models.documents.rekey.job import RekeyJob, RekeyPhase
from asterism.values.json.text import dumps

# Of the items that cannot be copied; the count includes the rest.
_SHOWN_UNCOPIED = 20


async def begin_rekey(services: AdminServices, request: Request) -> Response:
    body = body_object(request)
    source = services.container(text_of(body, "database"), text_of(body, "container"))
    job = await services.store.begin_rekey(
        source, text_of(body, "target"), _paths(body.get("path")), _rules(body.get("synthetic"))
    )
    return Response(202, JSON_HEADERS, dumps({"rekey": await _describe(services, job)}))


async def switch_rekey(services: AdminServices, request: Request) -> Response:
    body = body_object(request)
    target = services.container(text_of(body, "database"), text_of(body, "target"))
    job = await services.store.rekeyer.switch(target)
    return Response(202, JSON_HEADERS, dumps({"rekey": await _describe(services, job)}))


async def show_rekeys(services: AdminServices, _: Request) -> Response:
    jobs = sorted(services.store.rekeyer.jobs.values(), key=lambda job: job.number)
    shown = [described for job in jobs if (described := await _describe(services, job)) is not None]
    return Response(200, JSON_HEADERS, dumps({"rekeys": shown}))


def _paths(given: object) -> list[str]:
    paths = [given] if isinstance(given, str) else given
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        raise MalformedRequest(reason="'path' must be the path of the new partition key, or a list of paths.")
    return paths


def _rules(given: object) -> dict[str, Any] | None:
    if given is not None and not isinstance(given, dict):
        raise MalformedRequest(reason="'synthetic' must be an object with a rule for each path that is computed.")
    return given


async def rekeys_under_way(services: AdminServices) -> list[dict[str, Any]]:
    """Return the unfinished copies, in the form of other jobs."""
    jobs = [job for job in services.store.rekeyer.jobs.values() if not job.phase.is_over]
    return [shown for job in jobs if (shown := await _as_job(services, job)) is not None]


async def _as_job(services: AdminServices, job: RekeyJob) -> dict[str, Any] | None:
    described = await _describe(services, job)
    if described is None:
        return None
    target = services.keyspace(described["database"], described["target"]).record
    step, percent = "switching" if job.is_switching else job.phase.value, PERCENT_MAX
    if job.phase is RekeyPhase.COPYING:
        # Items are created and deleted meanwhile, so the two counts are not of the same moment.
        percent = estimate_percent(copied=job.items_copied, expected=described["source_items"])
        step = f"copying, {percent} %"
    return {
        "id": described["id"],
        "kind": "rekey",
        "reason": f"to {described['target']}",
        "database": described["database"],
        "container": described["container"],
        "ranges": [
            str(partition.id)
            for partition in services.keyspace(described["database"], described["container"]).record.map.ranges
        ],
        "step": step,
        "percent": percent,
        "entries_copied": job.items_copied + job.changes_followed,
        "started_at": target.changed_at,
        "trouble": job.trouble or ("some items have no place in the target" if job.uncopied else ""),
    }


async def _describe(services: AdminServices, job: RekeyJob) -> dict[str, Any] | None:
    """Describe a job; None if either of its containers is gone, or is of another account."""
    source = services.names_of(bytes.fromhex(job.source_rid))
    target = services.names_of(bytes.fromhex(job.target_rid))
    if source is None or target is None:
        return None
    source_items, target_items = job.source_items, job.target_items
    if not job.phase.is_over:
        count = services.store.rekeyer.item_count
        source_items = await count(services.container(*source))
        target_items = await count(services.container(*target))
    return {
        "id": str(job.number),
        "database": source[0],
        "container": source[1],
        "target": target[1],
        "phase": job.phase.value,
        "is_caught_up": job.is_caught_up,
        "is_switching": job.is_switching,
        "is_source_read_only": bool(services.keyspace(*source).record.writes_refused),
        "items_copied": job.items_copied,
        "changes_followed": job.changes_followed,
        "source_items": source_items,
        "target_items": target_items,
        "uncopied_count": len(job.uncopied),
        "uncopied": [
            {"id": item.id, "partition_key": item.partition_key, "reason": item.reason}
            for item in list(job.uncopied.values())[:_SHOWN_UNCOPIED]
        ],
        "trouble": job.trouble,
    }

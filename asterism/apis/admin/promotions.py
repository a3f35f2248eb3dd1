"""Moves of logical partitions into containers of their own: begin, watch and end them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.job_progress import PERCENT_MAX, estimate_percent
from asterism.apis.admin.parameters import body_object, text_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest
from asterism.models.documents.container import Container
from asterism.models.documents.promotion.job import PromotionJob, PromotionPhase
from asterism.models.documents.promotion.promoter import rule_of, scope_of
from asterism.models.documents.promotion.requests import Promotion, begin_promotion, find_promotion
from asterism.partitioning.partition_key import PartitionKey, parse_header
from asterism.throughput.budgets import Autoscale, Manual, Throughput
from asterism.values.json.text import dumps


async def post_promotion(services: AdminServices, request: Request) -> Response:
    body = body_object(request)
    source, key = _source_and_key(services, body)
    asked = Promotion(source, key, text_of(body, "target"), _paths(body.get("path")), _throughput(body))
    job = await begin_promotion(services.store, asked)
    return Response(202, JSON_HEADERS, dumps({"promotion": await _describe(services, job)}))


async def end_promotion(services: AdminServices, request: Request) -> Response:
    source, key = _source_and_key(services, body_object(request))
    job = find_promotion(services.store, source, key)
    await services.store.promoter.end(job, source)
    return Response(200, JSON_HEADERS, dumps({"promotion": await _describe(services, job)}))


async def forget_promotion(services: AdminServices, request: Request) -> Response:
    source, key = _source_and_key(services, body_object(request))
    job = find_promotion(services.store, source, key)
    described = await _describe(services, job)
    await services.store.promoter.forget(job, source)
    return Response(200, JSON_HEADERS, dumps({"promotion": described}))


async def show_promotions(services: AdminServices, _: Request) -> Response:
    jobs = sorted(services.store.promoter.jobs.values(), key=lambda job: job.number)
    shown = [described for job in jobs if (described := await _describe(services, job)) is not None]
    return Response(200, JSON_HEADERS, dumps({"promotions": shown}))


async def promotions_under_way(services: AdminServices) -> list[dict[str, Any]]:
    """Return the promotions whose requests are not forwarded yet, or whose old copies are not deleted yet, in the form
    of other jobs."""
    jobs = [job for job in services.store.promoter.jobs.values() if job.phase is not PromotionPhase.FORWARDING]
    return [shown for job in jobs if (shown := await _as_job(services, job)) is not None]


async def _as_job(services: AdminServices, job: PromotionJob) -> dict[str, Any] | None:
    described = await _describe(services, job)
    if described is None:
        return None
    source, target = (
        services.keyspace(described["database"], described[side]).record for side in ("container", "target")
    )
    step, percent = job.phase.value, PERCENT_MAX
    if job.phase is PromotionPhase.COPYING:
        percent = estimate_percent(copied=job.items_copied, expected=described["source_items"])
        step = f"copying, {percent} %"
    return {
        "id": described["id"],
        "kind": "promotion",
        "reason": f"of {dumps(job.key).decode()} to {described['target']}",
        "database": described["database"],
        "container": described["container"],
        "ranges": [str(source.map.find(scope_of(job, _container(services, described)).start).id)],
        "step": step,
        "percent": percent,
        "entries_copied": job.items_copied + job.changes_followed,
        "started_at": target.changed_at,
        "trouble": job.trouble,
    }


def _container(services: AdminServices, described: dict[str, Any]) -> Container:
    return services.container(described["database"], described["container"])


async def _describe(services: AdminServices, job: PromotionJob) -> dict[str, Any] | None:
    """Describe a job; None if either of its containers is gone, or is of another account."""
    source_names = services.names_of(bytes.fromhex(job.source_rid))
    target_names = services.names_of(bytes.fromhex(job.target_rid))
    if source_names is None or target_names is None:
        return None
    source, target = services.container(*source_names), services.container(*target_names)
    size_of, rule, use = (
        services.store.promoter.size_of,
        rule_of(job, source),
        services.store.forwarding_use.of(job.number),
    )
    last = use.last_at_wall_seconds
    return {
        "id": str(job.number),
        "database": source_names[0],
        "container": source_names[1],
        "target": target_names[1],
        "key": job.key,
        "phase": job.phase.value,
        "state": None if rule is None else rule.state.value,
        "is_caught_up": job.is_caught_up,
        "items_copied": job.items_copied,
        "changes_followed": job.changes_followed,
        "source_items": (await size_of(source, scope_of(job, source))).items,
        "target_items": (await size_of(target, scope_of(job, target))).items,
        "forwarded_requests": use.requests,
        "last_forwarded_at": datetime.fromtimestamp(last, UTC).isoformat() if last else None,
        "trouble": job.trouble,
    }


def _source_and_key(services: AdminServices, body: dict[str, Any]) -> tuple[Container, PartitionKey]:
    source = services.container(text_of(body, "database"), text_of(body, "container"))
    key = body.get("key")
    if not isinstance(key, list) or not key:
        raise MalformedRequest(reason="'key' must be the partition key, a list of the values of its levels.")
    return source, parse_header(dumps(key).decode(), source.record.definition)


def _paths(given: object) -> list[str] | None:
    if given is None:
        return None
    paths = [given] if isinstance(given, str) else given
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        raise MalformedRequest(reason="'path' must be a path of the new partition key, or a list of paths.")
    return paths


def _throughput(body: dict[str, Any]) -> Throughput | None:
    ru, autoscale = body.get("ru"), body.get("autoscale")
    if ru is not None and autoscale is not None:
        raise MalformedRequest(reason="Give 'ru' or 'autoscale', not both.")
    given = ru if autoscale is None else autoscale
    if given is None:
        return None
    if type(given) is not int:
        raise MalformedRequest(reason="'ru' and 'autoscale' are request units per second, a whole number.")
    return Manual(given) if autoscale is None else Autoscale(given)

"""Consequences of an action, shown before it: partitions, throughput of each, bytes. Nothing is changed.

The checks are those of the actions themselves. A refusal is an answer here, with its reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

from asterism.apis.admin.errors import JSON_HEADERS, message_of
from asterism.apis.admin.nodes import node_named
from asterism.apis.admin.parameters import keyspace_of, query_parameters, range_id_of, text_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.admin.sizes import PartitionSizes
from asterism.apis.admin.throughput import describe_offer, describe_throughput, throughput_asked
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest, ReshapeRefused, ThroughputRefused
from asterism.keyspaces.admission import shared_slot_count
from asterism.keyspaces.catalog.records import DatabaseRecord, OfferRecord
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.collections.records import HOME, MARK
from asterism.models.collections.shared_names import find_database
from asterism.models.documents.store import DEFAULT_THROUGHPUT
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.split_merge import partition_count_at_creation, partition_count_for
from asterism.throughput.budgets import Autoscale, Throughput, effective_ru, validate
from asterism.values.json.text import dumps
from asterism.values.resource_ids import DATABASE_RID_BYTES

_Consequences = dict[str, Any]


async def _answer(consequences: Awaitable[_Consequences], known: Mapping[str, Any] | None = None) -> Response:
    """Answer with the consequences, or with the reason why there are none, beside what is known in both cases."""
    try:
        outcome = {"allowed": True, "reason": None, **await consequences}
    except (ReshapeRefused, ThroughputRefused) as refusal:
        outcome = {"allowed": False, "reason": message_of(refusal)}
    return Response(200, JSON_HEADERS, dumps({**(known or {}), **outcome}))


def _now_and_after(now: object, after: object) -> dict[str, object]:
    return {"now": now, "after": after}


# --- throughput -----------------------------------------------------------------------------------------------------


async def plan_throughput(services: AdminServices, request: Request) -> Response:
    """Plan a change of the throughput of a container, a table, or of a database whose containers share it."""
    parameters = query_parameters(request)
    throughput = throughput_asked(parameters)
    if throughput is None:
        raise MalformedRequest(reason="'throughput' is missing: the RU/s to plan for.")
    offer = _offer_asked(services, parameters)
    minimum = await services.store.minimum_for(offer, throughput)
    known = {"throughput": _now_and_after(describe_offer(offer), _describe(throughput)), "minimum_ru": minimum}
    return await _answer(_throughput_consequences(services, offer, throughput, minimum), known)


async def _throughput_consequences(
    services: AdminServices, offer: OfferRecord, throughput: Throughput, minimum: int
) -> _Consequences:
    try:
        services.store.check_replacement(offer, throughput, minimum=minimum)
    except MalformedRequest as refusal:
        # Of a change between manual and autoscale.
        raise ThroughputRefused(reason=refusal.reason) from None
    keyspaces = services.store.catalog.governed_by(offer.resource_rid)
    now = sum(len(keyspace.record.map.ranges) for keyspace in keyspaces)
    after = sum(_partitions_after(services, keyspace, throughput) for keyspace in keyspaces)
    is_shared = len(offer.resource_rid) == DATABASE_RID_BYTES

    def share(given: Throughput, partitions: int) -> float:
        parts = shared_slot_count(given, services.limits) if is_shared else partitions
        return services.admission.share(given, parts)

    return {
        "partitions": _now_and_after(now, after),
        "ru_per_partition": _now_and_after(share(offer.throughput, now), share(throughput, after)),
        "splits": after - now,
        "collections": len(keyspaces),
    }


def _partitions_after(services: AdminServices, keyspace: Keyspace, throughput: Throughput) -> int:
    """Return the partitions of a keyspace when it has grown; none is merged by itself when throughput is lowered."""
    now = len(keyspace.record.map.ranges)
    if keyspace.record.definition.system_key:
        return now
    return max(now, partition_count_for(effective_ru(throughput), services.limits))


def _offer_asked(services: AdminServices, parameters: Mapping[str, str]) -> OfferRecord:
    catalog = services.store.catalog
    if "container" in parameters or "table" in parameters:
        keyspace = keyspace_of(services, dict(parameters))
        offer = catalog.offer_for(keyspace.record.rid)
        if offer is None and describe_throughput(services, keyspace)["mode"] == "shared":
            raise MalformedRequest(
                reason="It shares the throughput of its database. Plan the database: leave the container out."
            )
        if offer is None:
            raise MalformedRequest(reason="Its throughput is not provisioned, so there is none to change.")
        return offer
    offer = catalog.offer_for(_database_asked(services, parameters).rid)
    if offer is None:
        raise MalformedRequest(reason="The database has no throughput of its own: its containers have theirs.")
    return offer


def _database_asked(services: AdminServices, parameters: Mapping[str, str]) -> DatabaseRecord:
    name = text_of(dict(parameters), "database")
    shared = find_database(services.store.catalog, services.account, name)
    return services.store.database(services.account, name) if shared is None else shared.record


def _describe(throughput: Throughput) -> dict[str, Any]:
    mode = "autoscale" if isinstance(throughput, Autoscale) else "manual"
    return {"mode": mode, "ru": effective_ru(throughput)}


async def plan_create(services: AdminServices, request: Request) -> Response:
    """Plan a new container with `throughput`, or without: it then shares that of `database`, or has the default."""
    parameters = query_parameters(request)
    shared = None
    if "database" in parameters:
        database = services.store.database(services.account, parameters["database"])
        shared = services.store.catalog.offer_for(database.rid)
    own = throughput_asked(parameters)
    if own is None and shared is None:
        own = DEFAULT_THROUGHPUT
    throughput = own or (DEFAULT_THROUGHPUT if shared is None else shared.throughput)
    described = _describe(throughput) if own is not None else {"mode": "shared", "ru": effective_ru(throughput)}
    return await _answer(
        _creation_consequences(services, throughput, is_new=own is not None), {"throughput": described}
    )


async def _creation_consequences(services: AdminServices, throughput: Throughput, *, is_new: bool) -> _Consequences:
    limits = services.limits
    if is_new:
        validate(throughput, limits, limits.throughput_ru_per_second_min)
    count = partition_count_at_creation(
        effective_ru(throughput), autoscale=isinstance(throughput, Autoscale), limits=limits
    )
    return {"partitions": count, "ru_per_partition": services.admission.share(throughput, count)}


# --- partitions -----------------------------------------------------------------------------------------------------


def _reshaped(services: AdminServices, keyspace: Keyspace, *, more: int) -> _Consequences:
    now = len(keyspace.record.map.ranges)
    share_now = services.admission.share_of(keyspace)
    share_after = services.admission.share_of(keyspace, partitions=now + more)
    return {
        "partitions": _now_and_after(now, now + more),
        "ru_per_partition": _now_and_after(share_now, share_after),
    }


async def plan_split(services: AdminServices, request: Request) -> Response:
    parameters = query_parameters(request)
    keyspace, range_id = keyspace_of(services, parameters), range_id_of(parameters.get("range"))
    return await _answer(_split_consequences(services, keyspace, range_id))


async def _split_consequences(services: AdminServices, keyspace: Keyspace, range_id: int) -> _Consequences:
    services.reshaper.check_free(keyspace, range_id)
    outline = await services.reshaper.plan_split(keyspace, range_id)
    source = keyspace.record.map.get(range_id)
    if source is None:
        raise ReshapeRefused(reason=f"Partition {range_id} was divided meanwhile.")
    halves = (
        (KeyRange(source.range.start, outline.plan.at), outline.low_bytes),
        (KeyRange(outline.plan.at, source.range.end), outline.high_bytes),
    )
    children = [{"min": start, "max": end, "bytes": size} for half, size in halves for start, end in [half.to_texts()]]
    return {**_reshaped(services, keyspace, more=1), "children": children}


async def plan_merge(services: AdminServices, request: Request) -> Response:
    parameters = query_parameters(request)
    keyspace = keyspace_of(services, parameters)
    ranges = text_of(parameters, "ranges").split(",")
    if len(ranges) != 2:
        raise MalformedRequest(reason="'ranges' must be the ids of two adjacent partition ranges, such as 0,1.")
    left_id, right_id = (range_id_of(range_id.strip()) for range_id in ranges)
    return await _answer(_merge_consequences(services, keyspace, left_id, right_id))


async def _merge_consequences(
    services: AdminServices, keyspace: Keyspace, left_id: int, right_id: int
) -> _Consequences:
    for range_id in (left_id, right_id):
        services.reshaper.check_free(keyspace, range_id)
    outline = await services.reshaper.plan_merge(keyspace, left_id, right_id)
    start, end = KeyRange(outline.left.range.start, outline.right.range.end).to_texts()
    merged = {"min": start, "max": end, "bytes": outline.merged_bytes}
    return {**_reshaped(services, keyspace, more=-1), "children": [merged]}


async def plan_move(services: AdminServices, request: Request) -> Response:
    parameters = query_parameters(request)
    keyspace, range_id = keyspace_of(services, parameters), range_id_of(parameters.get("range"))
    node = node_named(services, text_of(parameters, "node"))

    async def consequences() -> _Consequences:
        services.reshaper.check_free(keyspace, range_id)
        source = services.mover.plan_move(keyspace, range_id, node)
        size = await PartitionSizes(services.router).of(keyspace, source)
        return {
            "from": services.node_name(source.node),
            "to": node.name,
            "bytes": None if size is None else size.bytes,
            "items": None if size is None else size.items,
        }

    return await _answer(consequences())


# --- deletion -------------------------------------------------------------------------------------------------------


async def plan_delete(services: AdminServices, request: Request) -> Response:
    """Count what would be gone with a container, a table, or a database and all of its containers."""
    parameters = query_parameters(request)
    if "container" in parameters or "table" in parameters:
        keyspaces = [keyspace_of(services, parameters)]
        if keyspaces[0].record.settings.get(MARK) == HOME:
            raise MalformedRequest(
                reason="Collections of MongoDB without a shard key share their partitions. Drop one with its client."
            )
    else:
        keyspaces = services.store.catalog.keyspaces_of(_database_asked(services, parameters).rid)
    return await _answer(_deletion_consequences(services, keyspaces))


async def _deletion_consequences(services: AdminServices, keyspaces: list[Keyspace]) -> _Consequences:
    sizes = (await PartitionSizes(services.router).of_keyspaces(keyspaces)).values()
    known = [size for size in sizes if size is not None]
    is_known = len(known) == len(keyspaces)
    return {
        "collections": len(keyspaces),
        "partitions": sum(len(keyspace.record.map.ranges) for keyspace in keyspaces),
        "items": sum(size.items for size in known) if is_known else None,
        "bytes": sum(size.bytes for size in known) if is_known else None,
    }

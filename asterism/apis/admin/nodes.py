"""The nodes of the fleet, and the placement of partitions on them: moves, rebalancing, draining, placement rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import body_object, keyspace_of, query_parameters, range_id_of, text_of
from asterism.apis.admin.reshapes import accepted_response
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest, ResourceNotFound
from asterism.keyspaces.catalog.nodes import NodeRecord
from asterism.keyspaces.processes.fleet_health import NodeHealth
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.metrics import PartitionUsage
from asterism.partitioning.placement import Move, PlacedPartition, RangeName, Rules, plan_drain
from asterism.values.identifiers import NodeNumber
from asterism.values.json.text import dumps


async def show_nodes(services: AdminServices, _: Request) -> Response:
    """Return the partitions, the provisioned throughput and the health of each node."""
    placer = services.reshaper.placer
    partitions: Counter[NodeNumber] = Counter()
    size_bytes: Counter[NodeNumber] = Counter()
    ru_share: Counter[NodeNumber] = Counter()
    ru_consumed: Counter[NodeNumber] = Counter()
    served = (await services.usage.of_all()).keyspaces
    for located in await placer.located():
        node = located.range.node
        usage = served.get(located.keyspace.record.rid, {}).get(located.range.id) or PartitionUsage()
        partitions[node] += 1
        size_bytes[node] += located.size.bytes
        ru_share[node] += round(located.ru_per_second)
        ru_consumed[node] += round(usage.request_units)
    health_of = await services.health.of_nodes()
    catalog_node = services.health.catalog_node
    shown = []
    for record in sorted(services.nodes.records.values(), key=lambda node: node.number):
        number = record.number
        shown.append(
            {
                **_describe(record),
                "catalog": number == catalog_node,
                "partitions": partitions[number],
                "bytes": size_bytes[number],
                "ru_share": ru_share[number],
                "ru_consumed": ru_consumed[number],
                **_describe_health(health_of.get(number)),
            }
        )
    return _json_response({"nodes": shown, "moves_wanted": len(services.nodes.wanted)})


def _describe(record: NodeRecord) -> dict[str, Any]:
    labels = sorted(record.labels)
    return {"number": record.number, "name": record.name, "labels": labels, "state": record.state.value}


def _describe_health(health: NodeHealth | None) -> dict[str, Any]:
    if health is None:
        return {"health": "unreachable", "store_bytes": None, "version": None, "standbys": []}
    return {
        "health": "ok" if health.is_writable else "read-only",
        "store_bytes": health.store_bytes,
        "version": health.version,
        "standbys": [asdict(standby) for standby in health.standbys],
    }


# --- moving ---------------------------------------------------------------------------------------------------------


async def begin_move(services: AdminServices, request: Request) -> Response:
    body = body_object(request)
    keyspace = keyspace_of(services, body)
    node = node_named(services, text_of(body, "node"))
    return await accepted_response(services, await services.mover.move(keyspace, range_id_of(body.get("range")), node))


async def show_rebalance(services: AdminServices, _: Request) -> Response:
    plan = await services.mover.plan()
    return _json_response({"moves": _moves(services, plan.moves), "stuck": _stuck(services, plan.stuck)})


async def begin_rebalance(services: AdminServices, _: Request) -> Response:
    plan = await services.mover.rebalance()
    return _json_response({"moves": _moves(services, plan.moves), "stuck": _stuck(services, plan.stuck)}, status=202)


async def begin_drain(services: AdminServices, request: Request) -> Response:
    body = body_object(request)
    node = node_named(services, text_of(body, "node"))
    if body.get("undo") is True:
        return await _drain_response(services, await services.mover.take_back(node), status=200)
    return await _drain_response(services, await services.mover.drain(node), status=202)


async def show_drain(services: AdminServices, request: Request) -> Response:
    return await _drain_response(services, node_named(services, text_of(query_parameters(request), "node")), status=200)


async def _drain_response(services: AdminServices, node: NodeRecord, *, status: int) -> Response:
    plan = await services.reshaper.placer.plan(plan_drain)
    stuck = [partition for partition in plan.stuck if partition.node == node.number]
    left = len(services.mover.partitions_on(node.number))
    return _json_response(
        {
            "node": _describe(node),
            "partitions_left": left,
            "stuck": _stuck(services, stuck),
            "catalog": services.node_name(services.health.catalog_node),
        },
        status=status,
    )


# --- rules ----------------------------------------------------------------------------------------------------------


async def show_placement(services: AdminServices, request: Request) -> Response:
    return _placement_response(services, keyspace_of(services, query_parameters(request)))


async def change_placement(services: AdminServices, request: Request) -> Response:
    """Set `labels` and `spread`, or return to the fleet's rules with `default` true."""
    body = body_object(request)
    keyspace = keyspace_of(services, body)
    await services.store.catalog.replace_placement(keyspace, None if body.get("default") is True else _rules(body))
    return _placement_response(services, keyspace)


def _rules(body: dict[str, Any]) -> Rules:
    labels, spread = body.get("labels", []), body.get("spread", False)
    if not isinstance(labels, list) or not all(isinstance(label, str) and label for label in labels):
        raise MalformedRequest(reason="'labels' must be a list of words.")
    if not isinstance(spread, bool):
        raise MalformedRequest(reason="'spread' must be true or false.")
    return Rules(frozenset(labels), spread)


def _placement_response(services: AdminServices, keyspace: Keyspace) -> Response:
    rules = services.reshaper.placer.rules_of(keyspace)
    counts = Counter(partition.node for partition in keyspace.record.map.ranges)
    return _json_response(
        {
            **rules.to_json(),
            "is_default": keyspace.record.placement is None,
            "nodes": {services.node_name(node): count for node, count in sorted(counts.items())},
        }
    )


# --- migration ------------------------------------------------------------------------------------------------------


async def show_migration(services: AdminServices, _: Request) -> Response:
    return _json_response(services.migration.show())


async def begin_migration(services: AdminServices, request: Request) -> Response:
    await services.migration.begin(body_object(request))
    return _json_response(services.migration.show(), status=202)


# --- small things ---------------------------------------------------------------------------------------------------


def _json_response(payload: dict[str, Any], *, status: int = 200) -> Response:
    return Response(status, JSON_HEADERS, dumps(payload))


def node_named(services: AdminServices, name: str) -> NodeRecord:
    record = services.nodes.named(name)
    if record is None:
        raise ResourceNotFound(kind="node", name=name)
    return record


def _moves(services: AdminServices, moves: Iterable[Move]) -> list[dict[str, Any]]:
    return [
        {
            "partition": _partition(services, move.name),
            "from": services.node_name(move.source),
            "to": services.node_name(move.target),
        }
        for move in moves
    ]


def _stuck(services: AdminServices, stuck: Iterable[PlacedPartition]) -> list[dict[str, Any]]:
    return [
        {"partition": _partition(services, partition.name), "node": services.node_name(partition.node)}
        for partition in stuck
    ]


def _partition(services: AdminServices, name: RangeName) -> str:
    names = services.names_of(name.keyspace)
    return f"{'?' if names is None else '/'.join(names)}/{name.range_id}"

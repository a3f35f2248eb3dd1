"""The nodes of the fleet, and what goes from one to another: moves, rebalancing, draining, placement rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from asterism.apis.admin.console import Console
from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import body_object, query_parameters, range_id_of, text_of
from asterism.apis.admin.reshaping import accepted
from asterism.apis.http import Request, Response
from asterism.errors import MalformedRequest, ResourceNotFound
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.nodes import NodeRecord
from asterism.metrics import PartitionUsage
from asterism.partitioning.placement import Move, Placed, RangeName, Rules, plan_drain
from asterism.storage.contract import EngineStatus
from asterism.values.identifiers import NodeNumber
from asterism.values.json_text import dumps


async def show_nodes(console: Console, _: Request) -> Response:
    """What each node holds and is provisioned for, and how it is."""
    placing = console.reshaping.placing
    partitions: Counter[NodeNumber] = Counter()
    size_bytes: Counter[NodeNumber] = Counter()
    ru_share: Counter[NodeNumber] = Counter()
    ru_consumed: Counter[NodeNumber] = Counter()
    served = await console.usage.of_all()
    for one in await placing.located():
        node = one.range.node
        usage = served.get(one.keyspace.record.rid, {}).get(one.range.id) or PartitionUsage()
        partitions[node] += 1
        size_bytes[node] += one.size.bytes
        ru_share[node] += round(one.ru_per_second)
        ru_consumed[node] += round(usage.request_units)
    statuses = await console.engines.node_statuses()
    catalog_node = console.engines.catalog_node
    shown = []
    for record in sorted(console.nodes.records.values(), key=lambda one: one.number):
        number = record.number
        shown.append(
            {
                **_describe(record),
                "catalog": number == catalog_node,
                "partitions": partitions[number],
                "bytes": size_bytes[number],
                "ru_share": ru_share[number],
                "ru_consumed": ru_consumed[number],
                **_health(statuses.get(number)),
            }
        )
    return _answer({"nodes": shown, "moves_wanted": len(console.nodes.wanted)})


def _describe(record: NodeRecord) -> dict[str, Any]:
    labels = sorted(record.labels)
    return {"number": record.number, "name": record.name, "labels": labels, "state": record.state.value}


def _health(status: EngineStatus | None) -> dict[str, Any]:
    if status is None:
        return {"health": "unreachable", "store_bytes": None, "version": None, "standbys": []}
    standbys = [{"name": one.name, "state": one.state, "lag_bytes": one.lag_bytes} for one in status.standbys]
    return {
        "health": "ok" if status.is_writable else "read-only",
        "store_bytes": status.bytes_used,
        "version": status.server_version,
        "standbys": standbys,
    }


# --- moving ---------------------------------------------------------------------------------------------------------


async def begin_move(console: Console, request: Request) -> Response:
    told = body_object(request)
    keyspace = console.keyspace(text_of(told, "database"), text_of(told, "container"))
    node = _node(console, text_of(told, "node"))
    return accepted(console, await console.moving.move(keyspace, range_id_of(told.get("range")), node))


async def show_rebalance(console: Console, _: Request) -> Response:
    plan = await console.moving.plan()
    return _answer({"moves": _moves(console, plan.moves), "stuck": _stuck(console, plan.stuck)})


async def begin_rebalance(console: Console, _: Request) -> Response:
    plan = await console.moving.rebalance()
    return _answer({"moves": _moves(console, plan.moves), "stuck": _stuck(console, plan.stuck)}, status=202)


async def begin_drain(console: Console, request: Request) -> Response:
    told = body_object(request)
    node = _node(console, text_of(told, "node"))
    if told.get("undo") is True:
        return await _drained(console, await console.moving.take_back(node), status=200)
    return await _drained(console, await console.moving.drain(node), status=202)


async def show_drain(console: Console, request: Request) -> Response:
    return await _drained(console, _node(console, text_of(query_parameters(request), "node")), status=200)


async def _drained(console: Console, node: NodeRecord, *, status: int) -> Response:
    plan = await console.reshaping.placing.plan(plan_drain)
    stuck = [one for one in plan.stuck if one.node == node.number]
    left = len(console.moving.partitions_on(node.number))
    return _answer(
        {
            "node": _describe(node),
            "partitions_left": left,
            "stuck": _stuck(console, stuck),
            "catalog": console.node_name(console.engines.catalog_node),
        },
        status=status,
    )


# --- rules ----------------------------------------------------------------------------------------------------------


async def show_placement(console: Console, request: Request) -> Response:
    told = query_parameters(request)
    return _placement(console, console.keyspace(text_of(told, "database"), text_of(told, "container")))


async def change_placement(console: Console, request: Request) -> Response:
    """`labels` and `spread`, or `default` true for what the fleet's own rules say."""
    told = body_object(request)
    keyspace = console.keyspace(text_of(told, "database"), text_of(told, "container"))
    await console.store.catalog.replace_placement(keyspace, None if told.get("default") is True else _rules(told))
    return _placement(console, keyspace)


def _rules(told: dict[str, Any]) -> Rules:
    labels, spread = told.get("labels", []), told.get("spread", False)
    if not isinstance(labels, list) or not all(isinstance(one, str) and one for one in labels):
        raise MalformedRequest(reason="'labels' must be a list of words.")
    if not isinstance(spread, bool):
        raise MalformedRequest(reason="'spread' must be true or false.")
    return Rules(frozenset(labels), spread)


def _placement(console: Console, keyspace: Keyspace) -> Response:
    rules = console.reshaping.placing.rules_of(keyspace)
    counts = Counter(one.node for one in keyspace.record.map.ranges)
    return _answer(
        {
            **rules.to_json(),
            "is_default": keyspace.record.placement is None,
            "nodes": {console.node_name(node): count for node, count in sorted(counts.items())},
        }
    )


# --- migration ------------------------------------------------------------------------------------------------------


async def show_migration(console: Console, _: Request) -> Response:
    return _answer(console.migration.show())


async def begin_migration(console: Console, request: Request) -> Response:
    await console.migration.begin(body_object(request))
    return _answer(console.migration.show(), status=202)


# --- small things ---------------------------------------------------------------------------------------------------


def _answer(told: dict[str, Any], *, status: int = 200) -> Response:
    return Response(status, JSON_HEADERS, dumps(told))


def _node(console: Console, name: str) -> NodeRecord:
    record = console.nodes.named(name)
    if record is None:
        raise ResourceNotFound(kind="node", name=name)
    return record


def _moves(console: Console, moves: Iterable[Move]) -> list[dict[str, Any]]:
    return [
        {
            "partition": _partition(console, move.name),
            "from": console.node_name(move.source),
            "to": console.node_name(move.target),
        }
        for move in moves
    ]


def _stuck(console: Console, stuck: Iterable[Placed]) -> list[dict[str, Any]]:
    return [{"partition": _partition(console, one.name), "node": console.node_name(one.node)} for one in stuck]


def _partition(console: Console, name: RangeName) -> str:
    names = console.names_of(name.keyspace)
    return f"{'?' if names is None else '/'.join(names)}/{name.range_id}"

"""Consequences before an action: what the plan says is what the action does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from asterism.models.documents.container import Container
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory
from asterism.throughput.budgets import Autoscale, Manual
from tests.unit.server.test_admin_door import Operator

ORDERS = "database=shop&container=orders"


@pytest.fixture
async def operator(tmp_path: Path) -> AsyncIterator[Operator]:
    """A server with 40 items of 10 customers in shop/orders, and a database whose containers share throughput."""
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        store = assembly.services.documents
        shop = await store.create_database("asterism", "shop", None)
        orders = await store.create_container(shop, properties("orders"), Manual(400))
        for number in range(40):
            await orders.create_item({"id": str(number), "customer": f"c{number % 10}"}, None)
        shared = await store.create_database("asterism", "shared", Manual(400))
        await store.create_container(shared, properties("first"), None)
        await assembly.services.tables.create_table("acct", "Cities", kind="storage")
        yield Operator(assembly)


def properties(name: str) -> dict[str, Any]:
    return {"id": name, "partitionKey": {"paths": ["/customer"], "kind": "Hash", "version": 2}}


def orders(operator: Operator) -> Container:
    store = operator.assembly.services.documents
    return store.container(store.database("asterism", "shop"), "orders")


async def finish_jobs(operator: Operator) -> None:
    reshaper = operator.assembly.services.documents.services.reshaper
    for progress in list(reshaper.progress.values()):
        await reshaper.finished(progress.job)


# --- throughput -----------------------------------------------------------------------------------------------------


async def test_raised_throughput_shows_the_splits_that_it_begins(operator: Operator) -> None:
    plan = await operator.get("plan/throughput", f"{ORDERS}&throughput=18000")
    assert (plan["allowed"], plan["reason"], plan["splits"]) == (True, None, 1)
    assert plan["partitions"] == {"now": 1, "after": 2}
    assert plan["ru_per_partition"] == {"now": 400, "after": 9000}
    assert plan["throughput"]["now"] == {"mode": "manual", "ru": 400}
    store = operator.assembly.services.documents
    offer = store.catalog.offer_for(orders(operator).record.rid)
    assert offer is not None
    await store.replace_offer(offer, Manual(18_000))
    keyspace = orders(operator).keyspace
    while store.services.reshaper.must_grow(keyspace):
        await keyspace.changed(seconds_max=30)
    assert len(keyspace.record.map.ranges) == plan["partitions"]["after"]


async def test_lowered_throughput_merges_nothing_by_itself(operator: Operator) -> None:
    await operator.reshape("split", range="0")
    plan = await operator.get("plan/throughput", f"{ORDERS}&throughput=400")
    assert (plan["partitions"], plan["splits"]) == ({"now": 2, "after": 2}, 0)


@pytest.mark.parametrize(
    ("throughput", "reason"),
    [("300", "less than required minimum throughput 400"), ("450", "increments of 100"), ("4000&autoscale=true", "")],
)
async def test_throughput_that_would_be_refused_is_planned_with_the_reason(
    operator: Operator, throughput: str, reason: str
) -> None:
    plan = await operator.get("plan/throughput", f"{ORDERS}&throughput={throughput}")
    assert plan["allowed"] is False
    assert reason in plan["reason"]
    assert plan["minimum_ru"] in (400, 1000)


async def test_throughput_that_containers_share_is_planned_for_the_database(operator: Operator) -> None:
    plan = await operator.get("plan/throughput", "database=shared&throughput=12000")
    assert (plan["allowed"], plan["collections"]) == (True, 1)
    assert plan["ru_per_partition"] == {"now": 400, "after": 6000}


@pytest.mark.parametrize(
    "query",
    [
        "database=shared&container=first&throughput=400",
        "database=shop&throughput=400",
        "account=acct&table=Cities&throughput=400",
        ORDERS,
        f"{ORDERS}&throughput=many",
    ],
)
async def test_a_plan_without_throughput_to_change_is_refused_with_what_to_do(operator: Operator, query: str) -> None:
    response = await operator.ask("GET", "plan/throughput", query=query)
    assert response.status == 400
    assert json.loads(response.body)["message"]


# --- creation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "mode", "partitions", "share"),
    [
        ("throughput=18000", "manual", 3, 6000),
        ("throughput=18000&autoscale=true", "autoscale", 2, 9000),
        ("database=shop", "manual", 1, 400),
        ("database=shared", "shared", 1, 400),
    ],
)
async def test_a_new_container_is_planned_as_it_would_be_made(
    operator: Operator, query: str, mode: str, partitions: int, share: float
) -> None:
    plan = await operator.get("plan/create", query)
    assert (plan["allowed"], plan["throughput"]["mode"]) == (True, mode)
    assert (plan["partitions"], plan["ru_per_partition"]) == (partitions, share)


@pytest.mark.parametrize("throughput", [Manual(18_000), Autoscale(18_000)])
async def test_a_container_is_made_as_it_was_planned(operator: Operator, throughput: Manual | Autoscale) -> None:
    more = "&autoscale=true" * isinstance(throughput, Autoscale)
    plan = await operator.get("plan/create", f"throughput=18000{more}")
    store = operator.assembly.services.documents
    made = await store.create_container(store.database("asterism", "shop"), properties("new"), throughput)
    assert len(made.keyspace.record.map.ranges) == plan["partitions"]
    assert operator.assembly.services.admission.share_of(made.keyspace) == plan["ru_per_partition"]


async def test_a_container_that_cannot_be_made_is_planned_with_the_reason(operator: Operator) -> None:
    plan = await operator.get("plan/create", "throughput=100")
    assert (plan["allowed"], "partitions" in plan) == (False, False)
    assert "400" in plan["reason"]


# --- partitions -----------------------------------------------------------------------------------------------------


async def test_a_split_does_what_its_plan_says(operator: Operator) -> None:
    plan = await operator.get("plan/split", f"{ORDERS}&range=0")
    assert (plan["allowed"], plan["partitions"]) == (True, {"now": 1, "after": 2})
    assert plan["ru_per_partition"] == {"now": 400, "after": 200}
    await operator.reshape("split", range="0")
    halves = (await operator.get("partitions"))["partitions"]
    assert [{name: half[name] for name in ("min", "max", "bytes")} for half in halves] == plan["children"]
    assert halves[0]["ru_share"] == plan["ru_per_partition"]["after"]


async def test_a_merge_does_what_its_plan_says(operator: Operator) -> None:
    await operator.reshape("split", range="0")
    plan = await operator.get("plan/merge", f"{ORDERS}&ranges=1,2")
    assert (plan["allowed"], plan["partitions"]) == (True, {"now": 2, "after": 1})
    assert plan["ru_per_partition"] == {"now": 200, "after": 400}
    await operator.reshape("merge", ranges=["1", "2"])
    (merged,) = (await operator.get("partitions"))["partitions"]
    assert {name: merged[name] for name in ("min", "max", "bytes")} == plan["children"][0]


@pytest.mark.parametrize(
    ("route", "query", "reason"),
    [
        ("plan/split", f"{ORDERS}&range=7", "There is no partition 7"),
        ("plan/split", "account=acct&table=Cities&range=0", "holds no data"),
        ("plan/merge", f"{ORDERS}&ranges=0,0", "neighbours"),
        ("plan/move", f"{ORDERS}&range=0&node=local", "on that node already"),
    ],
)
async def test_a_change_that_would_be_refused_is_planned_with_the_reason(
    operator: Operator, route: str, query: str, reason: str
) -> None:
    plan = await operator.get(route, query)
    assert plan["allowed"] is False
    assert reason in plan["reason"]


async def test_a_partition_at_work_cannot_be_planned_for(operator: Operator) -> None:
    await operator.assembly.services.documents.services.reshaper.split(orders(operator).keyspace, 0)
    plan = await operator.get("plan/split", f"{ORDERS}&range=0")
    await finish_jobs(operator)
    assert "is being split, merged or moved already" in plan["reason"]


@pytest.mark.parametrize(
    ("route", "query", "status"),
    [
        ("plan/split", ORDERS, 400),
        ("plan/split", "database=shop&container=none&range=0", 404),
        ("plan/merge", f"{ORDERS}&ranges=0", 400),
        ("plan/merge", f"{ORDERS}&ranges=0,x", 400),
        ("plan/move", f"{ORDERS}&range=0&node=nowhere", 404),
        ("plan/delete", "", 400),
        ("plan/delete", "database=nothing", 404),
    ],
)
async def test_a_plan_for_nothing_is_refused(operator: Operator, route: str, query: str, status: int) -> None:
    assert (await operator.ask("GET", route, query=query)).status == status


async def test_a_move_of_a_table_is_refused_for_its_node_and_not_for_its_kind(operator: Operator) -> None:
    body = {"account": "acct", "table": "Cities", "range": "0", "node": "local"}
    response = await operator.ask("POST", "move", body=body)
    assert response.status == 409
    assert "on that node already" in json.loads(response.body)["message"]


# --- deletion -------------------------------------------------------------------------------------------------------


async def test_a_deletion_is_planned_with_the_items_that_would_be_gone(operator: Operator) -> None:
    plan = await operator.get("plan/delete", ORDERS)
    assert (plan["allowed"], plan["collections"], plan["items"]) == (True, 1, 40)
    assert plan["bytes"] > 0
    whole = await operator.get("plan/delete", "database=shop")
    assert (whole["items"], whole["bytes"]) == (plan["items"], plan["bytes"])
    table = await operator.get("plan/delete", "account=acct&table=Cities")
    assert (table["items"], table["partitions"]) == (0, 1)


async def test_a_plan_changes_nothing(operator: Operator) -> None:
    before = orders(operator).keyspace.version
    for query in (f"plan/split?{ORDERS}&range=0", f"plan/delete?{ORDERS}", f"plan/throughput?{ORDERS}&throughput=900"):
        name, _, parameters = query.partition("?")
        await operator.get(name, parameters)
    assert orders(operator).keyspace.version == before
    assert (await operator.get("jobs", ""))["jobs"] == []

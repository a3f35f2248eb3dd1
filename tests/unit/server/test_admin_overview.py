"""The overview of databases and collections, a page at a time."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from asterism.apis.admin import sizes as sizes_module
from asterism.errors import StorageUnavailable
from asterism.models.tables.entities import EntityWrite, WriteKind
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory
from asterism.throughput.budgets import Autoscale, Manual, Throughput
from tests.unit.server.test_admin_door import Operator

ITEMS = {"alpha": 1, "beta": 3, "gamma": 2}


@pytest.fixture
async def operator(tmp_path: Path) -> AsyncIterator[Operator]:
    """A server with three containers in `shop`, one in `shared`, which has throughput, and a table."""
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        store = assembly.services.documents
        throughputs: dict[str, Throughput] = {"alpha": Manual(18_000), "beta": Autoscale(4000), "gamma": Manual(400)}
        shop = await store.create_database("asterism", "shop", None)
        shared = await store.create_database("asterism", "shared", Manual(600))
        for name, count in ITEMS.items():
            container = await store.create_container(shop, properties(name), throughputs[name])
            for number in range(count):
                await container.create_item({"id": str(number), "pk": f"k{number}"}, None)
        await store.create_container(shared, properties("delta"), None)
        table = await assembly.services.tables.create_table("devstoreaccount1", "Epsilon", kind="storage")
        await table.apply([EntityWrite(WriteKind.INSERT, "a", "b", b'"c":1')])
        yield Operator(assembly)


def properties(name: str) -> dict[str, Any]:
    return {"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}


async def names(operator: Operator, query: str) -> list[str]:
    return [row["name"] for row in (await operator.get("overview", query))["collections"]]


async def test_a_collection_is_shown_with_its_key_throughput_partitions_and_size(operator: Operator) -> None:
    by_name = {row["name"]: row for row in (await operator.get("overview", ""))["collections"]}
    alpha, beta, delta, epsilon = (by_name[name] for name in ("alpha", "beta", "delta", "Epsilon"))
    assert (alpha["kind"], alpha["account"], alpha["database"]) == ("container", "asterism", "shop")
    assert (alpha["partition_key"], alpha["line"], alpha["explorer"]) == (["/pk"], "hash", "documents")
    assert (alpha["throughput"], alpha["partitions"]) == ({"mode": "manual", "ru": 18_000}, 3)
    assert (beta["throughput"], beta["items"]) == ({"mode": "autoscale", "ru": 4000}, 3)
    assert delta["throughput"] == {"mode": "shared", "ru": 600}
    assert (epsilon["kind"], epsilon["account"], epsilon["database"]) == ("table", "devstoreaccount1", None)
    assert (epsilon["throughput"]["mode"], epsilon["line"], epsilon["items"]) == ("none", "ordered", 1)
    assert epsilon["bytes"] > 0
    assert (alpha["ru_per_second"], alpha["throttled_recent"], alpha["jobs"]) == (0.0, 0, 0)


async def test_databases_are_listed_with_their_throughput_and_not_those_of_tables(operator: Operator) -> None:
    shown = (await operator.get("overview", ""))["databases"]
    assert [(database["name"], database["is_shared_throughput"], database["containers"]) for database in shown] == [
        ("shared", True, 1),
        ("shop", False, 3),
    ]
    assert shown[0]["throughput"] == {"mode": "manual", "ru": 600}


async def test_totals_count_everything_and_bytes_if_all_were_read(operator: Operator) -> None:
    whole = await operator.get("overview", "")
    assert (whole["totals"]["containers"], whole["totals"]["tables"], whole["totals"]["partitions"]) == (4, 1, 7)
    assert whole["totals"]["bytes"] == sum(row["bytes"] for row in whole["collections"])
    page = await operator.get("overview", "limit=1")
    assert (page["total"], len(page["collections"]), page["totals"]["bytes"]) == (5, 1, None)


async def test_collections_are_in_the_order_of_their_names_or_of_a_figure(operator: Operator) -> None:
    assert await names(operator, "") == ["delta", "alpha", "beta", "gamma", "Epsilon"]
    assert await names(operator, "sort=items&search=shop") == ["beta", "gamma", "alpha"]
    assert (await names(operator, "sort=bytes"))[0] == "beta"
    assert len(await names(operator, "sort=ru")) == 5


async def test_pages_follow_each_other(operator: Operator) -> None:
    pages = [await names(operator, f"offset={offset}&limit=2") for offset in (0, 2, 4, 6)]
    assert list(itertools.chain(*pages)) == await names(operator, "")
    assert pages[-1] == []


async def test_a_search_looks_at_names_in_any_case_of_letters(operator: Operator) -> None:
    assert await names(operator, "search=EPS") == ["Epsilon"]
    assert await names(operator, "search=shared") == ["delta"]
    shown = await operator.get("overview", "search=nothing")
    assert (shown["total"], shown["collections"], shown["totals"]["containers"]) == (0, [], 4)


@pytest.mark.parametrize("query", ["sort=color", "offset=-1", "limit=0", "limit=1001", "limit=x", "offset=1e3"])
async def test_a_page_that_cannot_be_is_refused(operator: Operator, query: str) -> None:
    response = await operator.ask("GET", "overview", query=query)
    assert response.status == 400
    assert "must be" in json.loads(response.body)["message"]


async def test_sizes_are_read_for_the_page_alone(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    partition_size = sizes_module.partition_size

    async def counted(router: Any, keyspace: Any, partition: Any) -> Any:
        read.append(keyspace.record.name)
        return await partition_size(router, keyspace, partition)

    monkeypatch.setattr(sizes_module, "partition_size", counted)
    await operator.get("overview", "limit=2")
    assert sorted(read) == ["alpha", "alpha", "alpha", "delta"]


async def test_a_node_that_does_not_answer_leaves_sizes_unknown(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise StorageUnavailable(reason="away")

    monkeypatch.setattr(sizes_module, "partition_size", refuse)
    shown = await operator.get("overview", "sort=bytes")
    assert {(row["bytes"], row["items"]) for row in shown["collections"]} == {(None, None)}
    assert shown["totals"]["bytes"] is None


async def test_recent_use_is_taken_from_the_history(operator: Operator) -> None:
    await operator.assembly.services.history.sample()
    used = {row["name"]: row["ru_per_second"] for row in (await operator.get("overview", "sort=ru"))["collections"]}
    assert used["beta"] > used["alpha"] > used["delta"] == 0.0


async def test_without_a_history_recent_use_is_unknown_and_the_load_since_the_start_is_judged(tmp_path: Path) -> None:
    async with assembled(ServerConfig(metrics_history_hours=0, throttle=False), DataDirectory(tmp_path)) as assembly:
        store, operator = assembly.services.documents, Operator(assembly)
        database = await store.create_database("asterism", "shop", None)
        container = await store.create_container(database, properties("orders"), None)
        for number in range(600):
            await container.upsert_item({"id": str(number % 10), "pk": "same"}, None)
        (row,) = (await operator.get("overview", ""))["collections"]
        verdict = (await operator.get("partitions"))["verdict"]
    assert (row["ru_per_second"], row["throttled_recent"]) == (None, None)
    assert (verdict["kind"], verdict["figures"]["normalized_ru"]) == ("hot key", {})
    assert "pk=same" in verdict["sentence"]


async def test_every_keyspace_is_of_exactly_one_kind_and_containers_are_as_their_profile_says(
    operator: Operator,
) -> None:
    services = operator.assembly.services
    for keyspace in services.documents.catalog.keyspaces.values():
        owners = [kind.noun for kind in services.collection_kinds if kind.owns(keyspace.record.settings)]
        is_container = services.documents.find_container(keyspace.record.rid) is not None
        assert owners == [("table", "container")[is_container]]

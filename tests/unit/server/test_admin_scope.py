"""Requests of the operator that name an account: they reach that account alone."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from asterism.apis.admin.routes import ROUTES
from asterism.models.documents.container import Container
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory
from tests.unit.server.test_admin_door import Operator

SCOPED = sorted(key for key, route in ROUTES.items() if route.scoped)
UNSCOPED = sorted(key for key, route in ROUTES.items() if route.signed and not route.scoped)
BLUE = "database=shop&container=blue-orders"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Operator]:
    """A server with containers of two accounts under one database name, and tables of two others."""
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        operator = Operator(assembly)
        await operator.ask("POST", "accounts", body={"name": "blue"})
        await operator.ask("POST", "accounts", body={"name": "bluestore", "kind": "storage"})
        for account, name in (("asterism", "orders"), ("blue", "blue-orders")):
            await new_container(operator, account, name)
        for account in ("bluestore", "devstoreaccount1"):
            await assembly.services.tables.create_table(account, "Cities", kind="storage")
        yield operator


async def new_container(operator: Operator, account: str, name: str) -> Container:
    store = operator.assembly.services.documents
    database = await store.create_database(account, "shop", None)
    properties = {"id": name, "partitionKey": {"paths": ["/customer"], "kind": "Hash", "version": 2}}
    container = await store.create_container(database, properties, None)
    for number in range(20):
        await container.create_item({"id": str(number), "customer": f"c{number}", "color": account}, None)
    return container


def scoped(operator: Operator, account: str) -> Operator:
    return Operator(operator.assembly, account=account)


async def rows(operator: Operator) -> set[tuple[str, str]]:
    shown = await operator.get("overview", "")
    return {(row["account"], row["name"]) for row in shown["collections"]}


async def test_the_operator_sees_all_accounts_and_a_named_account_only_itself(server: Operator) -> None:
    everything = {
        ("asterism", "orders"),
        ("blue", "blue-orders"),
        ("bluestore", "Cities"),
        ("devstoreaccount1", "Cities"),
    }
    assert await rows(server) == everything
    assert await rows(scoped(server, "asterism")) == everything
    assert await rows(scoped(server, "blue")) == {("blue", "blue-orders")}
    assert await rows(scoped(server, "bluestore")) == {("bluestore", "Cities")}
    assert await rows(scoped(server, "devstoreaccount1")) == {("devstoreaccount1", "Cities")}


async def test_databases_and_totals_are_those_of_the_account(server: Operator) -> None:
    shown = await scoped(server, "blue").get("overview", "")
    assert [(database["account"], database["name"]) for database in shown["databases"]] == [("blue", "shop")]
    assert (shown["account"], shown["totals"]["containers"], shown["totals"]["tables"]) == ("blue", 1, 0)


async def test_an_unknown_account_is_not_found(server: Operator) -> None:
    response = await scoped(server, "green").ask("GET", "overview")
    assert (response.status, json.loads(response.body)["message"]) == (404, "There is no account 'green'.")


async def test_requests_about_the_whole_server_are_refused_with_the_way_to_send_them(server: Operator) -> None:
    for verb, path in UNSCOPED:
        response = await scoped(server, "blue").ask(verb, path.removeprefix("_asterism/"), body={})
        assert response.status == 403, path
        assert "without the header x-asterism-account" in json.loads(response.body)["message"]


async def test_the_readiness_probe_answers_whatever_the_header_says(server: Operator) -> None:
    assert (await scoped(server, "green").ask("GET", "health")).status == 200


async def test_a_container_is_found_in_its_own_account_only(server: Operator) -> None:
    assert (await scoped(server, "blue").ask("GET", "partitions", query=BLUE)).status == 200
    assert (await server.ask("GET", "partitions", query=BLUE)).status == 404
    foreign = "database=shop&container=orders"
    assert (await scoped(server, "blue").ask("GET", "partitions", query=foreign)).status == 404


async def test_no_scoped_request_reaches_a_container_or_a_table_of_another_account(server: Operator) -> None:
    """Every route gets all the parameters that any of them takes; those without names of data list their own."""
    blue = scoped(server, "blue")
    more = {"range": "0", "ranges": "0,0", "node": "local", "throughput": "400", "query": "SELECT * FROM c"}
    places = ({"database": "shop", "container": "orders"}, {"account": "devstoreaccount1", "table": "Cities"})
    for (verb, path), place in itertools.product(SCOPED, places):
        query = "&".join(f"{field}={value}" for field, value in {**place, **more}.items())
        body = {**place, **more, "ranges": ["0", "0"]}
        response = await blue.ask(verb, path.removeprefix("_asterism/"), query=query, body=body)
        assert response.status in {200, 400, 404}, path
        assert b'"orders"' not in response.body, path
        assert b"Cities" not in response.body.replace(b"There is no table 'Cities'.", b""), path
    assert server.assembly.services.documents.services.reshaper.progress == {}


async def test_a_query_runs_on_the_container_of_the_account(server: Operator) -> None:
    body = {"database": "shop", "container": "blue-orders", "query": "SELECT DISTINCT VALUE c.color FROM c"}
    response = await scoped(server, "blue").ask("POST", "query", body=body)
    assert json.loads(response.body)["results"] == ["blue"]


async def test_a_split_of_an_account_is_a_job_of_that_account_alone(server: Operator) -> None:
    blue = scoped(server, "blue")
    body = {"database": "shop", "container": "blue-orders", "range": "0"}
    response = await blue.ask("POST", "split", body=body)
    assert response.status == 202
    job = json.loads(response.body)["job"]
    assert job["collection"] == {"kind": "container", "account": "blue", "database": "shop", "name": "blue-orders"}
    assert 0 <= job["percent"] <= 99
    assert [shown["id"] for shown in (await blue.get("jobs", ""))["jobs"]] == [job["id"]]
    assert (await scoped(server, "bluestore").get("jobs", ""))["jobs"] == []
    reshaper = server.assembly.services.documents.services.reshaper
    for progress in list(reshaper.progress.values()):
        await reshaper.finished(progress.job)
    assert [event["kind"] for event in (await blue.get("history", BLUE))["history"]] == ["split"]


async def test_a_table_is_found_in_its_own_account_only(server: Operator) -> None:
    query = "account=bluestore&table=Cities"
    assert (await scoped(server, "bluestore").ask("GET", "partitions", query=query)).status == 200
    assert (await scoped(server, "blue").ask("GET", "partitions", query=query)).status == 404
    assert (await server.ask("GET", "partitions", query=query)).status == 200

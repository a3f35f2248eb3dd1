"""The admin door over a real store, without a socket."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from asterism import errors
from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, AccountKeys, derive_readonly_key
from asterism.access.master_key import signature
from asterism.apis.admin.errors import STATUS_AND_CODE
from asterism.apis.admin.routes import ROUTES
from asterism.apis.http import Request, Response
from asterism.server.assemble import Assembly, assembled
from asterism.server.config import ServerConfig, StartRefused
from asterism.server.data_directory import DataDirectory
from asterism.server.item_numbers import item_numbers


@dataclass
class Operator:
    """Asks the door as a client with a key would."""

    assembly: Assembly
    key: str = WELL_KNOWN_EMULATOR_KEY

    async def ask(self, verb: str, name: str, *, query: str = "", body: object = None) -> Response:
        link, date = f"_asterism/{name}", formatdate(usegmt=True)
        signed = signature(base64.b64decode(self.key), verb=verb, resource_type="asterism", link=link, date=date)
        headers = {"authorization": quote(f"type=master&ver=1.0&sig={signed}", safe=""), "x-ms-date": date}
        return await self.assembly.admin.answer(make_request(verb, f"/{link}", query, headers, json.dumps(body)))

    async def get(self, name: str, query: str = "database=shop&container=orders") -> dict[str, Any]:
        response = await self.ask("GET", name, query=query)
        assert response.status == 200, response.body
        told: dict[str, Any] = json.loads(response.body)
        return told

    async def reshape(self, kind: str, **told: object) -> None:
        """Begins a split or merge and waits for its end."""
        response = await self.ask("POST", kind, body={"database": "shop", "container": "orders", **told})
        assert response.status == 202, response.body
        reshaping = self.assembly.store.tools.reshaping
        for progress in list(reshaping.progress.values()):
            await reshaping.finished(progress.job)


def make_request(
    verb: str, path: str, query: str = "", headers: dict[str, str] | None = None, body: str = ""
) -> Request:
    return Request(verb, path, query, headers or {}, body.encode(), "http", "localhost")


@pytest.fixture
async def operator(tmp_path: Path) -> AsyncIterator[Operator]:
    """An operator of a server with 40 items of 10 customers in shop/orders."""
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        store = assembly.store
        database = await store.create_database("asterism", "shop", None)
        properties = {"id": "orders", "partitionKey": {"paths": ["/customer"], "kind": "Hash", "version": 2}}
        container = await store.create_container(database, properties, None)
        for number in range(40):
            await container.create_item({"id": str(number), "customer": f'c"{number % 10}'}, None)
        yield Operator(assembly)


def test_every_error_of_the_list_has_its_status() -> None:
    assert set(STATUS_AND_CODE) == set(errors.AsterismError.__subclasses__())


@pytest.mark.parametrize("verb", ["GET", "HEAD"])
async def test_the_readiness_probe_needs_no_signature(operator: Operator, verb: str) -> None:
    response = await operator.assembly.admin.answer(make_request(verb, "/_asterism/health"))
    assert json.loads(response.body)["status"] == "ready"


@pytest.mark.parametrize(("verb", "path"), [route for route, told in ROUTES.items() if told.signed])
async def test_everything_else_does(operator: Operator, verb: str, path: str) -> None:
    response = await operator.assembly.admin.answer(make_request(verb, f"/{path}"))
    assert (response.status, json.loads(response.body)["code"]) == (401, "Unauthorized")


async def test_a_read_only_key_may_look_and_not_touch(operator: Operator) -> None:
    visitor = Operator(operator.assembly, derive_readonly_key(WELL_KNOWN_EMULATOR_KEY))
    assert (await visitor.ask("GET", "jobs")).status == 200
    assert (await visitor.ask("POST", "split", body={})).status == 403


@pytest.mark.parametrize(
    ("verb", "name", "body", "status"),
    [
        ("GET", "nothing", None, 404),
        ("PUT", "split", None, 405),
        ("POST", "split", [], 400),
        ("POST", "split", {"database": "shop"}, 400),
        ("POST", "split", {"database": "shop", "container": 7, "range": "0"}, 400),
        ("POST", "split", {"database": "shop", "container": "orders"}, 400),
        ("POST", "split", {"database": "shop", "container": "orders", "range": True}, 400),
        ("POST", "split", {"database": "shop", "container": "none", "range": "0"}, 404),
        ("POST", "split", {"database": "shop", "container": "orders", "range": "5"}, 409),
        ("POST", "merge", {"database": "shop", "container": "orders", "ranges": ["0"]}, 400),
        ("POST", "merge", {"database": "shop", "container": "orders", "ranges": [0, 0]}, 409),
        ("GET", "partitions", None, 400),
    ],
)
async def test_bad_requests_get_a_code_and_a_message(
    operator: Operator, verb: str, name: str, body: object, status: int
) -> None:
    response = await operator.ask(verb, name, body=body)
    assert (response.status, set(json.loads(response.body))) == (status, {"code", "message"})


async def test_a_container_is_shown_with_its_partitions_and_their_logical_ones(operator: Operator) -> None:
    told = await operator.get("partitions")
    (partition,) = told["partitions"]
    assert (partition["id"], partition["min"], partition["max"]) == ("0", "", "FF")
    assert (partition["items"], partition["state"], partition["parents"]) == (40, "online", [])
    assert (partition["ru_share"], partition["requests"], partition["logical_partitions"]) == (400, 40, 10)
    assert partition["largest"][0]["items"] == 4
    assert partition["largest"][0]["partition_key"][0].startswith('c"')
    assert len(partition["hottest"]) == 5


async def test_details_can_be_left_out(operator: Operator) -> None:
    told = await operator.get("partitions", "database=shop&container=orders&details=false")
    assert "largest" not in told["partitions"][0]


async def test_a_split_and_a_merge_are_carried_out_and_remembered(operator: Operator) -> None:
    await operator.reshape("split", range="0")
    halves = (await operator.get("partitions"))["partitions"]
    assert [one["id"] for one in halves] == ["1", "2"]
    assert sum(one["items"] for one in halves) == 40
    assert await operator.get("merge-plan") == {"merges": [{"ranges": ["1", "2"]}]}
    await operator.reshape("merge", ranges=["1", "2"])
    history = (await operator.get("history"))["history"]
    assert [(one["kind"], one["sources"], one["targets"]) for one in history] == [
        ("split", ["0"], ["1", "2"]),
        ("merge", ["1", "2"], ["3"]),
    ]
    assert await operator.get("jobs") == {"jobs": [], "tasks": []}


async def test_metrics_count_every_partition_and_escape_its_names(operator: Operator) -> None:
    database = await operator.assembly.store.create_database("asterism", 'a "b"', None)
    properties = {"id": "c", "partitionKey": {"paths": ["/k"], "kind": "Hash", "version": 2}}
    await operator.assembly.store.create_container(database, properties, None)
    text = (await operator.ask("GET", "metrics")).body.decode()
    assert 'asterism_partition_items{database="shop",container="orders",range="0"} 40\n' in text
    assert 'asterism_requests_total{database="shop",container="orders",range="0"} 40\n' in text
    assert 'asterism_partition_bytes{database="a \\"b\\"",container="c",range="0"} 0\n' in text
    assert 'asterism_reshape_jobs{kind="split"} 0\n' in text
    assert text.count("# TYPE asterism_store_bytes gauge\n") == 1


async def test_metrics_are_for_the_bearer_of_a_key_and_nothing_else_is(operator: Operator) -> None:
    admin = operator.assembly.admin
    keys = AccountKeys.complete(primary=WELL_KNOWN_EMULATOR_KEY)

    async def status(name: str, authorization: str) -> int:
        return (
            await admin.answer(make_request("GET", f"/_asterism/{name}", "", {"authorization": authorization}))
        ).status

    for key in (keys.primary, keys.secondary_readonly):
        assert await status("metrics", f"Bearer {key}") == 200
        assert await status("partitions", f"Bearer {key}") == 401
    for wrong in ("", "x", keys.primary[:-2], f"{keys.primary}\udcff", "\u00e9"):
        assert await status("metrics", f"Bearer {wrong}") == 401


def test_item_numbers_of_two_starts_never_meet_and_fit_into_60_bits() -> None:
    assert item_numbers(1)() == 1 << 36
    assert item_numbers(2)() - item_numbers(1)() == 1 << 36
    assert item_numbers(2**24 - 1)() < 2**60
    with pytest.raises(StartRefused):
        item_numbers(2**24)


async def test_an_index_transformation_is_shown_among_the_jobs(operator: Operator) -> None:
    store = operator.assembly.store
    container = store.container(store.database("asterism", "shop"), "orders")
    policy = {"includedPaths": [{"path": "/total/?"}], "excludedPaths": [{"path": "/*"}]}
    with container.keyspace.at_work:
        await store.replace_container(container, {**container.record.settings, "indexingPolicy": policy})
        await asyncio.sleep(0.01)
        under_way = (await operator.get("jobs"))["jobs"]
    await store.reindexing.finished(container.keyspace)
    shown = [(job["kind"], job["database"], job["container"], job["step"]) for job in under_way]
    assert shown == [("index", "shop", "orders", "0 %")]
    assert (await operator.get("jobs"))["jobs"] == []

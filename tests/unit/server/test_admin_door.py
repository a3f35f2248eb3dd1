"""The admin door over a real store, without a socket."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, AccountKeys, derive_readonly_key
from asterism.access.master_key import signature
from asterism.apis.admin.routes import ROUTES, operation_of
from asterism.apis.transports.http import Request, Response
from asterism.metrics import LATENCY_SECONDS
from asterism.server.assemble import Assembly, assembled
from asterism.server.config import ServerConfig, StartRefused
from asterism.server.data_directory import DataDirectory
from asterism.server.item_numbers import item_numbers

PROJECT = Path(__file__).resolve().parents[3]


@dataclass
class Operator:
    """A client of the door that has a key."""

    assembly: Assembly
    key: str = WELL_KNOWN_EMULATOR_KEY
    # The only account that the requests may reach.
    account: str | None = None

    async def ask(self, verb: str, name: str, *, query: str = "", body: object = None) -> Response:
        link, date = f"_asterism/{name}", formatdate(usegmt=True)
        signed = signature(base64.b64decode(self.key), verb=verb, resource_type="asterism", link=link, date=date)
        headers = {"authorization": quote(f"type=master&ver=1.0&sig={signed}", safe=""), "x-ms-date": date}
        if self.account is not None:
            headers["x-asterism-account"] = self.account
        return await self.assembly.operator_door.answer(
            make_request(verb, f"/{link}", query, headers, json.dumps(body))
        )

    async def get(self, name: str, query: str = "database=shop&container=orders") -> dict[str, Any]:
        response = await self.ask("GET", name, query=query)
        assert response.status == 200, response.body
        answer: dict[str, Any] = json.loads(response.body)
        return answer

    async def reshape(self, kind: str, **parameters: object) -> None:
        """Begin a split or merge and wait for its end."""
        response = await self.ask("POST", kind, body={"database": "shop", "container": "orders", **parameters})
        assert response.status == 202, response.body
        reshaper = self.assembly.services.documents.services.reshaper
        for progress in list(reshaper.progress.values()):
            await reshaper.finished(progress.job)


def make_request(
    verb: str, path: str, query: str = "", headers: dict[str, str] | None = None, body: str = ""
) -> Request:
    return Request(verb, path, query, headers or {}, body.encode(), "http", "localhost")


@pytest.fixture
async def operator(tmp_path: Path) -> AsyncIterator[Operator]:
    """An operator of a server with 40 items of 10 customers in shop/orders."""
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        store = assembly.services.documents
        database = await store.create_database("asterism", "shop", None)
        properties = {"id": "orders", "partitionKey": {"paths": ["/customer"], "kind": "Hash", "version": 2}}
        container = await store.create_container(database, properties, None)
        for number in range(40):
            await container.create_item({"id": str(number), "customer": f'c"{number % 10}'}, None)
        yield Operator(assembly)


@pytest.mark.parametrize("verb", ["GET", "HEAD"])
async def test_the_readiness_probe_needs_no_signature(operator: Operator, verb: str) -> None:
    response = await operator.assembly.operator_door.answer(make_request(verb, "/_asterism/health"))
    assert json.loads(response.body)["status"] == "ready"


@pytest.mark.parametrize(("verb", "path"), [route for route, rule in ROUTES.items() if rule.signed])
async def test_everything_else_does(operator: Operator, verb: str, path: str) -> None:
    response = await operator.assembly.operator_door.answer(make_request(verb, f"/{path}"))
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
    shown = await operator.get("partitions")
    (partition,) = shown["partitions"]
    assert (partition["id"], partition["min"], partition["max"]) == ("0", "", "FF")
    assert (partition["items"], partition["state"], partition["parents"]) == (40, "online", [])
    assert (partition["ru_share"], partition["requests"], partition["logical_partitions"]) == (400, 40, 10)
    assert partition["largest"][0]["items"] == 4
    assert partition["largest"][0]["partition_key"][0].startswith('c"')
    assert len(partition["hottest"]) == 5


async def test_details_can_be_left_out(operator: Operator) -> None:
    shown = await operator.get("partitions", "database=shop&container=orders&details=false")
    assert "largest" not in shown["partitions"][0]


async def test_a_split_and_a_merge_are_carried_out_and_remembered(operator: Operator) -> None:
    await operator.reshape("split", range="0")
    halves = (await operator.get("partitions"))["partitions"]
    assert [partition["id"] for partition in halves] == ["1", "2"]
    assert sum(partition["items"] for partition in halves) == 40
    assert await operator.get("merge-plan") == {"merges": [{"ranges": ["1", "2"]}]}
    await operator.reshape("merge", ranges=["1", "2"])
    history = (await operator.get("history"))["history"]
    assert [(event["kind"], event["sources"], event["targets"]) for event in history] == [
        ("split", ["0"], ["1", "2"]),
        ("merge", ["1", "2"], ["3"]),
    ]
    assert await operator.get("jobs") == {"jobs": [], "tasks": []}


async def test_metrics_count_every_partition_and_escape_its_names(operator: Operator) -> None:
    database = await operator.assembly.services.documents.create_database("asterism", 'a "b"', None)
    properties = {"id": "c", "partitionKey": {"paths": ["/k"], "kind": "Hash", "version": 2}}
    await operator.assembly.services.documents.create_container(database, properties, None)
    text = (await operator.ask("GET", "metrics")).body.decode()
    assert 'asterism_partition_items{database="shop",container="orders",range="0"} 40\n' in text
    assert 'asterism_requests_total{database="shop",container="orders",range="0"} 40\n' in text
    assert 'asterism_partition_bytes{database="a \\"b\\"",container="c",range="0"} 0\n' in text
    assert 'asterism_reshape_jobs{kind="split"} 0\n' in text
    assert text.count("# TYPE asterism_store_bytes gauge\n") == 1


async def test_metrics_count_requests_by_door_operation_and_status_with_their_latencies(operator: Operator) -> None:
    assert (await operator.ask("GET", "jobs")).status == 200
    assert (await operator.ask("GET", "nothing")).status == 404
    text = (await operator.ask("GET", "metrics")).body.decode()
    assert 'asterism_door_requests_total{door="admin",operation="get_jobs",status="200"} 1\n' in text
    assert 'asterism_door_requests_total{door="admin",operation="unrouted",status="404"} 1\n' in text
    assert 'asterism_door_requests_in_flight{door="admin"} 1\n' in text
    assert "# TYPE asterism_door_request_seconds histogram\n" in text
    buckets = [
        int(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith('asterism_door_request_seconds_bucket{door="admin",operation="get_jobs"')
    ]
    assert len(buckets) == len(LATENCY_SECONDS) + 1
    assert buckets == sorted(buckets)
    assert 'operation="get_jobs",le="+Inf"} 1\n' in text
    assert 'asterism_door_request_seconds_count{door="admin",operation="get_jobs"} 1\n' in text


async def test_every_metric_is_in_the_page_for_operators(operator: Operator) -> None:
    text = (await operator.ask("GET", "metrics")).body.decode()
    page = (PROJECT / "docs" / "operations.md").read_text("utf-8")
    shown = set(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    assert shown == set(re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.MULTILINE))


def test_every_admin_route_has_an_operation_of_its_own() -> None:
    assert len({operation_of(key) for key in ROUTES}) == len(ROUTES)
    assert operation_of(("POST", "_asterism/rekey/switch")) == "post_rekey_switch"


async def test_an_unforeseen_failure_is_answered_and_in_the_log_once(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise ValueError("a secret detail")

    monkeypatch.setattr(type(operator.assembly.services.usage), "of_all", fail)
    response = await operator.ask("GET", "metrics")
    assert (response.status, json.loads(response.body)["code"]) == (500, "InternalServerError")
    assert b"secret" not in response.body
    assert [record.name for record in caplog.records] == ["asterism.admin"]


async def test_metrics_are_for_the_bearer_of_a_key_and_nothing_else_is(operator: Operator) -> None:
    admin = operator.assembly.operator_door
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
    store = operator.assembly.services.documents
    container = store.container(store.database("asterism", "shop"), "orders")
    policy = {"includedPaths": [{"path": "/total/?"}], "excludedPaths": [{"path": "/*"}]}
    with container.keyspace.in_flight:
        await store.replace_container(container, {**container.record.settings, "indexingPolicy": policy})
        await asyncio.sleep(0.01)
        under_way = (await operator.get("jobs"))["jobs"]
    await store.reindexer.finished(container.keyspace)
    shown = [(job["kind"], job["database"], job["container"], job["step"]) for job in under_way]
    assert shown == [("index", "shop", "orders", "0 %")]
    assert (await operator.get("jobs"))["jobs"] == []

"""Queries at the admin door: pages over all partitions, merged, with an explanation."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from asterism.access.master_key import signature
from asterism.apis.transports.http import Request, Response
from asterism.reading import collected_page
from asterism.server.assemble import Assembly, assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory

ITEM_COUNT = 40


@dataclass
class Asker:
    assembly: Assembly
    key: str = WELL_KNOWN_EMULATOR_KEY

    async def answer(self, text: object, **more: object) -> Response:
        body = {"database": "shop", "container": "orders", "query": text, "explain": True, **more}
        link, date = "_asterism/query", formatdate(usegmt=True)
        signed = signature(base64.b64decode(self.key), verb="POST", resource_type="asterism", link=link, date=date)
        headers = {"authorization": quote(f"type=master&ver=1.0&sig={signed}", safe=""), "x-ms-date": date}
        request = Request("POST", f"/{link}", "", headers, json.dumps(body).encode(), "http", "localhost")
        return await self.assembly.operator_door.answer(request)

    async def page(self, text: str, **more: object) -> dict[str, Any]:
        response = await self.answer(text, **more)
        assert response.status == 200, response.body
        answer: dict[str, Any] = json.loads(response.body)
        return answer


@pytest.fixture
async def asker(tmp_path: Path) -> AsyncIterator[Asker]:
    """Of a server with the items 0 to 39 of ten customers in two partitions of shop/orders."""
    async with assembled(ServerConfig(throttle=False), DataDirectory(tmp_path)) as assembly:
        store = assembly.services.documents
        database = await store.create_database("asterism", "shop", None)
        properties = {"id": "orders", "partitionKey": {"paths": ["/customer"], "kind": "Hash", "version": 2}}
        container = await store.create_container(database, properties, None)
        for number in range(ITEM_COUNT):
            item = {"id": str(number), "customer": f"c{number % 10}", "n": number, "größe": number % 4}
            await container.create_item(item, None)
        reshaper = store.services.reshaper
        await reshaper.finished(await reshaper.split(container.keyspace, 0))
        yield Asker(assembly)


async def test_an_order_over_all_partitions_is_merged_by_the_server(asker: Asker) -> None:
    page = await asker.page("SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 1 LIMIT 3")
    assert page["results"] == [38, 37, 36]
    assert page["continuation"] is None
    assert page["explanation"] | {"bytes_loaded": 0, "index_lookups": 0, "request_units": 0} == {
        "kind": "ordered",
        "logical_partitions": None,
        "partitions": ["1", "2"],
        "of_partitions": 2,
        "indexes": ["/n/?"],
        "scan": False,
        "index_lookups": 0,
        "items_loaded": 4,
        "bytes_loaded": 0,
        "results": 3,
        "request_units": 0,
    }
    assert page["explanation"]["request_units"] == page["charge"] > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT VALUE c.id FROM c WHERE c.n = 7", {"indexes": ["/n/?"], "scan": False, "items_loaded": 1}),
        ("SELECT VALUE c.id FROM c WHERE c.n * 2 = 14", {"indexes": [], "scan": True, "items_loaded": ITEM_COUNT}),
        ("SELECT VALUE c.id FROM c WHERE c.customer = 'c7' AND c.n = 7", {"scan": False, "results": 1}),
        ("SELECT VALUE '7'", {"items_loaded": 0, "partitions": [], "scan": False}),
        ("SELECT VALUE MAX(c.n) FROM c", {"kind": "aggregate", "results": 1}),
        ("SELECT VALUE COUNT(1) FROM c", {"items_loaded": 0, "scan": False}),
    ],
)
async def test_the_explanation_says_what_was_read_and_how(asker: Asker, text: str, expected: dict[str, object]) -> None:
    explained = (await asker.page(text))["explanation"]
    assert {name: explained[name] for name in expected} == expected


async def test_a_filter_that_fixes_the_partition_key_reads_one_partition(asker: Asker) -> None:
    page = await asker.page("SELECT VALUE c.n FROM c WHERE c.customer = @c", parameters=[{"name": "@c", "value": "c3"}])
    assert sorted(page["results"]) == [3, 13, 23, 33]
    assert len(page["explanation"]["partitions"]) == 1


@pytest.mark.parametrize("order", ["", " ORDER BY c.n", " GROUP BY c.n"])
async def test_pages_put_together_are_the_whole(asker: Asker, order: str) -> None:
    text = f"SELECT VALUE c.n FROM c{order}"
    page = await asker.page(text, max_items=7)
    found = page["results"]
    while page["continuation"] is not None:
        page = await asker.page(text, max_items=7, continuation=page["continuation"])
        found += page["results"]
    assert sorted(found) == list(range(ITEM_COUNT))


async def test_an_answer_without_explain_has_no_explanation(asker: Asker) -> None:
    assert set(await asker.page("SELECT * FROM c", explain=False)) == {"results", "continuation", "charge"}


async def test_a_read_only_key_may_query(asker: Asker) -> None:
    reader = Asker(asker.assembly, derive_readonly_key(WELL_KNOWN_EMULATOR_KEY))
    assert (await reader.page("SELECT VALUE 1"))["results"] == [1]


async def test_a_query_that_does_not_compile_is_refused_with_code_and_place(asker: Asker) -> None:
    response = await asker.answer("SELECT * FORM c")
    error = json.loads(response.body)
    assert (response.status, error["code"], error["query_error"]["code"]) == (400, "BadRequest", "SC1001")
    assert (error["query_error"]["start"], error["query_error"]["end"]) == (9, 13)


@pytest.mark.parametrize(
    "properties",
    [
        {"query": None},
        {"query": 7},
        {"parameters": {"@a": 1}},
        {"parameters": [{"name": "a"}]},
        {"max_items": 0},
        {"max_items": True},
        {"continuation": 7},
        {"continuation": "{}"},
        {"continuation": "\ud800"},
    ],
)
async def test_a_malformed_request_is_refused_with_a_message(asker: Asker, properties: dict[str, object]) -> None:
    response = await asker.answer("SELECT * FROM c", **properties)
    assert (response.status, set(json.loads(response.body))) == (400, {"code", "message"})


async def test_a_long_aggregate_comes_in_pages_that_go_on(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected_page, "COLLECT_SECONDS_MAX", 0.0)
    text = "SELECT VALUE SUM(c.n) FROM c WHERE c.n >= @least"
    parameters: dict[str, Any] = {"parameters": [{"name": "@least", "value": 0}]}
    pages = [await asker.page(text, **parameters)]
    while pages[-1]["continuation"] is not None:
        pages.append(await asker.page(text, **parameters, continuation=pages[-1]["continuation"]))
    assert pages[0]["results"] == []
    assert [result for page in pages for result in page["results"]] == [sum(range(ITEM_COUNT))]
    assert sum(page["explanation"]["items_loaded"] for page in pages) == ITEM_COUNT


async def test_a_query_may_call_the_functions_of_the_container(asker: Asker) -> None:
    store = asker.assembly.services.documents
    container = store.container(store.database("asterism", "shop"), "orders")
    properties = {"body": "function (n) { return 2 * n; }"}
    await store.catalog.scripts.functions.create(container.record.rid, "twice", properties, now=0)
    page = await asker.page("SELECT VALUE udf.twice(c.n) FROM c WHERE udf.twice(c.n) > 75 ORDER BY c.n")
    assert page["results"] == [76, 78]
    assert (await asker.answer("SELECT VALUE udf.nowhere(c.n) FROM c")).status == 400

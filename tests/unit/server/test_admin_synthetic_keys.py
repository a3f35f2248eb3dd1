"""The operator's door explains synthetic partition keys, before and after a container has them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from asterism.apis.admin.synthetic_keys import KEYS_SHOWN_MAX
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory
from tests.unit.server.test_admin_door import Operator

RULE = {"parts": ["/deviceId", {"path": "/at", "bucket": "day"}], "suffix": {"kind": "random", "count": 400}}
ITEM = {"id": "1", "deviceId": "d", "at": "2026-01-31T09:30:00Z"}
WORDS = "deviceId + '-' + day of at, then one of 400 suffixes by a draw"


def partition_key(rule: dict[str, Any]) -> dict[str, Any]:
    return {"paths": ["/pk"], "kind": "Hash", "version": 2, "synthetic": {"/pk": rule}}


@pytest.fixture
async def operator(tmp_path: Path) -> AsyncIterator[Operator]:
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        yield Operator(assembly)


async def explain(operator: Operator, **body: object) -> dict[str, Any]:
    response = await operator.ask("POST", "synthetic-key/explain", body=body)
    assert response.status == 200, response.body
    answer: dict[str, Any] = json.loads(response.body)
    return answer


async def test_a_rule_is_explained_with_the_keys_of_a_sample(operator: Operator) -> None:
    answer = await explain(operator, partition_key=partition_key(RULE), item=ITEM)
    assert (answer["allowed"], answer["words"]) == (True, {"/pk": WORDS})
    assert answer["partition_key"]["synthetic"]["/pk"]["separator"] == "-"
    sample = answer["item"]
    assert (sample["key_count"], sample["is_drawn"], len(sample["keys"])) == (400, True, KEYS_SHOWN_MAX)
    assert sample["keys"][0] == ["d-2026-01-31.1"]
    assert sample["filled"] == {**ITEM, "pk": "d-2026-01-31.1"}


async def test_an_item_may_have_no_value_where_the_rule_allows_it(operator: Operator) -> None:
    answer = await explain(operator, partition_key=partition_key({**RULE, "missing": "absent"}), item={"id": "1"})
    assert (answer["item"]["keys"], answer["item"]["filled"]) == ([[{}]], {"id": "1"})


@pytest.mark.parametrize(
    ("item", "reason"), [({"id": "1"}, "/deviceId"), ({**ITEM, "at": "now"}, "not a time stamp"), ([], "object")]
)
async def test_an_item_that_the_rule_refuses_says_why(operator: Operator, item: object, reason: str) -> None:
    answer = await explain(operator, partition_key=partition_key(RULE), item=item)
    assert answer["allowed"]
    assert reason in answer["item"]["reason"]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (partition_key({"parts": []}), "'parts'"),
        (partition_key({**RULE, "suffix": {"kind": "random", "count": 0}}), "'count'"),
        (partition_key({"parts": ["/pk"]}), "names itself"),
        ({"paths": ["/pk"], "kind": "Hash", "version": 2}, "no rule"),
        ({"paths": ["no-slash"], "kind": "Hash", "version": 2, "synthetic": {}}, "no-slash"),
        (None, "object"),
    ],
)
async def test_a_rule_that_cannot_be_is_an_answer_with_its_reason(operator: Operator, key: object, reason: str) -> None:
    answer = await explain(operator, partition_key=key, item=ITEM)
    assert not answer["allowed"]
    assert reason in answer["reason"]


async def test_a_reader_may_ask_too(operator: Operator) -> None:
    operator.key = derive_readonly_key(WELL_KNOWN_EMULATOR_KEY)
    assert (await explain(operator, partition_key=partition_key(RULE)))["item"] is None


async def test_the_partitions_of_a_container_come_with_its_rule(operator: Operator) -> None:
    store = operator.assembly.services.documents
    database = await store.create_database("asterism", "shop", None)
    await store.create_container(database, {"id": "orders", "partitionKey": partition_key(RULE)}, None)
    plain = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    await store.create_container(database, {"id": "plain", "partitionKey": plain}, None)
    answer = await operator.get("partitions")
    assert answer["partition_key"]["synthetic"]["/pk"]["suffix"]["count"] == 400
    assert answer["synthetic_key_words"] == {"/pk": WORDS}
    answer = await operator.get("partitions", "database=shop&container=plain")
    assert (answer["partition_key"], answer["synthetic_key_words"]) == (plain, {})

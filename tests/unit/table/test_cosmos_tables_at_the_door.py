"""The differences of the port for Cosmos DB for Table."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from asterism.errors import RequestRateTooLarge
from asterism.models.tables.table import Table
from tests.unit.table.table_door_at_hand import DoorAtHand, change_set, entity_path, open_door, upsert


@pytest.fixture
async def door() -> AsyncIterator[DoorAtHand]:
    async with open_door(is_cosmos=True) as at_hand:
        await at_hand.create()
        yield at_hand


async def test_names_may_be_any_text_and_differ_by_case(door: DoorAtHand) -> None:
    for name in ("a", "A", "täble_1 x", "-" * 254):
        await door.create(name)
    assert (await door.send("GET", "Tables('missing')")).code == "ResourceNotFound"


@pytest.mark.parametrize(
    ("name", "code"), [("a/b", "InternalServerError"), ("a ", "InternalServerError"), ("-" * 255, "BadRequest")]
)
async def test_a_name_it_does_not_take_is_refused_with_its_code_but_as_the_clients_mistake(
    door: DoorAtHand, name: str, code: str
) -> None:
    answer = await door.send("POST", "Tables", {"TableName": name})
    assert (answer.status, answer.code) == (400, code)


async def test_keys_are_not_empty_and_typed_as_texts(door: DoorAtHand) -> None:
    assert (await door.insert("", "r")).code == "InvalidInput"
    assert (await door.insert("p", "x" * 256)).code == "KeyValueTooLarge"
    typed = {"PartitionKey": "p", "RowKey": "5", "RowKey@odata.type": "Edm.Int64"}
    assert (await door.send("PUT", entity_path(), typed)).code == "InvalidInput"


async def test_a_missing_table_is_a_missing_resource(door: DoorAtHand) -> None:
    assert (await door.send("GET", "nothing()")).code == "ResourceNotFound"


async def test_every_answer_tells_its_charge(door: DoorAtHand) -> None:
    assert float((await door.insert()).headers["x-ms-request-charge"]) == 5.0
    assert float((await door.send("GET", entity_path())).headers["x-ms-request-charge"]) == 1.0
    missing = await door.send("GET", entity_path("p", "nothing"))
    assert (missing.code, float(missing.headers["x-ms-request-charge"])) == ("ResourceNotFound", 1.0)


async def test_a_batch_has_at_most_2_mebibytes(door: DoorAtHand) -> None:
    text = '{"a":"' + "x" * 30000 + '"}'
    body, headers = change_set(*(upsert("p", str(number), text) for number in range(80)))
    assert (await door.send("POST", "$batch", body, headers=headers)).status == 413


@pytest.mark.parametrize("query", ["restype=service&comp=properties", "restype=service&comp=stats"])
async def test_it_has_no_service_properties_or_statistics(door: DoorAtHand, query: str) -> None:
    assert (await door.send("GET", "", query=query)).code == "NotImplemented"


async def test_an_address_with_a_segment_too_many_is_invalid(door: DoorAtHand) -> None:
    answer = await door.send("POST", "orders/Tables", {"TableName": "x"})
    assert (answer.code, b"Request url is invalid." in answer.body) == ("InvalidInput", True)


@pytest.mark.parametrize("is_batch", [False, True])
async def test_a_throttled_write_is_429_with_the_header_that_makes_clients_wait(
    door: DoorAtHand, monkeypatch: pytest.MonkeyPatch, is_batch: bool
) -> None:
    async def spent(*_: object) -> None:
        raise RequestRateTooLarge(retry_after_seconds=0.2)

    monkeypatch.setattr(Table, "apply", spent)
    body, headers = change_set(upsert("p", "r"))
    answer = await (door.send("POST", "$batch", body, headers=headers) if is_batch else door.insert())
    assert (answer.status, answer.code) == (429, "TooManyRequests")
    assert (answer.headers["retry-after"], answer.headers["x-ms-retry-after-ms"]) == ("1", "200")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-ms-offer-throughput": "1000"}, 201),
        ({"x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":4000}'}, 201),
        ({"x-ms-offer-throughput": "many"}, 400),
        ({"x-ms-cosmos-offer-autopilot-settings": "{}"}, 400),
        ({"x-ms-offer-throughput": "1000", "x-ms-cosmos-offer-autopilot-settings": "{}"}, 400),
    ],
)
async def test_throughput_is_given_when_a_table_is_created(
    door: DoorAtHand, headers: dict[str, str], status: int
) -> None:
    assert (await door.send("POST", "Tables", {"TableName": "fast"}, headers=headers)).status == status

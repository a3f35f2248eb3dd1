"""Several accounts at one door: distinguished by their keys or by the host name, each with databases of its own."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from asterism.apis.transports.http import Request
from asterism.keyspaces.catalog.accounts import AccountQuotas, AccountRecord
from tests.unit.nosql.door_at_hand import DoorAtHand, authorization, door_at_hand

BLUE, BLUE_SECONDARY, GREEN = "Ymx1ZQ==", "Ymx1ZTI=", "Z3JlZW4="


@pytest.fixture
async def at_hand(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as at_hand:
        accounts = at_hand.world.catalog.accounts
        await accounts.create(AccountRecord("blue", "cosmos", BLUE, BLUE_SECONDARY, "Eventual", 1))
        await accounts.create(AccountRecord("green", "cosmos", GREEN, "Z3JlZW4y", "Strong", 1))
        yield at_hand


async def names(at_hand: DoorAtHand, signing_key: str) -> list[str]:
    answer = await at_hand.send("GET", "dbs", signing_key=signing_key)
    assert answer.status == 200
    return [database["id"] for database in answer.body["Databases"]]


async def ask(at_hand: DoorAtHand, host: str, signing_key: str) -> int:
    date = formatdate(time.time(), usegmt=True)
    headers = {"x-ms-date": date, "authorization": authorization("GET", "dbs", date=date, signing_key=signing_key)}
    response = await at_hand.door.answer(Request("GET", "/dbs/", "", headers, b"", "http", host))
    return response.status


async def test_each_account_sees_its_own_databases(at_hand: DoorAtHand) -> None:
    assert (await at_hand.send("POST", "dbs", {"id": "d"}, signing_key=BLUE)).status == 201
    assert (await at_hand.send("POST", "dbs", {"id": "only-green"}, signing_key=GREEN)).status == 201
    assert await names(at_hand, BLUE) == ["d"]
    assert await names(at_hand, BLUE_SECONDARY) == ["d"]
    assert await names(at_hand, GREEN) == ["only-green"]
    assert await names(at_hand, WELL_KNOWN_EMULATOR_KEY) == ["d"]


async def test_an_account_cannot_name_the_databases_of_another_by_resource_id(at_hand: DoorAtHand) -> None:
    answer = await at_hand.send("GET", "dbs/d")
    assert answer.status == 200
    assert (await at_hand.send("GET", f"dbs/{answer.body['_rid']}", signing_key=BLUE)).status in (401, 404)
    assert (await at_hand.send("GET", "dbs/d", signing_key=BLUE)).status == 404


async def test_an_account_tells_its_own_name_and_consistency(at_hand: DoorAtHand) -> None:
    answer = await at_hand.send("GET", "", signing_key=GREEN)
    assert answer.body["id"] == "green"
    assert answer.body["userConsistencyPolicy"] == {"defaultConsistencyLevel": "Strong"}


async def test_a_read_only_key_of_an_account_only_reads(at_hand: DoorAtHand) -> None:
    reading = derive_readonly_key(BLUE)
    assert await names(at_hand, reading) == []
    assert (await at_hand.send("POST", "dbs", {"id": "d"}, signing_key=reading)).status == 403


async def test_a_replaced_key_is_refused(at_hand: DoorAtHand) -> None:
    accounts = at_hand.world.catalog.accounts
    await accounts.update("blue", lambda record: replace(record, primary_key="bmV3"))
    assert (await at_hand.send("GET", "dbs", signing_key=BLUE)).status == 401
    assert await names(at_hand, "bmV3") == []
    assert await names(at_hand, BLUE_SECONDARY) == []


async def test_a_deleted_account_is_unknown(at_hand: DoorAtHand) -> None:
    await at_hand.world.catalog.accounts.delete("blue")
    assert (await at_hand.send("GET", "dbs", signing_key=BLUE)).status == 401


async def test_a_host_that_names_an_account_takes_only_its_keys(at_hand: DoorAtHand) -> None:
    assert await ask(at_hand, "blue.localhost:8081", BLUE) == 200
    assert await ask(at_hand, "blue.localhost:8081", GREEN) == 401
    assert await ask(at_hand, "test.localhost:8081", BLUE) == 401
    assert await ask(at_hand, "test.localhost:8081", WELL_KNOWN_EMULATOR_KEY) == 200


async def test_a_quota_is_refused_with_403_and_a_sentence(at_hand: DoorAtHand) -> None:
    quotas = AccountQuotas(databases_max=1)
    await at_hand.world.catalog.accounts.update("blue", lambda record: replace(record, quotas=quotas))
    assert (await at_hand.send("POST", "dbs", {"id": "d"}, signing_key=BLUE)).status == 201
    refused = await at_hand.send("POST", "dbs", {"id": "e"}, signing_key=BLUE)
    assert refused.status == 403
    assert "quota of 1" in refused.body["message"]
    assert await names(at_hand, BLUE) == ["d"]

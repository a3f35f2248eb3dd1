"""Retryable writes whose filter does not name the shard key: the repeated one is answered from the first."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from bson import Binary, Int64
from pymongo import MongoClient
from pymongo.database import Database

from tests.clients.test_mongo import SELECTION_MILLISECONDS, address
from tests.support.server import RunningServer

Document = dict[str, Any]
PLACES = 12


@pytest.fixture
def shop(server: RunningServer) -> Iterator[Database[Document]]:
    name = f"retried-{uuid.uuid4().hex[:8]}"
    with MongoClient[Document](
        address(server), serverSelectionTimeoutMS=SELECTION_MILLISECONDS, retryWrites=False
    ) as client:
        client[name].command("shardCollection", f"{name}.users", key={"city": "hashed"})
        client[name].users.insert_many([{"_id": n, "city": f"c{n}", "kind": "a", "n": 0} for n in range(PLACES)])
        yield client[name]
        client.drop_database(name)


def session_fields(number: int, session: uuid.UUID) -> Document:
    return {"lsid": {"id": Binary.from_uuid(session)}, "txnNumber": Int64(number)}


def test_a_repeated_delete_takes_no_second_document(shop: Database[Document]) -> None:
    fields = session_fields(1, uuid.uuid4())
    statement = [{"q": {"kind": "a"}, "limit": 1}]
    answers = [shop.command("delete", "users", deletes=statement, **fields)["n"] for _ in range(3)]
    assert answers == [1, 1, 1]
    assert shop.users.count_documents({}) == PLACES - 1


def test_a_repeated_update_is_answered_after_a_split(shop: Database[Document]) -> None:
    session = uuid.uuid4()
    for number in range(1, 4):
        change = [{"q": {"kind": "a", "n": 0}, "u": {"$inc": {"n": 1}}}]
        first = shop.command("update", "users", updates=change, **session_fields(number, session))
        if number == 2:
            shop.client.admin.command("split", f"{shop.name}.users", find={"city": "c1"})
        again = shop.command("update", "users", updates=change, **session_fields(number, session))
        assert (first["nModified"], again["nModified"]) == (1, 1)
    assert sorted(user["n"] for user in shop.users.find()) == [0] * (PLACES - 3) + [1] * 3


def test_a_repeated_find_and_modify_returns_the_same_document(shop: Database[Document]) -> None:
    fields = session_fields(7, uuid.uuid4())
    first, again = (
        shop.command("findAndModify", "users", query={"kind": "a"}, remove=True, **fields)["value"] for _ in range(2)
    )
    assert first == again
    assert shop.users.count_documents({}) == PLACES - 1

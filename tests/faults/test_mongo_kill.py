"""kill -9 under a mixed load through the MongoDB door, then a restart.

Every acknowledged write is there exactly once, a transaction is whole or absent, and a write that is repeated after the
restart with the number of its session is not carried out again. A change stream that is resumed has missed nothing and
repeats nothing. A further kind of load is a further class in `LOADS`.
"""

from __future__ import annotations

import threading
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bson import Binary, Int64, Timestamp
from pymongo import MongoClient
from pymongo.change_stream import ChangeStream
from pymongo.errors import OperationFailure, PyMongoError, ServerSelectionTimeoutError

from tests.support.mongo_messages import ConnectionEnded, RawClient
from tests.support.raw import wait_until
from tests.support.server import RunningServer, running_server

Client = MongoClient[dict[str, Any]]
DATABASE = "shop"


class Load(ABC):
    """Writes of one thread until the server is gone, and the check of them after its restart."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.tried = 0
        self.acknowledged = 0
        self.refusal: Exception | None = None

    def run(self, server: RunningServer) -> None:
        try:
            self.write(server)
        except OperationFailure as refusal:
            self.refusal = refusal
        except (PyMongoError, OSError, ConnectionEnded):
            return

    @abstractmethod
    def write(self, server: RunningServer) -> None:
        """Write until an error ends it; raise `tried` before each write and `acknowledged` after it."""

    @abstractmethod
    def check(self, server: RunningServer, client: Client) -> None: ...


@contextmanager
def connected(server: RunningServer) -> Iterator[Client]:
    options: dict[str, Any] = {"serverSelectionTimeoutMS": 1000, "replicaSet": "globaldb"}
    with MongoClient[dict[str, Any]]("127.0.0.1", server.ports["mongo"], **options) as client:
        # The short time is for a server that is gone: on a busy machine, one that has just started may need longer.
        assert wait_until(lambda: is_found(client))
        yield client


def is_found(client: Client) -> bool:
    try:
        client.admin.command("ping")
    except ServerSelectionTimeoutError:
        return False
    return True


class Inserts(Load):
    """Documents of their own, some of them in batches."""

    def write(self, server: RunningServer) -> None:
        with connected(server) as client:
            while True:
                self.tried += 1
                name = f"{self.number}-{self.tried}"
                client[DATABASE].inserted.insert_many([{"_id": f"{name}-{part}", "by": name} for part in range(3)])
                self.acknowledged += 1

    def check(self, server: RunningServer, client: Client) -> None:
        inserted = client[DATABASE].inserted
        for write in range(1, self.acknowledged + 1):
            name = f"{self.number}-{write}"
            assert [found["_id"] for found in inserted.find({"by": name}).sort("_id")] == [
                f"{name}-{part}" for part in range(3)
            ]
        assert inserted.count_documents({"by": f"{self.number}-{self.tried + 1}"}) == 0


class Updates(Load):
    """One counter; the index on it must agree with the document."""

    def write(self, server: RunningServer) -> None:
        with connected(server) as client:
            client[DATABASE].counted.create_index("n")
            while True:
                self.tried += 1
                client[DATABASE].counted.update_one({"_id": self.number}, {"$inc": {"n": 1}}, upsert=True)
                self.acknowledged += 1

    def check(self, server: RunningServer, client: Client) -> None:
        counted = client[DATABASE].counted
        found = counted.find_one({"_id": self.number}) or {"n": 0}
        assert self.acknowledged <= found["n"] <= self.tried
        by_index = counted.find({"n": found["n"], "_id": self.number}, hint="n_1")
        assert len(list(by_index)) == (1 if self.tried else 0)


class Transactions(Load):
    """An order, its line and a total, in three collections."""

    def write(self, server: RunningServer) -> None:
        with connected(server) as client, client.start_session() as session:
            while True:
                self.tried += 1
                order = {"_id": f"{self.number}-{self.tried}", "by": self.number}
                try:
                    with session.start_transaction():
                        client[DATABASE].orders.insert_one(order, session=session)
                        client[DATABASE].lines.insert_one(order, session=session)
                        client[DATABASE].totals.update_one(
                            {"_id": self.number}, {"$inc": {"n": 1}}, upsert=True, session=session
                        )
                except OperationFailure as refusal:
                    if not refusal.has_error_label("TransientTransactionError"):
                        raise
                    # Another one was faster; it is tried again under its name.
                    self.tried -= 1
                else:
                    self.acknowledged += 1

    def check(self, server: RunningServer, client: Client) -> None:
        shop = client[DATABASE]
        orders = {found["_id"] for found in shop.orders.find({"by": self.number})}
        lines = {found["_id"] for found in shop.lines.find({"by": self.number})}
        total = (shop.totals.find_one({"_id": self.number}) or {"n": 0})["n"]
        assert orders == lines
        assert total == len(orders)
        assert {f"{self.number}-{write}" for write in range(1, self.acknowledged + 1)} <= orders
        assert len(orders) in (self.acknowledged, self.tried)


class RepeatedWrites(Load):
    """Writes with session and number, as drivers send them; the last one is sent again after the restart."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._session = Binary(uuid.uuid4().bytes, 4)

    def write(self, server: RunningServer) -> None:
        with RawClient(server.ports["mongo"]) as raw:
            while True:
                self.tried += 1
                assert self._send(raw, self.tried)["ok"] == 1.0
                self.acknowledged += 1

    def _send(self, raw: RawClient, number: int) -> dict[str, Any]:
        session: dict[str, Any] = {"lsid": {"id": self._session}, "txnNumber": Int64(number), "$db": DATABASE}
        increment = {"$inc": {"n": 1}, "$push": {"log": number}}
        command: dict[str, Any]
        if number % 2:
            command = {
                "findAndModify": "repeated", "query": {"_id": self.number}, "update": increment, "upsert": True,
                "new": True,
            }  # fmt: skip
        else:
            statement = {"q": {"_id": self.number}, "u": increment, "upsert": True}
            command = {"update": "repeated", "updates": [statement]}
        return raw.command({**command, **session})

    def check(self, server: RunningServer, client: Client) -> None:
        with RawClient(server.ports["mongo"]) as raw:
            first, second = self._send(raw, self.tried), self._send(raw, self.tried)
            for answer in (first, second):
                assert answer["ok"] == 1.0
                # The document as it was then, or the counts.
                assert answer.get("value", {"n": self.tried})["n"] == self.tried
            assert first.get("value") == second.get("value")
        found = client[DATABASE].repeated.find_one({"_id": self.number})
        assert found == {"_id": self.number, "n": self.tried, "log": list(range(1, self.tried + 1))}


class Watched(Load):
    """All changes of the database: read until the kill, and from the last event on after the restart."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._events: list[dict[str, Any]] = []

    def write(self, server: RunningServer) -> None:
        with (
            connected(server) as client,
            # From the beginning of the log: the others may have written already.
            client[DATABASE].watch(start_at_operation_time=Timestamp(1, 1)) as stream,
        ):
            for event in stream:
                self._events.append(dict(event))
                self.acknowledged += 1

    def check(self, server: RunningServer, client: Client) -> None:
        shop = client[DATABASE]
        shop.ended.insert_one({"_id": self.number})
        with shop.watch(resume_after=self._events[-1]["_id"]) as stream:
            assert wait_until(lambda: self._has_ended(stream))
        assert len({event["_id"]["_data"] for event in self._events}) == len(self._events)
        for name in ("inserted", "orders", "lines"):
            assert self._changes_of(name) == {found["_id"]: 1 for found in shop[name].find()}
        for name in ("counted", "totals", "repeated"):
            # Each change has raised the counter by one.
            assert self._changes_of(name) == {found["_id"]: found["n"] for found in shop[name].find()}

    def _has_ended(self, stream: ChangeStream[dict[str, Any]]) -> bool:
        """Keep the events that are there, and return whether that of the last write is among them."""
        while (event := stream.try_next()) is not None:
            self._events.append(dict(event))
            if event["ns"].get("coll") == "ended":
                return True
        return False

    def _changes_of(self, name: str) -> Counter[Any]:
        changed = [event for event in self._events if event["ns"].get("coll") == name and "documentKey" in event]
        return Counter(event["documentKey"]["_id"] for event in changed)


# The stream is checked last: the check of repeated writes may write.
LOADS: tuple[type[Load], ...] = (
    Inserts,
    Updates,
    Transactions,
    Transactions,
    RepeatedWrites,
    RepeatedWrites,
    Watched,
)


def have_written(loads: list[Load], writes: int) -> bool:
    return min(load.acknowledged for load in loads) >= writes


@pytest.mark.parametrize("writes", [3, 40])
def test_acknowledged_writes_survive_a_kill_exactly_once(tmp_path: Path, writes: int) -> None:
    loads = [kind(number) for number, kind in enumerate(LOADS)]
    with running_server(tmp_path / "data", "--no-throttle", doors=("mongo",), embedded=True, alone=True) as server:
        threads = [threading.Thread(target=load.run, args=(server,)) for load in loads]
        for thread in threads:
            thread.start()
        wait_until(lambda: have_written(loads, writes) or any(load.refusal is not None for load in loads))
        server.kill()
        for thread in threads:
            thread.join()
        assert [load.refusal for load in loads] == [None] * len(loads)
        assert have_written(loads, writes)
    with (
        running_server(tmp_path / "data", "--no-throttle", doors=("mongo",), embedded=True, alone=True) as server,
        connected(server) as client,
    ):
        for load in loads:
            load.check(server, client)
        assert client[DATABASE].command("validate", "inserted")["valid"]

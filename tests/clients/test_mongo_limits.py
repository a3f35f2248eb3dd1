"""Input that is too large, too deep or not BSON: refused with a code, and the server goes on."""

from __future__ import annotations

import resource
import struct
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from bson import Regex, encode

from tests.support.mongo_messages import RawClient, op_msg, sequence
from tests.support.server import RunningServer, running_server

NUMBER = struct.Struct("<i")


class Database:
    """A database of its own, over one connection."""

    def __init__(self, raw: RawClient, name: str) -> None:
        self._raw = raw
        self.name = name

    def command(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._raw.command({**body, "$db": self.name})

    def write(self, body: dict[str, Any], array: str, *documents: bytes) -> dict[str, Any]:
        return self._raw.exchange(op_msg({**body, "$db": self.name}, sections=sequence(array, *documents))).body

    def aggregate(self, *stages: dict[str, Any], **more: Any) -> dict[str, Any]:
        return self.command({"aggregate": 1, "pipeline": list(stages), "cursor": {}, **more})


@pytest.fixture
def database(server: RunningServer) -> Iterator[Database]:
    with RawClient(server.ports["mongo"]) as raw:
        found = Database(raw, f"limits-{uuid.uuid4().hex[:8]}")
        yield found
        assert found.command({"dropDatabase": 1})["ok"] == 1.0


def document(content: bytes) -> bytes:
    return NUMBER.pack(len(content) + 5) + content + b"\x00"


def nested(depth: int) -> bytes:
    raw = document(b"")
    for _ in range(depth):
        raw = document(b"\x03a\x00" + raw)
    return raw


ID = b"\x10_id\x00" + NUMBER.pack(1)


@pytest.mark.parametrize(
    "content",
    [
        b"\x02a\x00\x02\x00\x00\x00\xff\x00",
        b"\x08a\x00\x02",
        b"\x99a\x00\x02",
        b"\x03a\x00" + NUMBER.pack(100) + b"\x00",
        b"\x02a\x00" + NUMBER.pack(-3) + b"x\x00",
        b"\x10a\x00\x01",
        b"\x10\xff\xfe\x00" + NUMBER.pack(1),
        b"\x03a\x00" + nested(1000),
    ],
    ids=["text", "boolean", "type", "nested length", "text length", "cut", "name", "depth"],
)
def test_a_document_that_is_not_bson_is_not_stored(database: Database, content: bytes) -> None:
    answer = database.write({"insert": "c", "ordered": False}, "documents", document(ID + content), encode({"_id": 2}))
    assert [(failure["index"], failure["code"]) for failure in answer["writeErrors"]] == [(0, 22)]
    assert database.command({"find": "c"})["cursor"]["firstBatch"] == [{"_id": 2}]
    assert database.write({"update": "c"}, "updates", document(content))["code"] == 22


def test_a_batch_has_up_to_100_000_writes(database: Database) -> None:
    for command, array, statement in (
        ("insert", "documents", encode({})),
        ("update", "updates", encode({"q": {}, "u": {"$set": {"a": 1}}})),
        ("delete", "deletes", encode({"q": {}, "limit": 1})),
    ):
        assert database.write({command: "c"}, array, *([statement] * 100_001))["code"] == 16
        assert database.write({command: "c"}, array)["code"] == 16
    assert database.command({"count": "c"})["n"] == 0


def test_documents_have_up_to_16_megabytes_and_messages_48(database: Database) -> None:
    large = encode({"_id": 1, "a": bytes(16 * 1024 * 1024)})
    assert database.write({"insert": "c"}, "documents", large)["writeErrors"][0]["code"] == 10334
    many = [encode({"_id": number, "a": bytes(15_900_000)}) for number in range(3)]
    assert database.write({"insert": "c"}, "documents", *many)["n"] == 3
    first = database.command({"find": "c", "projection": {"_id": 1}})["cursor"]["firstBatch"]
    assert [found["_id"] for found in first] == [0, 1, 2]


def test_a_pipeline_has_up_to_1_000_stages(database: Database) -> None:
    stage: dict[str, Any] = {"$match": {}}
    assert database.aggregate({"$documents": [{}]}, *[stage] * 999)["ok"] == 1.0
    assert database.aggregate({"$documents": [{}]}, *[stage] * 1000)["code"] == 7749501


def test_a_sort_beyond_the_memory_limit_needs_leave_to_use_the_disk(database: Database) -> None:
    stages: list[dict[str, Any]] = [
        {"$documents": [{"text": "x" * 1_000_000}]},
        {"$set": {"n": {"$range": [0, 150]}}},
        {"$unwind": "$n"},
        {"$sort": {"text": 1, "n": -1}},
        {"$project": {"n": 1}},
    ]
    assert database.aggregate(*stages, allowDiskUse=False)["code"] == 292
    assert len(database.aggregate(*stages[:1], allowDiskUse=False)["cursor"]["firstBatch"]) == 1


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*b", "^(a+)+\\1$", "^(?=(a+)+$)x", "(a{1,100}){1,100}b"])
def test_a_regular_expression_cannot_hold_the_server_up(database: Database, pattern: str) -> None:
    database.write({"insert": "c"}, "documents", encode({"_id": 1, "s": "a" * 40 + "!"}))
    answer = database.command({"find": "c", "filter": {"s": Regex(pattern)}})
    assert answer.get("code", 51156) == 51156
    assert answer.get("cursor", {"firstBatch": []})["firstBatch"] == []


def test_values_cannot_grow_without_end(database: Database) -> None:
    start: list[dict[str, Any]] = [{"$documents": [{"l": [1] * 50, "s": "x" * 50}]}]
    arrays = [{"$project": {"l": {"$concatArrays": ["$l"] * 50}}}] * 5
    texts = [{"$project": {"s": {"$concat": ["$s"] * 50}}}] * 5
    assert database.aggregate(*start, *arrays, {"$project": {"n": {"$size": "$l"}}})["code"] == 10334
    assert database.aggregate(*start, *texts, {"$project": {"n": {"$strLenCP": "$s"}}})["ok"] == 0.0
    for copies in (["$l"] * 50, dict.fromkeys("abcdefghijklmnop", "$l")):
        shared = [{"$project": {"l": copies}}] * 6
        assert database.aggregate(*start, *shared)["code"] == 10334
    mapped = {"$map": {"input": {"$range": [0, 100_000]}, "in": "$l"}}
    assert database.aggregate(*start, {"$project": {"l": [mapped] * 10}})["code"] == 10334
    assert database.aggregate(*start, {"$project": {"r": {"$range": [0, 2_000_000_000]}}})["code"] == 146


def test_expressions_that_are_nested_as_deeply_as_bson_allows_get_an_answer(database: Database) -> None:
    for depth in (50, 150, 190):
        expression: Any = True
        condition: Any = {"a": 1}
        for _ in range(depth):
            expression = {"$not": expression}
        for _ in range(depth // 2):
            condition = {"$and": [condition]}
        for answer in (
            database.aggregate({"$documents": [{}]}, {"$project": {"x": expression}}),
            database.command({"find": "c", "filter": condition}),
        ):
            assert answer.get("code") in (None, 2, 22)


def test_a_thousand_idle_connections_cost_less_than_100_megabytes(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4096), hard), hard))
    with running_server(tmp_path / "data", doors=("mongo",), alone=True) as server, ExitStack() as open_connections:
        port = server.ports["mongo"]
        with RawClient(port) as first:
            first.command({"hello": 1})
        before = resident_bytes(server)
        for _ in range(1000):
            idle = open_connections.enter_context(RawClient(port))
            assert idle.command({"hello": 1})["ok"] == 1.0
        assert resident_bytes(server) - before < 100 * 1024 * 1024


def test_connections_beyond_the_limit_wait_for_others_to_end(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--limit", "connections=5", doors=("mongo",), alone=True) as server:
        port = server.ports["mongo"]
        with ExitStack() as open_connections:
            for _ in range(5):
                full = open_connections.enter_context(RawClient(port))
                assert full.command({"ping": 1})["ok"] == 1.0
            late = RawClient(port)
            late.send(op_msg({"ping": 1, "$db": "admin"}))
        with late:
            # The others have ended; nothing was lost.
            reply = late.receive()
        assert reply is not None
        assert reply.body["ok"] == 1.0


def resident_bytes(server: RunningServer) -> int:
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the process has no memory")

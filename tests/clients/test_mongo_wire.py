"""The protocol over real connections, with messages that no driver sends and with the driver's special ones."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bson import encode
from pymongo import CursorType, MongoClient, WriteConcern
from pymongo.errors import ConnectionFailure
from pymongo.monitoring import ServerHeartbeatListener

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.support.mongo_messages import (
    CHECKSUM_PRESENT,
    EXHAUST_ALLOWED,
    MORE_TO_COME,
    OP_COMPRESSED,
    OP_REPLY,
    RawClient,
    framed,
    op_compressed,
    op_msg,
    op_query,
    sequence,
)
from tests.support.raw import wait_until
from tests.support.server import RunningServer, running_server

Client = MongoClient[dict[str, Any]]
PING = {"ping": 1, "$db": "admin"}


@pytest.fixture
def raw(server: RunningServer) -> Iterator[RawClient]:
    with RawClient(server.ports["mongo"]) as connected:
        yield connected


def test_the_first_message_may_be_of_the_old_protocol(raw: RawClient) -> None:
    reply = raw.exchange(op_query({"ismaster": 1, "helloOk": True}, request_id=41))
    assert (reply.opcode, reply.response_to) == (OP_REPLY, 41)
    assert (reply.body["ismaster"], reply.body["setName"]) == (True, "globaldb")
    assert raw.command(PING)["ok"] == 1.0


def test_other_messages_of_the_old_protocol_are_refused_in_it(raw: RawClient) -> None:
    for message in (
        op_query({"ping": 1}),
        op_query({"a": 1}, namespace="shop.users"),
        framed(2005, b"\x00" * 20),
        framed(2002, b"\x00" * 20),
    ):
        reply = raw.exchange(message)
        assert (reply.opcode, reply.body["code"], reply.body["ok"]) == (OP_REPLY, 352, 0.0)
    assert raw.command(PING)["ok"] == 1.0


def test_a_checksum_is_verified_and_none_is_sent(raw: RawClient) -> None:
    reply = raw.exchange(op_msg(PING, flags=CHECKSUM_PRESENT))
    assert (reply.flags & CHECKSUM_PRESENT, reply.body["ok"]) == (0, 1.0)
    raw.send(op_msg(PING, flags=CHECKSUM_PRESENT)[:-1] + b"\x00")
    assert raw.receive() is None


def test_an_answer_is_compressed_as_its_request_is(raw: RawClient) -> None:
    assert raw.command({"hello": 1, "compression": ["snappy", "zlib"], "$db": "admin"})["compression"] == ["zlib"]
    assert raw.exchange(op_compressed(op_msg(PING))).opcode == OP_COMPRESSED
    assert raw.exchange(op_msg(PING)).opcode != OP_COMPRESSED


def test_a_driver_with_compression_reads_and_writes(server: RunningServer) -> None:
    with Client("127.0.0.1", server.ports["mongo"], compressors="zlib") as client:
        users = client[f"packed-{uuid.uuid4().hex[:8]}"].users
        users.insert_many([{"_id": number, "text": "x" * 1000} for number in range(300)])
        assert sum(len(user["text"]) for user in users.find(batch_size=100)) == 300_000
        client.drop_database(users.database.name)


def test_a_message_without_an_answer_is_carried_out(raw: RawClient, server: RunningServer) -> None:
    name = f"quiet-{uuid.uuid4().hex[:8]}"
    documents = sequence("documents", encode({"_id": 1}))
    raw.send(op_msg({"insert": "c", "$db": name}, flags=MORE_TO_COME, sections=documents))
    # Wrong ones are not answered either.
    raw.send(op_msg({"insert": 5, "$db": name}, flags=MORE_TO_COME, sections=documents))
    reply = raw.exchange(op_msg({"count": "c", "$db": name}, request_id=99))
    assert (reply.response_to, reply.body["n"]) == (99, 1)
    with Client("127.0.0.1", server.ports["mongo"]) as client:
        client[name].get_collection("c", write_concern=WriteConcern(0)).insert_one({"_id": 2})
        assert wait_until(lambda: client[name].c.count_documents({}) == 2)
        client.drop_database(name)


def test_an_exhaust_cursor_gets_its_batches_without_asking(server: RunningServer) -> None:
    with Client("127.0.0.1", server.ports["mongo"]) as client:
        numbers = client[f"exhaust-{uuid.uuid4().hex[:8]}"].numbers
        numbers.insert_many([{"_id": number} for number in range(500)])
        found = [each["_id"] for each in numbers.find(cursor_type=CursorType.EXHAUST, batch_size=7).sort("_id", 1)]
        assert found == list(range(500))
        cursor = numbers.find(cursor_type=CursorType.EXHAUST, batch_size=7)
        next(cursor)
        cursor.close()
        assert numbers.count_documents({}) == 500
        client.drop_database(numbers.database.name)


def test_exhaust_replies_follow_one_another(raw: RawClient) -> None:
    name = f"exhaust-{uuid.uuid4().hex[:8]}"
    documents = sequence("documents", *(encode({"_id": number}) for number in range(5)))
    raw.exchange(op_msg({"insert": "c", "$db": name}, sections=documents))
    opened = raw.command({"find": "c", "batchSize": 1, "$db": name})
    more = {"getMore": opened["cursor"]["id"], "collection": "c", "batchSize": 2, "$db": name}
    first = raw.exchange(op_msg(more, flags=EXHAUST_ALLOWED, request_id=50))
    assert (first.flags, first.response_to) == (MORE_TO_COME, 50)
    last, flags = first, [first.flags]
    while last.flags & MORE_TO_COME:
        following = raw.receive()
        assert following is not None
        assert following.response_to == last.reply_id
        last = following
        flags.append(last.flags)
    assert last.body["cursor"]["id"] == 0
    assert flags[-1] == 0
    raw.command({"dropDatabase": 1, "$db": name})


def test_a_hello_that_waits_is_answered_after_its_time_and_goes_on(raw: RawClient) -> None:
    version = raw.command({"hello": 1, "$db": "admin"})["topologyVersion"]
    waiting = {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 50, "$db": "admin"}
    assert raw.exchange(op_msg(waiting)).flags == 0
    first = raw.exchange(op_msg(waiting, flags=EXHAUST_ALLOWED))
    second = raw.receive()
    assert second is not None
    assert (first.flags, second.flags, second.response_to) == (MORE_TO_COME, MORE_TO_COME, first.reply_id)
    assert second.body["topologyVersion"] == version


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"maxAwaitTimeMS": 5}, 31373),
        ({"topologyVersion": {}}, 31368),
        ({"topologyVersion": 5, "maxAwaitTimeMS": 5}, 14),
        ({"topologyVersion": {}, "maxAwaitTimeMS": 5}, 40414),
        ({"topologyVersion": {"processId": 1, "counter": 1}, "maxAwaitTimeMS": 5}, 14),
        ({"topologyVersion": {"processId": 1, "counter": 1}, "maxAwaitTimeMS": "5"}, 14),
        ({"topologyVersion": {"processId": 1, "counter": 1}, "maxAwaitTimeMS": -5}, 2),
        ({"loadBalanced": True}, 72),
    ],
)
def test_a_hello_with_wrong_fields_is_refused(raw: RawClient, fields: dict[str, Any], code: int) -> None:
    assert raw.command({"hello": 1, **fields, "$db": "admin"})["code"] == code


def test_the_driver_takes_its_heartbeats_from_a_stream(server: RunningServer) -> None:
    class Heartbeats(ServerHeartbeatListener):
        def __init__(self) -> None:
            self.awaited = 0

        def started(self, event: Any) -> None: ...

        def failed(self, event: Any) -> None: ...

        def succeeded(self, event: Any) -> None:
            self.awaited += event.awaited

    heartbeats = Heartbeats()
    options: dict[str, Any] = {"heartbeatFrequencyMS": 500, "event_listeners": [heartbeats]}
    with Client("127.0.0.1", server.ports["mongo"], **options) as client:
        client.admin.command("ping")
        assert wait_until(lambda: heartbeats.awaited >= 2)


def is_answered(client: Client) -> bool:
    try:
        client.admin.command("ping")
    except ConnectionFailure:
        return False
    return True


def test_a_server_that_stops_does_not_wait_for_streams(tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "data", doors=("mongo",)) as server,
        # At its end the client looks for the server, which is gone then.
        Client("127.0.0.1", server.ports["mongo"], serverSelectionTimeoutMS=500) as client,
    ):
        # That is short for a first connection as well.
        assert wait_until(lambda: is_answered(client))
        status, log = server.end()
    assert (status, "Traceback" in log) == (0, False)


def test_the_advertised_address_is_the_configured_one(tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "data", "--mongo-address", "db.test:4000", doors=("mongo",)) as server,
        RawClient(server.ports["mongo"]) as raw,
    ):
        hello = raw.command({"hello": 1, "$db": "admin"})
        assert (hello["hosts"], hello["me"], hello["primary"]) == (["db.test:4000"], "db.test:4000", "db.test:4000")


def test_clients_with_and_without_tls_share_the_port(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", doors=("mongo",), embedded=True) as server:
        port = server.ports["mongo"]
        with Client("127.0.0.1", port) as client:
            client.shop.users.insert_one({"_id": 1})
        # The certificate is made for the first client that needs it.
        options: dict[str, Any] = {"tls": True, "tlsAllowInvalidCertificates": True, "username": "localhost"}
        with Client("localhost", port, password=WELL_KNOWN_EMULATOR_KEY, replicaSet="globaldb", **options) as client:
            assert client.admin.command("hello")["me"] == f"localhost:{port}"
            assert client.shop.users.find_one() == {"_id": 1}
        certificate = next((tmp_path / "data").rglob("certificate.pem"))
        del options["tlsAllowInvalidCertificates"]
        options["tlsCAFile"] = str(certificate)
        for mechanism, source in (("PLAIN", "$external"), ("SCRAM-SHA-256", "shop")):
            more = {"authMechanism": mechanism, "authSource": source, "directConnection": True, **options}
            with Client("127.0.0.1", port, password=WELL_KNOWN_EMULATOR_KEY, **more) as client:
                assert client.shop.users.find_one() == {"_id": 1}


def test_a_password_is_not_taken_in_the_open(raw: RawClient) -> None:
    payload = b"\x00localhost\x00" + WELL_KNOWN_EMULATOR_KEY.encode()
    answer = raw.command({"saslStart": 1, "mechanism": "PLAIN", "payload": payload, "$db": "$external"})
    assert answer["code"] == 18


def test_messages_that_are_too_large_or_no_messages_end_their_connection_only(server: RunningServer) -> None:
    port = server.ports["mongo"]
    for broken in (
        struct.pack("<iiii", 48_000_001, 1, 0, 2013),
        struct.pack("<iiii", 3, 1, 0, 2013),
        op_msg(PING, flags=1 << 5),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\xff" * 64,
    ):
        with RawClient(port) as raw:
            raw.send(broken)
            assert raw.receive() is None
    with RawClient(port) as raw:
        assert raw.command(PING)["ok"] == 1.0

"""Commands as bare messages, for what drivers do not let a test choose: sessions, numbers, repetitions."""

from __future__ import annotations

import socket
import struct
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import bson
from bson.binary import Binary
from bson.int64 import Int64

from tests.support.server import RunningServer

_HEADER = struct.Struct("<iiii")
_OP_MSG = 2013
_SECONDS_MAX = 60.0


class BareClient:
    """One connection that sends a command and waits for its answer."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def command(self, command: dict[str, Any], database: str = "shop") -> dict[str, Any]:
        body = b"\0\0\0\0\0" + bson.encode({**command, "$db": database})
        self._connection.sendall(_HEADER.pack(_HEADER.size + len(body), 1, 0, _OP_MSG) + body)
        size, _, _, _ = _HEADER.unpack(self._read(_HEADER.size))
        answer: dict[str, Any] = bson.decode(self._read(size - _HEADER.size)[5:])
        return {name: value for name, value in answer.items() if name not in ("$clusterTime", "operationTime")}

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._connection.recv(size - len(data))
            if not part:
                raise ConnectionError("the server has closed the connection")
            data += part
        return data


@contextmanager
def bare_client(server: RunningServer) -> Iterator[BareClient]:
    with socket.create_connection(("127.0.0.1", server.ports["mongo"]), timeout=_SECONDS_MAX) as connection:
        yield BareClient(connection)


def new_session() -> dict[str, Any]:
    return {"id": Binary(uuid.uuid4().bytes, 4)}


def retryable(session: dict[str, Any], number: int) -> dict[str, Any]:
    return {"lsid": session, "txnNumber": Int64(number)}


def in_transaction(session: dict[str, Any], number: int) -> dict[str, Any]:
    return {**retryable(session, number), "autocommit": False}

"""Connections of the real Gremlin clients to the door of a running server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.serializer import (
    GraphBinarySerializersV1,
    GraphSONSerializersV2d0,
    GraphSONSerializersV3d0,
)
from gremlin_python.process.anonymous_traversal import traversal

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.support.server import RunningServer

SERIALIZERS = {"v2": GraphSONSerializersV2d0, "v3": GraphSONSerializersV3d0, "binary": GraphBinarySerializersV1}


class Door:
    """A graph at the door of a server."""

    def __init__(self, server: RunningServer, database: str, graph: str) -> None:
        self.port = server.ports["gremlin"]
        self.user = f"/dbs/{database}/colls/{graph}"

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/gremlin"

    @contextmanager
    def client(
        self,
        *,
        form: str = "v2",
        user: str | None = None,
        password: str = WELL_KNOWN_EMULATOR_KEY,
        url: str | None = None,
        **more: Any,
    ) -> Iterator[Client]:
        connected = Client(
            url or self.url,
            "g",
            username=user or self.user,
            password=password,
            message_serializer=SERIALIZERS[form](),
            pool_size=1,
            **more,
        )
        try:
            yield connected
        finally:
            connected.close()

    @contextmanager
    def traversals(self, *, form: str = "binary") -> Iterator[Any]:
        """Connect as programs do that write traversals in Python, which are sent as bytecode."""
        connection = DriverRemoteConnection(
            self.url,
            "g",
            username=self.user,
            password=WELL_KNOWN_EMULATOR_KEY,
            message_serializer=SERIALIZERS[form](),
            pool_size=1,
        )
        try:
            yield traversal().with_(connection)
        finally:
            connection.close()


def results(client: Client, text: str, bindings: dict[str, Any] | None = None) -> list[Any]:
    found: list[Any] = client.submit(text, bindings or {}).all().result(timeout=60)
    return found

"""The server under test, asked with gremlinpython: by scripts (`eval`) or by bytecode."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gremlin_python.driver import serializer
from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.structure.graph import Edge, Vertex

from conformance.gremlin.notation import AnyOrder, Element, NoSuchValue

SERIALIZERS = {
    "graphbinary": serializer.GraphBinarySerializersV1,
    "graphson3": serializer.GraphSONSerializersV3d0,
}
Traversals = dict[str, list[Callable[..., Any]]]


class Refused(Exception):
    """The server's answer to a traversal was an error."""


class Target:
    """Connections to each graph. `user` and `source` may contain {graph}."""

    def __init__(self, url: str, *, user: str, password: str, source: str, wire: str, seconds_max: float) -> None:
        self._url = url
        self._user = user
        self._password = password
        self._source = source
        self._serializer = SERIALIZERS[wire]
        self._seconds_max = seconds_max
        self._clients: dict[str, Client] = {}
        self._remotes: dict[str, DriverRemoteConnection] = {}

    def run(self, graph: str, text: str, values: dict[str, Any] | None = None) -> list[Any]:
        client = self._clients.get(graph)
        if client is None:
            client = self._clients[graph] = Client(
                self._url, self._source.format(graph=graph), pool_size=1, **self._options(graph)
            )
        bindings = {key: sendable(value) for key, value in (values or {}).items()}
        options = {"evaluationTimeout": int(1000 * self._seconds_max)}
        return self._answer(lambda: client.submit(text, bindings or None, options).all().result())

    def run_bytecode(
        self, graph: str, make: Callable[..., Any], side_effects: dict[str, Any], values: dict[str, Any]
    ) -> list[Any]:
        remote = self._remotes.get(graph)
        if remote is None:
            remote = self._remotes[graph] = DriverRemoteConnection(
                self._url, self._source.format(graph=graph), pool_size=1, **self._options(graph)
            )

        def iterate() -> list[Any]:
            made = make(g=traversal().with_remote(remote), **{key: sendable(value) for key, value in values.items()})
            for key, value in side_effects.items():
                made.bytecode.add_source("withSideEffect", key, sendable(value))
            return list(made.to_list())

        return self._answer(iterate)

    def _options(self, graph: str) -> dict[str, Any]:
        return {
            "username": self._user.format(graph=graph),
            "password": self._password,
            "message_serializer": self._serializer(),
            "max_content_length": 64 * 1024 * 1024,
            # A moment more than the server has, so that its own refusal is heard.
            "read_timeout": self._seconds_max + 2,
        }

    def _answer(self, ask: Callable[[], list[Any]]) -> list[Any]:
        try:
            return ask()
        except GremlinServerError as error:
            raise Refused(getattr(error, "status_message", str(error))) from error
        except TypeError as error:
            if "JSON serializable" in str(error):
                raise NoSuchValue(str(error)) from error
            raise Refused(str(error)) from error
        except TimeoutError as error:
            self.close()
            raise Refused("no answer in time") from error
        except Exception as error:
            # A client-side failure (nothing that can be sent, a lost connection) is a failure of the scenario too.
            self.close()
            raise Refused(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        for item in (*self._clients.values(), *self._remotes.values()):
            try:
                item.close()
            except Exception:
                continue
        self._clients.clear()
        self._remotes.clear()


def sendable(value: Any) -> Any:
    """The client's own types for the elements that a scenario names."""
    match value:
        case Element(kind="v"):
            return Vertex(value.id, value.label or "vertex")
        case Element():
            return Edge(value.id, Vertex("0"), value.label, Vertex("0"))
        case AnyOrder():
            return {sendable(item) for item in value.members}
        case list():
            return [sendable(item) for item in value]
        case dict():
            return {sendable(key): sendable(item) for key, item in value.items()}
    return value


def read_traversals(checkout: Path) -> Traversals:
    """Return the traversals of each scenario in Python, from the file beside the steps of gremlinpython's own tests."""
    path = next(path for path in checkout.rglob("gremlin.py") if path.parent.name in {"feature", "radish"})
    world = types.SimpleNamespace(gremlins={})
    sys.modules["radish"] = types.ModuleType("radish")
    sys.modules["radish"].world = world  # type: ignore[attr-defined]
    spec = importlib.util.spec_from_file_location("tinkerpop_traversals", path)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    traversals: Traversals = world.gremlins
    return traversals

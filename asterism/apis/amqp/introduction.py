"""First steps with the official clients for Service Bus and Event Hubs: addresses, strings and programs that run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from asterism.apis.amqp.connection_text import administration_string, connection_string
from asterism.apis.door_spec import Endpoint, Introduction, Surroundings
from asterism.apis.snippets import SnippetSource, render_snippets

_FOLDER = Path(__file__).with_name("snippets")
_SOURCES = (
    SnippetSource("Python", "pip install azure-servicebus", "python.txt"),
    SnippetSource("Python, asyncio", "pip install azure-servicebus aiohttp", "python-asyncio.txt"),
    SnippetSource("Python, Event Hubs", "pip install azure-eventhub", "python-hubs.txt"),
    SnippetSource("JavaScript", "npm install @azure/service-bus", "javascript.txt"),
)


def introduce(server: Surroundings, namespace: str, key: str, *, is_default: bool) -> Introduction:
    """`is_default`: the namespace needs no name in addresses."""
    place = {
        name: endpoint if is_default else _named(endpoint, namespace) for name, endpoint in server.endpoints.items()
    }
    messaging = connection_string(place["amqp"], key)
    administration = administration_string(place["messaging"], key)
    return Introduction(
        f"Service Bus and Event Hubs, namespace {namespace}",
        endpoints=[
            ("AMQP", f"amqp://{place['amqp'].address}"),
            ("AMQP over TLS", f"amqps://{place['amqps'].address}"),
            ("Administration", f"https://{place['messaging'].address}/"),
        ],
        connection_strings=[("Messages and events", messaging), ("Administration", administration)],
        snippets=render_snippets(
            _SOURCES,
            _FOLDER,
            is_encrypted=False,
            values={"CONNECTION_STRING": messaging, "ADMINISTRATION_STRING": administration},
        ),
    )


def _named(endpoint: Endpoint, namespace: str) -> Endpoint:
    """Return the endpoint with a host name whose first label is the namespace, where this machine can have one."""
    is_here = endpoint.host in ("localhost", "127.0.0.1", "::1")
    return dataclasses.replace(endpoint, host=f"{namespace}.localhost") if is_here else endpoint

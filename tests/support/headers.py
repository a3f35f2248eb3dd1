"""Headers that the official client has no option for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from azure.cosmos import ContainerProxy


@contextmanager
def always_sent(container: ContainerProxy, name: str, value: str) -> Iterator[None]:
    """Send a header with every request of the container's client."""
    sent = container.client_connection.default_headers
    sent[name] = value
    try:
        yield
    finally:
        del sent[name]

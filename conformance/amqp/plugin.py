"""A pytest plugin for the messaging clients' tests: the product's names lead to the server under test."""

from __future__ import annotations

import os
import socket
from typing import Any

import certifi
import pytest

from conformance.amqp.namespace import NoSuchHost, Ports, local_port
from conformance.amqp.suites import distinct_names
from conformance.stand_ins.devtools_testutils import test_proxy
from conformance.transport import replace

__all__ = ["test_proxy"]

_LOCAL = "127.0.0.1"
_ports = Ports.from_environment(os.environ)
_certificate = os.environ["ASTERISM_TESTS_CERTIFICATE"]
_getaddrinfo = socket.getaddrinfo


def _resolve(host: Any, port: Any, *arguments: Any, **named: Any) -> Any:
    name = host.decode() if isinstance(host, bytes) else host or ""
    try:
        found = local_port(name, int(port or 0), _ports)
    except NoSuchHost:
        raise socket.gaierror(socket.EAI_NONAME, f"{name} is not served here") from None
    return _getaddrinfo(*((host, port) if found is None else (_LOCAL, found)), *arguments, **named)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "live_test_only: runs")
    config.addinivalue_line("markers", "playback_test_only: is skipped")
    replace(socket, "getaddrinfo", _resolve)
    # The clients that bring a list of authorities trust the server's own certificate in its place.
    replace(certifi, "where", lambda: _certificate)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item, name in zip(items, distinct_names([item.nodeid for item in items]), strict=True):
        item.user_properties.append(("nodeid", name))
        if item.get_closest_marker("playback_test_only"):
            item.add_marker(pytest.mark.skip(reason="needs a recording"))

"""A pytest plugin for the clients' tests of queues and blobs: accounts of the worker, clean starts."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import pytest

from conformance.storage.accounts import SOFT_DELETE, accounts_of, environment_of

_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
# The modules below read them.
os.environ.update(environment_of(_WORKER))

from azure.core.exceptions import HttpResponseError  # noqa: E402
from azure.storage.blob import BlobLeaseClient, BlobServiceClient, RetentionPolicy  # noqa: E402
from azure.storage.queue import QueueServiceClient  # noqa: E402

from conformance import transport  # noqa: E402
from conformance.stand_ins.devtools_testutils import test_proxy  # noqa: E402

__all__ = ["test_proxy"]

_SUITE = os.environ["ASTERISM_TESTS_SUITE"]
_cleaners: list[Any] = []


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "live_test_only: runs")
    config.addinivalue_line("markers", "playback_test_only: is skipped")
    transport.install()
    transport.install_for_plain_requests()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.user_properties.append(("nodeid", item.nodeid))
        if item.get_closest_marker("playback_test_only"):
            item.add_marker(pytest.mark.skip(reason="needs a recording"))


def pytest_runtest_setup() -> None:
    """Names of containers and queues come from names of tests, and some tests count what they see."""
    if _SUITE == "queue":
        _remove_queues()
    else:
        _remove_containers()


def _services(kind: type[Any], suffix: str) -> list[Any]:
    if not _cleaners:
        for account in accounts_of(_WORKER):
            url = f"https://{account.name}.{suffix}.core.windows.net"
            service = kind(url, credential=account.key, retry_total=0)
            _cleaners.append(service)
            if suffix == "queue":
                break
            if account.role.name == SOFT_DELETE:
                service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=7))
    return _cleaners


def _remove_queues() -> None:
    for service in _services(QueueServiceClient, "queue"):
        for queue in list(service.list_queues()):
            service.delete_queue(queue.name)


def _remove_containers() -> None:
    for service in _services(BlobServiceClient, "blob"):
        # A fault here would fail every test; tests of what is left behind fail on their own.
        with suppress(HttpResponseError):
            for container in list(service.list_containers()):
                _remove_container(service, container.name)


def _remove_container(service: BlobServiceClient, name: str) -> None:
    try:
        service.delete_container(name)
    except HttpResponseError:
        with suppress(HttpResponseError):
            BlobLeaseClient(service.get_container_client(name)).break_lease(0)
            service.delete_container(name)

"""A pytest plugin for the client's tests of tables: their accounts and tokens, shorter waits, clean starts."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient

from conformance import transport
from conformance.credentials import AsyncCredential, Credential
from conformance.stand_ins.devtools_testutils import test_proxy

__all__ = ["test_proxy"]

_STORAGE = (os.environ["ASTERISM_TESTS_TABLES_STORAGE_ACCOUNT_NAME"], "table.core.windows.net")
_COSMOS = (os.environ["ASTERISM_TESTS_TABLES_COSMOS_ACCOUNT_NAME"], "table.cosmos.azure.com")
_KEYS = {
    _STORAGE: os.environ["ASTERISM_TESTS_TABLES_PRIMARY_STORAGE_ACCOUNT_KEY"],
    _COSMOS: os.environ["ASTERISM_TESTS_TABLES_PRIMARY_COSMOS_ACCOUNT_KEY"],
}
# The tests wait for a service that copies itself and takes a while to hear of new policies.
_SLEEP_SECONDS_MAX = 0.1
_services: list[TableServiceClient] = []


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "live_test_only: runs")
    config.addinivalue_line("markers", "playback_test_only: is skipped")
    transport.install()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _wait_less()
    for name, credential in (("_shared.testcase", Credential), ("_shared.asynctestcase", AsyncCredential)):
        if name in sys.modules:
            transport.replace(sys.modules[name], "DefaultAzureCredential", credential)
    for item in items:
        item.user_properties.append(("nodeid", item.nodeid))
        if item.get_closest_marker("playback_test_only"):
            item.add_marker(pytest.mark.skip(reason="needs a recording"))


def _wait_less() -> None:
    """The tests wait for copies and policies of the service to spread."""
    sleep, sleep_async = time.sleep, asyncio.sleep

    async def sleep_less_async(delay: float, result: Any = None) -> Any:
        return await sleep_async(min(delay, _SLEEP_SECONDS_MAX), result)

    transport.replace(time, "sleep", lambda seconds: sleep(min(seconds, _SLEEP_SECONDS_MAX)))
    transport.replace(asyncio, "sleep", sleep_less_async)


def pytest_runtest_setup() -> None:
    """Names of tables come from the names of tests, and some tests count what they see."""
    if not _services:
        for (account, suffix), key in _KEYS.items():
            credential = AzureNamedKeyCredential(account, key)
            _services.append(TableServiceClient(f"https://{account}.{suffix}", credential=credential))
    for service in _services:
        for table in list(service.list_tables()):
            service.delete_table(table.name)

"""Scratch databases of a running server, and what is left of them."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress

from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError

from asterism.cli.client import AdminClient
from tests.support.server import WAIT_SECONDS_MAX

PREFIX = "asterism-scratch-"


def make_scratch_database(admin: AdminClient, *, lease_seconds: int = 600, partitions: int = 3) -> str:
    return str(admin.post("scratch", {"lease_seconds": lease_seconds, "partitions": partitions})["database"])


def scratch_databases(client: CosmosClient) -> list[str]:
    return [found["id"] for found in client.list_databases() if found["id"].startswith(PREFIX)]


def wait_until_gone(client: CosmosClient, *, but: Collection[str] = ()) -> None:
    """Return when no database with the name of a scratch database is left, apart from those that are named."""
    give_up_at = time.monotonic() + WAIT_SECONDS_MAX
    while left := set(scratch_databases(client)).difference(but):
        assert time.monotonic() < give_up_at, left
        time.sleep(0.05)


def wait_for_replay(client: CosmosClient, *, container: str = "key-1", item: str = "new1", key: str = "c1") -> str:
    """Return the name of a scratch database when a replay has created an item in it."""
    give_up_at = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        assert time.monotonic() < give_up_at
        for name in scratch_databases(client):
            with suppress(CosmosHttpResponseError):
                client.get_database_client(name).get_container_client(container).read_item(item, key)
                return name
        time.sleep(0.02)

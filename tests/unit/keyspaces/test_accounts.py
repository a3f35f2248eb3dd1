"""Accounts in the catalog: kept across restarts, known to every process, and held to their quotas."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from asterism.errors import QuotaExceeded, ResourceExists, ResourceNotFound
from asterism.keyspaces.catalog.accounts import AccountQuotas, AccountRecord
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.throughput.budgets import Manual
from asterism.values.identifiers import NodeNumber
from tests.support.stores import open_store
from tests.support.world import World, open_gateway, open_world

DEFINITION = PartitionKeyDefinition(paths=("/pk",))
CONTAINER = {"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}


def account(name: str = "blue", quotas: AccountQuotas | None = None) -> AccountRecord:
    return AccountRecord(name, "cosmos", "a2V5", "a2V5Mg==", "Session", 1, quotas or AccountQuotas())


async def test_accounts_are_there_after_a_restart(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        blue = await world.catalog.accounts.create(account(quotas=AccountQuotas(databases_max=2)))
        await world.catalog.accounts.create(account("gone"))
        await world.catalog.accounts.delete("gone")
        turned = await world.catalog.accounts.update("blue", lambda record: replace(record, primary_key="bmV3"))
        assert turned == replace(blue, primary_key="bmV3")
    async with open_world(tmp_path) as world:
        assert world.catalog.accounts.all() == [turned]


async def test_a_name_is_taken_until_its_account_is_deleted(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        accounts = world.catalog.accounts
        await accounts.create(account())
        with pytest.raises(ResourceExists):
            await accounts.create(account())
        await accounts.delete("blue")
        with pytest.raises(ResourceNotFound):
            await accounts.delete("blue")
        await accounts.create(account())


async def test_the_same_names_exist_in_two_accounts(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        first = await world.store.create_database("test", "d", None)
        await world.catalog.accounts.create(account())
        second = await world.store.create_database("blue", "d", None)
        assert first.rid != second.rid
        assert world.store.list_databases("blue") == [second]


async def test_quotas_refuse_databases_containers_and_throughput(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        quotas = AccountQuotas(databases_max=1, containers_max=2, ru_per_second_max=1000)
        await world.catalog.accounts.create(account(quotas=quotas))
        database = await world.store.create_database("blue", "d", None)
        with pytest.raises(QuotaExceeded) as refused:
            await world.store.create_database("blue", "e", None)
        assert (refused.value.quota, refused.value.limit, refused.value.total) == ("databases_max", 1, 2)
        await world.store.create_container(database, {"id": "a", **CONTAINER}, Manual(400))
        with pytest.raises(QuotaExceeded):
            await world.store.create_container(database, {"id": "b", **CONTAINER}, Manual(700))
        container = await world.store.create_container(database, {"id": "b", **CONTAINER}, Manual(400))
        offer = world.catalog.offer_for(container.record.rid)
        assert offer is not None
        with pytest.raises(QuotaExceeded):
            await world.store.replace_offer(offer, Manual(700))
        await world.store.replace_offer(offer, Manual(600))
        with pytest.raises(QuotaExceeded):
            await world.store.create_container(database, {"id": "c", **CONTAINER}, Manual(400))
        # An account without a record has no quotas.
        await world.store.create_database("test", "d", None)


async def test_nothing_is_created_in_an_account_that_is_closing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.catalog.accounts.create(account())
        await world.store.create_database("blue", "d", None)
        await world.catalog.accounts.close("blue")
        with pytest.raises(ResourceNotFound):
            await world.store.create_database("blue", "e", None)
        await world.store.delete_database("blue", "d")
        await world.catalog.accounts.delete("blue")


def _with_two_processes(directory: Path, test: object) -> None:
    async def main() -> None:
        store = await open_store(directory)
        try:
            async with open_gateway(store, is_first=True) as first, open_gateway(store) as second:
                await test(first, second)  # type: ignore[operator]  # a coroutine function, given by a test below
        finally:
            await store.close()

    asyncio.run(main())


def test_two_processes_cannot_pass_a_quota_together(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        await first.catalog.accounts.create(account(quotas=AccountQuotas(databases_max=3)))
        await second.catalog.follow()
        worlds = (first, second) * 4
        made = await asyncio.gather(
            *(world.store.create_database("blue", f"d{number}", None) for number, world in enumerate(worlds)),
            return_exceptions=True,
        )
        refused = [outcome for outcome in made if isinstance(outcome, QuotaExceeded)]
        assert len(made) - len(refused) == 3
        assert len(refused) == 5

    _with_two_processes(tmp_path, test)


@asynccontextmanager
async def _two_catalogs(directory: Path) -> AsyncIterator[tuple[Catalog, Catalog]]:
    """Open two catalogs on one store, neither of which follows the other by itself."""
    store = await open_store(directory)
    first, second = (Catalog(store, random_bytes=os.urandom, monotonic=lambda: 0.0, is_shared=True) for _ in range(2))
    await first.open()
    await second.open()
    yield first, second
    await store.close()


def _change_before_the_next_read(
    catalog: Catalog, change: Callable[[], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make a change between a catalog's read of the log and its read of the records that the log names."""
    read = catalog.store.read

    async def read_after_the_change(keys: list[bytes]) -> list[bytes | None]:
        monkeypatch.setattr(catalog.store, "read", read)
        await change()
        return await read(keys)

    monkeypatch.setattr(catalog.store, "read", read_after_the_change)


async def test_a_process_does_not_pass_a_quota_on_half_of_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _two_catalogs(tmp_path) as (first, second):
        await first.accounts.create(account(quotas=AccountQuotas(databases_max=2)))
        await second.follow()
        await first.create_database("blue", "d0", None, now=1)
        # The log names d0 and the account; the account's record is read when it already counts d1.
        _change_before_the_next_read(second, lambda: first.create_database("blue", "d1", None, now=1), monkeypatch)
        await second.follow()
        with pytest.raises(QuotaExceeded):
            await second.create_database("blue", "d2", None, now=1)


async def test_a_process_deletes_a_database_with_every_container_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _two_catalogs(tmp_path) as (first, second):
        database = await first.create_database("blue", "d", None, now=1)
        await second.follow()
        create = partial(first.create_keyspace, nodes=[NodeNumber(0)], throughput=None, now=1)
        await create(database, "a", DEFINITION, {})
        # The log names the database and its first container; the database is read when it has two.
        _change_before_the_next_read(second, lambda: create(database, "b", DEFINITION, {}), monkeypatch)
        await second.follow()
        await second.delete_database(database)
        await first.follow()
        assert first.keyspaces == {}


def test_a_process_hears_of_accounts_that_another_has_changed(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        heard: list[str] = []
        second.catalog.accounts.listeners.append(heard.append)
        blue = await first.catalog.accounts.create(account())
        await second.catalog.follow()
        assert second.catalog.accounts.find("blue") == blue
        await first.catalog.accounts.delete("blue")
        await second.catalog.follow()
        assert second.catalog.accounts.find("blue") is None
        assert heard == ["blue", "blue"]

    _with_two_processes(tmp_path, test)

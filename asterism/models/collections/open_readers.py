"""The readers of changes that are open in this process, and the keyspaces that they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from asterism.models.collections.catalog_log import LOG_DATABASE
from asterism.models.collections.change_scope import ChangeScope
from asterism.models.collections.changes import ChangeSource

if TYPE_CHECKING:
    from asterism.models.collections.store import CollectionStore


class OpenReader(Protocol):
    """A reader of changes, as the store knows it."""

    scope: ChangeScope

    async def drain(self) -> None:
        """Read everything that is there now: it is about to be removed."""


class OpenReaders:
    def __init__(self) -> None:
        self._readers: set[OpenReader] = set()

    def add(self, reader: OpenReader) -> None:
        self._readers.add(reader)

    def discard(self, reader: OpenReader) -> None:
        self._readers.discard(reader)

    async def drain(self, account: str, database: str) -> None:
        """Let readers read what is about to be removed from a database."""
        for reader in list(self._readers):
            if reader.scope.account == account and reader.scope.database in (None, database):
                await reader.drain()


def change_sources(
    store: CollectionStore, account: str, database: str, collection: str | None = None
) -> list[ChangeSource]:
    """Return the keyspaces with the changes of a database, or of a collection of it, as the catalog is now."""
    found = store.database_record(account, database)
    home = None if found is None else store.home_of(found)
    if found is None or home is None:
        return []
    sharded = home.settings.sharded
    keys = list(sharded.values()) if collection is None else [sharded[collection]] if collection in sharded else []
    # Of collections with another shard key since a moment ago.
    keys += [key for name, key in home.left_behind if collection in (None, name)]
    keyspaces = [store.catalog.find_keyspace(found.rid, key) for key in keys]
    return [ChangeSource(keyspace, database) for keyspace in (home.keyspace, *keyspaces) if keyspace is not None]


def scope_sources(store: CollectionStore, scope: ChangeScope) -> list[ChangeSource]:
    """Return the keyspaces whose logs can have changes of a scope, as the catalog is now."""
    log = store.catalog_log.keyspace(scope.account)
    sources = [] if log is None else [ChangeSource(log, "")]
    if scope.database is not None:
        return sources + change_sources(store, scope.account, scope.database, scope.collection)
    for name in store.database_names(scope.account):
        if name != LOG_DATABASE and not scope.is_reserved(name):
            sources += change_sources(store, scope.account, name)
    return sources

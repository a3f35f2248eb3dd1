"""The names of MongoDB's databases beside those of containers, for doors that show both.

A database of collections has its own name unless the account has a database of containers of that name, which then
comes first: `mongo:NAME` is always the collections'.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.models.collections.records import HOME_KEYSPACE
from asterism.models.collections.store import ACCOUNT_PREFIX

NAME_PREFIX: Final = "mongo:"


class SharedName(NamedTuple):
    """A database of collections, and the name under which it was asked for or is shown."""

    shown: str
    record: DatabaseRecord


def find_database(catalog: Catalog, account: str, name: str) -> SharedName | None:
    """Return the database of collections of a name; None if it does not exist, or if a database of
    containers has the name."""
    if catalog.find_database(account, name) is not None:
        return None
    owner = ACCOUNT_PREFIX + account
    record = catalog.find_database(owner, name)
    if record is None and name.startswith(NAME_PREFIX):
        record = catalog.find_database(owner, name.removeprefix(NAME_PREFIX))
    return None if record is None or not _has_home(catalog, record) else SharedName(name, record)


def shown_name(catalog: Catalog, account: str, record: DatabaseRecord) -> str:
    """Return the shortest name that finds a database of collections."""
    is_free = catalog.find_database(account, record.name) is None
    return record.name if is_free else NAME_PREFIX + record.name


def list_databases(catalog: Catalog, account: str) -> Iterator[SharedName]:
    """Yield the databases of collections of an account, in no particular order."""
    owner = ACCOUNT_PREFIX + account
    for record in catalog.databases.values():
        if record.account == owner and _has_home(catalog, record):
            yield SharedName(shown_name(catalog, account, record), record)


def _has_home(catalog: Catalog, record: DatabaseRecord) -> bool:
    """Return whether a database has, or had, a collection: before its first it has nothing to show."""
    return catalog.find_keyspace(record.rid, HOME_KEYSPACE) is not None

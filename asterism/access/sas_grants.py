"""Grants of shared access signatures, and the stored policies that a signature may refer to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from asterism.values.ordered_text import ordered_text

TableKey = tuple[str, str]


class ResourceType(Enum):
    SERVICE = "s"
    CONTAINER = "c"
    OBJECT = "o"


@dataclass(frozen=True, slots=True)
class Policy:
    """Policy stored with a table, queue or container, for signatures that refer to it by name."""

    start: str = ""
    expiry: str = ""
    permissions: str = ""


@dataclass(frozen=True, slots=True)
class SasGrant:
    """Permission of a valid signature."""

    permissions: str
    # The kinds of resources of an account's signature; None for a service's.
    resource_types: str | None
    # The table's name in lower case; None for an account's signature, and for other services.
    table: str | None = None
    # The range of permitted keys of a table, ends included; None is unbounded.
    first: tuple[str, str | None] | None = None
    last: tuple[str, str | None] | None = None
    # The kind of resource: "q" of queues, "c", "b", "bs", "bv" or "d" of blobs; empty for a table's or an account's.
    # The signature is over its name, so the request is about that resource, or about a blob in it.
    resource: str = ""
    # Of "d": the directory in the container, without a slash at its end.
    directory: str = ""
    # Headers that answers carry in place of those of the blob.
    response_headers: tuple[tuple[str, str], ...] = ()
    encryption_scope: str = ""
    # The user whose bearer token the request must carry as well; empty without.
    delegated_object_id: str = ""
    is_delegated: bool = False

    @property
    def is_of_account(self) -> bool:
        return self.resource_types is not None

    def has(self, permissions: str) -> bool:
        """Return True if all of the permissions are granted; alternatives are separated: `c|w`."""
        return any(all(letter in self.permissions for letter in needed) for needed in permissions.split("|"))

    def allows(self, permissions: str, resource_type: ResourceType, table: str | None) -> bool:
        """Return True if all of the permissions are granted, for this kind of resource and this table."""
        if self.table is not None and (table is None or not self.is_about(table)):
            return False
        if self.resource_types is not None and resource_type.value not in self.resource_types:
            return False
        return all(permission in self.permissions for permission in permissions)

    def is_about(self, table: str) -> bool:
        return self.table is None or table.lower() == self.table

    def covers(self, key: TableKey) -> bool:
        return self.begins_before(key) and self.ends_after(key)

    def begins_before(self, key: TableKey) -> bool:
        if self.first is None:
            return True
        partition_key, row_key = self.first
        return _order(key) >= _order((partition_key, row_key or ""))

    def ends_after(self, key: TableKey) -> bool:
        if self.last is None:
            return True
        partition_key, row_key = self.last
        if row_key is None:
            return ordered_text(key[0]) <= ordered_text(partition_key)
        return _order(key) <= _order((partition_key, row_key))

    @property
    def has_range(self) -> bool:
        return self.first is not None or self.last is not None


def _order(key: TableKey) -> tuple[bytes, bytes]:
    """Return the sort key of an entity: tables sort by UTF-16 code units, unlike Python's strings."""
    return ordered_text(key[0]), ordered_text(key[1])

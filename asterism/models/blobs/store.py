"""The containers of all accounts, as keyspaces of the catalog.

A container's keyspace has its name. While a deleted container of that name can still be restored, a new one takes the
name with a number, which no client sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

from asterism.errors import ResourceExists, ResourceNotFound, StorageUnavailable
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog, Decision
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions, check_write
from asterism.models.blobs.container import Container
from asterism.models.blobs.copies import Copies
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.finding import has_blobs
from asterism.models.blobs.rules import NO_RULES, AccountRules
from asterism.models.blobs.space import BlobServices, BlobSpace
from asterism.models.blobs.state import CONTAINER_MARK, ContainerState
from asterism.partitioning.partition_key import PartitionKeyDefinition, PartitionKeyKind
from asterism.storage.contract import Expectation, StorageRefusal
from asterism.values.ticks import TICKS_PER_SECOND

# Containers lie in accounts that no other door lists: no name of an account contains `:`.
ACCOUNT_PREFIX: Final = "blob:"
_DATABASE: Final = "containers"
KEY: Final = PartitionKeyDefinition(paths=("/name",), kind=PartitionKeyKind.RANGE)

# Deleted containers of one name that can be restored; the oldest gives way to one more.
_SAME_NAME_MAX: Final = 32
_KNOWN_CONTAINERS_MAX: Final = 10_000
# A container that was being deleted when the process ended can be restored for a day.
_LEFT_BY_CRASH_TICKS: Final = 24 * 3600 * TICKS_PER_SECOND

# Decides on a change of a container's state: gets the state and the moment, returns the state after it or raises.
StateChange = Callable[[ContainerState, int], ContainerState]


class ContainerPlace(NamedTuple):
    """The place of a container in a listing. Deleted containers share their names, and follow the one that lives."""

    name: str = ""
    deleted_version: str = ""


FIRST_PLACE: Final = ContainerPlace()


class BlobStore:
    """Creates, finds, lists and deletes containers, and keeps small documents about accounts. One per process."""

    def __init__(
        self, catalog: Catalog, admission: Admission, documents: SmallDocuments, services: BlobServices
    ) -> None:
        self.catalog = catalog
        self.services = services
        self._admission = admission
        self._documents = documents
        self.copies = Copies(self.find_container)
        # By account and name, until the keyspaces or the containers are deleted.
        self._known: dict[tuple[str, str], Container] = {}

    # --- other processes --------------------------------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        return self.catalog.store.is_shared

    @property
    def known_lsn(self) -> int:
        return self.catalog.store.known_lsn

    async def catch_up(self) -> int:
        try:
            await self.catalog.follow()
        except StorageRefusal as refusal:
            raise StorageUnavailable(reason=str(refusal)) from refusal
        return self.catalog.store.known_lsn

    # --- finding ----------------------------------------------------------------------------------------------------

    def find_container(self, account: str, name: str) -> Container | None:
        """Return a container that is not deleted."""
        known = self._known.get((account, name))
        if known is not None and not known.keyspace.deleted and not known.state.is_deleted:
            return known
        for container in self._of_name(account, name):
            if not container.state.is_deleted:
                if len(self._known) >= _KNOWN_CONTAINERS_MAX:
                    self._known.clear()
                self._known[account, name] = container
                return container
        return None

    def _of_name(self, account: str, name: str) -> list[Container]:
        """Return the containers of a name: at most one of them is not deleted."""
        database = self._database(account)
        if database is None:
            return []
        found = (self.catalog.find_keyspace(database.rid, identity) for identity in _identities(name))
        return [self._container(account, keyspace) for keyspace in found if keyspace is not None]

    def list_containers(
        self,
        account: str,
        *,
        prefix: str = "",
        start: ContainerPlace = FIRST_PLACE,
        limit: int = 5_000,
        deleted: bool = False,
        without: Set[str] = frozenset(),
    ) -> list[Container]:
        """List containers in the order of their names, from `start` on, but those that `without` names; with `deleted`,
        deleted ones too, which follow those of the same name."""
        database = self._database(account)
        if database is None:
            return []
        named = [(_name_of(keyspace), keyspace) for keyspace in self.catalog.keyspaces_of(database.rid)]
        wanted = [
            self._container(account, keyspace)
            for name, keyspace in named
            if name.startswith(prefix) and name not in without
        ]
        shown = [
            container
            for container in wanted
            if (deleted or not container.state.is_deleted) and place_of(container) >= start
        ]
        shown.sort(key=place_of)
        return shown[:limit]

    def containers(self) -> list[Container]:
        """List the containers of all accounts, deleted ones too."""
        found: list[Container] = []
        for database in self.catalog.databases.values():
            if database.account.startswith(ACCOUNT_PREFIX):
                account = database.account.removeprefix(ACCOUNT_PREFIX)
                found += [self._container(account, keyspace) for keyspace in self.catalog.keyspaces_of(database.rid)]
        return sorted(found, key=lambda container: (container.account, container.name))

    # --- creating and deleting --------------------------------------------------------------------------------------

    async def create_container(
        self,
        account: str,
        name: str,
        *,
        metadata: Mapping[str, str] | None = None,
        public_access: str | None = None,
        default_encryption_scope: str | None = None,
        denies_scope_override: bool = False,
        has_version_immutability: bool = False,
    ) -> Container:
        """Create a container; BlobRefused (CONTAINER_EXISTS)."""
        database = await self._database_to_fill(account)
        if self.find_container(account, name) is not None:
            raise BlobRefused(BlobFailure.CONTAINER_EXISTS)
        now = self.services.next_ticks()
        state = ContainerState(
            created_at=now,
            modified_at=now,
            etag=now,
            metadata=dict(metadata or {}),
            public_access=public_access,
            default_encryption_scope=default_encryption_scope,
            denies_scope_override=denies_scope_override,
            has_version_immutability=has_version_immutability,
        )
        identity = await self._free_identity(account, database, name)
        try:
            keyspace = await self.catalog.create_keyspace(
                database,
                identity,
                KEY,
                state.to_settings(name),
                nodes=await self.services.reshaper.placer.for_new_keyspace(database.name, identity, count=1),
                throughput=None,
                now=self._now(),
                decided_on=self._no_other(account, name, identity),
            )
        except ResourceExists:
            raise BlobRefused(BlobFailure.CONTAINER_EXISTS) from None
        self._admission.refresh(keyspace)
        return self._container(account, keyspace)

    async def _free_identity(self, account: str, database: DatabaseRecord, name: str) -> str:
        for identity in _identities(name):
            if self.catalog.find_keyspace(database.rid, identity) is None:
                return identity
        oldest = min(self._of_name(account, name), key=lambda container: container.state.deleted_at or 0)
        # Another call or upkeep may have removed or restored it meanwhile: the creation finds that out.
        with suppress(BlobRefused):
            await self._remove(oldest, _check_deleted)
        return oldest.keyspace.record.name

    def _no_other(self, account: str, name: str, identity: str) -> Decision:
        """Decide that no container but that in the keyspace `identity` has the name. Of a creation and a restoration at
        once, in this process or in two, one finds the other."""

        def decide() -> list[Expectation]:
            found = [other for other in self._of_name(account, name) if other.keyspace.record.name != identity]
            if not all(other.state.is_deleted for other in found):
                raise BlobRefused(BlobFailure.CONTAINER_EXISTS)
            database = self._database(account)
            names = [other for other in _identities(name) if other != identity]
            return [] if database is None else self.catalog.expect_names(database.rid, names)

        return decide

    async def delete_container(
        self, account: str, name: str, conditions: Conditions = NO_CONDITIONS, rules: AccountRules = NO_RULES
    ) -> None:
        """Delete a container; with container retention it can be restored for that time. CONTAINER_NOT_FOUND; one whose
        blobs can have policies and holds must be empty (IMMUTABLE_CONTAINER_NOT_EMPTY)."""
        container = self.find_container(account, name)
        if container is None:
            raise BlobRefused(BlobFailure.CONTAINER_NOT_FOUND)

        def check(state: ContainerState) -> None:
            # Another request may have deleted it meanwhile.
            if state.is_deleted:
                raise BlobRefused(BlobFailure.CONTAINER_NOT_FOUND)
            check_write(conditions, state, self.services.next_ticks())

        def delete(state: ContainerState, now: int) -> ContainerState:
            check(state)
            # Without retention, it is removed as soon as it was found to be empty: a crash between leaves it to upkeep.
            until = rules.container_retained_until(now) or now + _LEFT_BY_CRASH_TICKS
            return replace(state, deleted_at=now, retained_until=until, deleted_version=f"{now:016X}", lease=None)

        is_kept = rules.container_retention_days is not None
        if container.state.has_version_immutability:
            await _check_empty(container)
            await self.change_container(container, delete)
            await self._restore_unless_empty(container)
            if not is_kept:
                await self._remove(container, _check_deleted)
        elif is_kept:
            await self.change_container(container, delete)
        else:
            await self._remove(container, check)

    async def _restore_unless_empty(self, container: Container) -> None:
        """Look for blobs that were written before requests found the container deleted: they may be held."""
        await container.keyspace.earlier_work_done()
        try:
            await _check_empty(container)
        except BlobRefused:
            await self.change_container(container, _restored)
            raise

    async def remove_due(self, container: Container, now: int) -> None:
        """Remove a deleted container for good, unless it was restored or removed meanwhile."""

        def check(state: ContainerState) -> None:
            _check_deleted(state)
            if state.retained_until is None or state.retained_until > now:
                raise BlobRefused(BlobFailure.CONTAINER_EXISTS)

        with suppress(BlobRefused):
            await self._remove(container, check)

    async def _remove(self, container: Container, check: Callable[[ContainerState], None]) -> None:
        """Remove a container with all that it has, for good, if `check` lets its state pass at that moment.
        CONTAINER_NOT_FOUND."""
        try:
            await self.catalog.delete_keyspace(
                container.keyspace, lambda settings: check(ContainerState.from_settings(settings))
            )
        except ResourceNotFound:
            raise BlobRefused(BlobFailure.CONTAINER_NOT_FOUND) from None
        self.services.reshaper.collect_garbage()

    async def restore_container(
        self, account: str, deleted_name: str, deleted_version: str, new_name: str
    ) -> Container:
        """Restore a deleted container; CONTAINER_EXISTS if another has the name, CONTAINER_NOT_FOUND."""
        if self.find_container(account, new_name) is not None:
            raise BlobRefused(BlobFailure.CONTAINER_EXISTS)
        for container in self._of_name(account, deleted_name):
            if new_name == deleted_name and container.state.deleted_version == deleted_version:
                identity = container.keyspace.record.name
                await self.change_container(
                    container, _restored, decided_on=self._no_other(account, new_name, identity)
                )
                return container
        raise BlobRefused(BlobFailure.CONTAINER_NOT_FOUND)

    # --- changing ---------------------------------------------------------------------------------------------------

    async def change_container(
        self,
        container: Container,
        change: StateChange,
        conditions: Conditions = NO_CONDITIONS,
        *,
        needs_lease: bool = False,
        decided_on: Decision | None = None,
    ) -> ContainerState:
        """Change the state as `change` decides on the state in force; conditions are checked in the same decision, and
        with `needs_lease` the lease. Return the state after it."""
        name = container.name

        def changed(settings: Mapping[str, Any]) -> Mapping[str, Any]:
            state = ContainerState.from_settings(settings)
            now = self.services.next_ticks()
            check_write(conditions, state, now, needs_lease=needs_lease or conditions.lease_id is not None)
            return change(state, now).to_settings(name)

        try:
            await self.catalog.change_keyspace_settings(
                container.keyspace, changed, now=self._now(), decided_on=decided_on
            )
        except ResourceNotFound:
            raise BlobRefused(BlobFailure.CONTAINER_NOT_FOUND) from None
        return container.state

    # --- documents --------------------------------------------------------------------------------------------------

    async def get_account_document(self, account: str, name: str) -> bytes | None:
        """Return a small document about an account, such as its service properties."""
        database = self._database(account)
        return None if database is None else await self._documents.get(database.rid, name)

    async def replace_account_document(self, account: str, name: str, content: bytes, *, before: bytes | None) -> bool:
        """Store a small document in place of `before`; it is durable on return. False if another was stored since."""
        database = await self._database_to_fill(account)
        return await self._documents.replace(database.rid, name, content, before=before)

    # --- databases --------------------------------------------------------------------------------------------------

    def _database(self, account: str) -> DatabaseRecord | None:
        return self.catalog.find_database(ACCOUNT_PREFIX + account, _DATABASE)

    async def _database_to_fill(self, account: str) -> DatabaseRecord:
        found = self._database(account)
        while found is None:
            try:
                found = await self.catalog.create_database(ACCOUNT_PREFIX + account, _DATABASE, None, now=self._now())
            except ResourceExists:
                # Two first requests of an account came at once.
                found = self._database(account)
        return found

    def _container(self, account: str, keyspace: Keyspace) -> Container:
        return Container(BlobSpace(account, _name_of(keyspace), keyspace, self.services))

    def _now(self) -> int:
        return self.services.clock.stored_seconds()


def _identities(name: str) -> list[str]:
    return [name, *(f"{name}:{number}" for number in range(2, _SAME_NAME_MAX + 1))]


def place_of(container: Container) -> ContainerPlace:
    return ContainerPlace(container.name, container.state.deleted_version or "")


def _name_of(keyspace: Keyspace) -> str:
    return cast("str", keyspace.record.settings[CONTAINER_MARK])


async def _check_empty(container: Container) -> None:
    if await has_blobs(container.space):
        raise BlobRefused(BlobFailure.IMMUTABLE_CONTAINER_NOT_EMPTY)


def _check_deleted(state: ContainerState) -> None:
    if not state.is_deleted:
        raise BlobRefused(BlobFailure.CONTAINER_EXISTS)


def _restored(state: ContainerState, now: int) -> ContainerState:
    _check_deleted(state)
    if state.retained_until is not None and state.retained_until <= now:
        raise BlobRefused(BlobFailure.CONTAINER_NOT_FOUND)
    return replace(state.touched(now), deleted_at=None, retained_until=None, deleted_version=None)

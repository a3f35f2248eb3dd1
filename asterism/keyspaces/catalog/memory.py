"""The catalog in memory: databases, keyspaces and offers by resource id and by name, and how memory takes over the
changes of other processes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from asterism.errors import StoredDamage
from asterism.keyspaces.catalog.accounts import account_of
from asterism.keyspaces.catalog.records import DatabaseRecord, KeyspaceRecord, OfferRecord
from asterism.keyspaces.catalog.store import DATABASE, KEYSPACE, KEYSPACE_NAME, OFFER, name_key
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.storage.contract import LSN_BYTES, Expectation


@contextmanager
def catalog_key(key: bytes) -> Iterator[None]:
    """Report a record that cannot be decoded as damage of this key."""
    try:
        yield
    except (StoredDamage, KeyError, TypeError, ValueError, struct.error) as error:
        raise StoredDamage(what="catalog record", key=key.hex()) from error


@dataclass(slots=True)
class CatalogChanges:
    """Changes of another process, for callers that keep data derived from the catalog."""

    keyspaces: list[Keyspace] = field(default_factory=list)
    # Resource ids of deleted databases, and of databases and keyspaces whose offer was replaced or removed.
    databases_gone: list[bytes] = field(default_factory=list)
    offers: set[bytes] = field(default_factory=set)
    # True if a record of background work changed, and if the leadership did.
    work: bool = False
    leader: bool = False


class CatalogMemory:
    """The catalog as this process knows it. A read is a dictionary look-up."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.databases: dict[bytes, DatabaseRecord] = {}
        self.keyspaces: dict[bytes, Keyspace] = {}
        self.offers: dict[bytes, OfferRecord] = {}
        # The versions of databases and offers, by their keys, which a change of them must still find there.
        self._versions: dict[bytes, bytes] = {}
        self._database_rids: dict[tuple[str, str], bytes] = {}
        self._keyspace_rids: dict[tuple[bytes, str], bytes] = {}
        self._offer_rids: dict[bytes, bytes] = {}

    # --- looking up -------------------------------------------------------------------------------------------------

    def find_database(self, account: str, name: str) -> DatabaseRecord | None:
        rid = self._database_rids.get((account, name))
        return None if rid is None else self.databases[rid]

    def databases_of(self, account: str) -> list[DatabaseRecord]:
        """Return the databases of an account, of all models."""
        return [record for record in self.databases.values() if account_of(record.account) == account]

    def find_keyspace(self, database_rid: bytes, name: str) -> Keyspace | None:
        rid = self._keyspace_rids.get((database_rid, name))
        return None if rid is None else self.keyspaces[rid]

    def keyspaces_of(self, database_rid: bytes) -> list[Keyspace]:
        return [keyspace for rid, keyspace in self.keyspaces.items() if rid.startswith(database_rid)]

    def expect_names(self, database_rid: bytes, names: Iterable[str]) -> list[Expectation]:
        """Return what a change expects that was decided on the keyspaces of these names, as memory has them: their
        records, and that there are no others."""
        expectations: list[Expectation] = []
        for name in names:
            keyspace = self.find_keyspace(database_rid, name)
            if keyspace is None:
                expectations.append(Expectation(name_key(KEYSPACE_NAME + database_rid, name), None))
            else:
                expectations.append(Expectation(KEYSPACE + keyspace.record.rid, keyspace.version))
        return expectations

    def offer_for(self, resource_rid: bytes) -> OfferRecord | None:
        rid = self._offer_rids.get(resource_rid)
        return None if rid is None else self.offers[rid]

    def governing_offer(self, keyspace_rid: bytes) -> OfferRecord | None:
        """Return the keyspace's own throughput, or else the one it shares with its database."""
        return self.offer_for(keyspace_rid) or self.offer_for(keyspace_rid[:4])

    def governed_by(self, resource_rid: bytes) -> list[Keyspace]:
        """Return the keyspaces that use the throughput of a database or a keyspace."""
        if len(resource_rid) == 4:
            candidates = self.keyspaces_of(resource_rid)
            return [keyspace for keyspace in candidates if self.offer_for(keyspace.record.rid) is None]
        keyspace = self.keyspaces.get(resource_rid)
        return [] if keyspace is None else [keyspace]

    # --- remembering ------------------------------------------------------------------------------------------------

    def _remember_database(self, record: DatabaseRecord, version: bytes) -> None:
        known = self.databases.get(record.rid)
        self._versions[DATABASE + record.rid] = version
        if known != record:
            self.databases[record.rid] = record
            self._database_rids[record.account, record.name] = record.rid

    def _remember_keyspace(self, keyspace: Keyspace) -> None:
        record = keyspace.record
        self.keyspaces[record.rid] = keyspace
        self._keyspace_rids[record.database_rid, record.name] = record.rid

    def _remember_offer(self, record: OfferRecord, version: bytes) -> None:
        self._versions[OFFER + record.rid] = version
        if self.offers.get(record.rid) != record:
            self.offers[record.rid] = record
            self._offer_rids[record.resource_rid] = record.rid

    def _forget_database(self, rid: bytes) -> None:
        record = self.databases.pop(rid)
        self._versions.pop(DATABASE + rid, None)
        if self._database_rids.get((record.account, record.name)) == rid:
            del self._database_rids[record.account, record.name]

    def _forget_keyspace(self, keyspace: Keyspace) -> None:
        record = keyspace.record
        del self.keyspaces[record.rid]
        if self._keyspace_rids.get((record.database_rid, record.name)) == record.rid:
            del self._keyspace_rids[record.database_rid, record.name]
        keyspace.mark_deleted()

    def _forget_offer(self, resource_rid: bytes) -> None:
        rid = self._offer_rids.pop(resource_rid, None)
        if rid is not None:
            del self.offers[rid]
            self._versions.pop(OFFER + rid, None)

    # --- changes of other processes ------------------------------------------------------------------------------

    def _known_keys(self) -> set[bytes]:
        keys = {DATABASE + rid for rid in self.databases} | {KEYSPACE + rid for rid in self.keyspaces}
        return keys | {OFFER + rid for rid in self.offers}

    def _take_over_records(self, entries: Mapping[bytes, bytes | None], changes: CatalogChanges) -> None:
        """Take over removals first: a new record may have the name of an old one."""
        for key, value in entries.items():
            if value is None:
                self._take_over_removal(key, changes)
        for key, value in entries.items():
            if value is not None:
                with catalog_key(key):
                    self._take_over_record(key, value, changes)

    def _take_over_removal(self, key: bytes, changes: CatalogChanges) -> None:
        kind, rid = key[:1], key[1:]
        if kind == DATABASE and rid in self.databases:
            self._forget_database(rid)
            changes.databases_gone.append(rid)
        elif kind == KEYSPACE and rid in self.keyspaces:
            self._forget_keyspace(self.keyspaces[rid])
        elif kind == OFFER and rid in self.offers:
            resource_rid = self.offers[rid].resource_rid
            self._forget_offer(resource_rid)
            changes.offers.add(resource_rid)

    def _take_over_record(self, key: bytes, value: bytes, changes: CatalogChanges) -> None:
        kind, version, stored = key[:1], value[:LSN_BYTES], value[LSN_BYTES:]
        if kind == DATABASE:
            self._remember_database(DatabaseRecord.from_bytes(stored), version)
        elif kind == KEYSPACE:
            self._take_over_keyspace(KeyspaceRecord.from_bytes(stored), version, changes)
        elif kind == OFFER and self._versions.get(key) != version:
            offer = OfferRecord.from_bytes(stored)
            self._remember_offer(offer, version)
            changes.offers.add(offer.resource_rid)

    def _take_over_keyspace(self, record: KeyspaceRecord, version: bytes, changes: CatalogChanges) -> None:
        keyspace = self.keyspaces.get(record.rid)
        if keyspace is None:
            keyspace = Keyspace(record, version, self._monotonic)
            self._remember_keyspace(keyspace)
        elif keyspace.version != version:
            # Every write compares the settings by identity, so equal ones stay the same object.
            known = keyspace.record
            settings = known.settings if _same_terms(known, record) else record.settings
            due = known.catching_up if known.catching_up == record.catching_up else record.catching_up
            keyspace.replace_record(replace(record, settings=settings, catching_up=due), version)
        else:
            return
        changes.keyspaces.append(keyspace)


def _same_terms(known: KeyspaceRecord, record: KeyspaceRecord) -> bool:
    """Return whether requests planned under one of the records hold under the other."""
    return (known.settings, known.writes_refused, known.forwarding) == (
        record.settings,
        record.writes_refused,
        record.forwarding,
    )

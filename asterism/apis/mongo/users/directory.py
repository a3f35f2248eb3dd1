"""The users and roles of an account: one document in the catalog, which every process of the server reads.

Passwords are not in it, only the keys that check them. A change made in another process is seen with the next login,
and by connections that are logged in after a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from asterism.apis.mongo.users.rights import Rights, Role, rights_of, role_id, roles_in, shown_roles
from asterism.errors import ResourceExists
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.store import ACCOUNT_PREFIX, CollectionStore
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import Document

# The database whose record owns the document.
_HOME: Final = "admin"
_NAME: Final = "mongo users"
_VERSION_BYTES: Final = 8
_AGE_SECONDS_MAX: Final = 1.0
# Some ten thousand users; every login reads all of them.
_BYTES_MAX: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Directory:
    """Users and roles by id (`database.name`), as documents in the form of MongoDB's own."""

    users: Mapping[str, Document] = field(default_factory=dict)
    roles: Mapping[str, Document] = field(default_factory=dict)
    # The first bytes of the stored document; None before the first is stored.
    version: bytes | None = None
    _rights: dict[str, Rights] = field(default_factory=dict)

    def rights(self, user_id: str) -> Rights | None:
        """Return the rights of a user; None if there is no such user."""
        user = self.users.get(user_id)
        if user is None:
            return None
        known = self._rights.get(user_id)
        if known is None:
            known = self._rights[user_id] = rights_of(roles_in(user), self.roles)
        return known

    def with_user(self, user: Document) -> Directory:
        return replace(self, users={**self.users, user["_id"]: user}, _rights={})

    def with_role(self, role: Document) -> Directory:
        return replace(self, roles={**self.roles, role["_id"]: role}, _rights={})

    def without_user(self, user_id: str) -> Directory:
        return replace(self, users={key: user for key, user in self.users.items() if key != user_id}, _rights={})

    def without_roles(self, gone: Sequence[Role]) -> Directory:
        """Drop roles, also from the users and roles that have them."""

        def left(record: Document) -> Document:
            return {**record, "roles": shown_roles(role for role in roles_in(record) if role not in gone)}

        names = {role_id(*role) for role in gone}
        roles = {key: left(role) for key, role in self.roles.items() if key not in names}
        return replace(self, users={key: left(user) for key, user in self.users.items()}, roles=roles, _rights={})


Change = Callable[[Directory], Directory]


class UserDirectory:
    """Reads and changes the directories of all accounts. One per process."""

    def __init__(
        self, store: CollectionStore, monotonic_seconds: Callable[[], float], random_bytes: Callable[[int], bytes]
    ) -> None:
        self._store = store
        self._monotonic_seconds = monotonic_seconds
        self._random_bytes = random_bytes
        self._known: dict[str, tuple[float, Directory]] = {}

    def recent(self, account: str) -> Directory | None:
        """Return a directory if it was read within the last second, else None."""
        known = self._known.get(account)
        if known is None or self._monotonic_seconds() - known[0] > _AGE_SECONDS_MAX:
            return None
        return known[1]

    async def current(self, account: str) -> Directory:
        return self.recent(account) or await self.load(account)

    async def load(self, account: str) -> Directory:
        """Read a directory from the catalog."""
        store = self._store
        home = store.database_record(account, _HOME)
        if home is None:
            # Another process may have created it.
            await store.catch_up()
            home = store.database_record(account, _HOME)
        stored = None if home is None else await store.small_documents.get(home.rid, _NAME)
        known = self._known.get(account)
        if known is not None and known[1].version == (None if stored is None else stored[:_VERSION_BYTES]):
            directory = known[1]
        elif stored is None:
            directory = Directory()
        else:
            content = decode(stored[_VERSION_BYTES:])
            directory = Directory(content["users"], content["roles"], stored[:_VERSION_BYTES])
        self._known[account] = (self._monotonic_seconds(), directory)
        return directory

    async def change(self, account: str, change: Change) -> None:
        """Store what `change` makes of the directory; it is decided again if another process was faster."""
        home = await self._ensure_home(account)
        is_stored = False
        while not is_stored:
            before = await self.load(account)
            after = change(before)
            if after is before:
                return
            version = self._random_bytes(_VERSION_BYTES)
            content = version + encode({"users": dict(after.users), "roles": dict(after.roles)})
            if len(content) > _BYTES_MAX:
                raise MongoFailure(10334, "The users and roles of the account exceed 8 MB; drop some of them.")
            is_stored = await self._store.small_documents.replace(home.rid, _NAME, content, before=before.version)
            self._known.pop(account, None)
        await self.load(account)

    async def _ensure_home(self, account: str) -> DatabaseRecord:
        """Return the record of the database, created if it does not exist; without a collection it is not listed."""
        store = self._store
        home = store.database_record(account, _HOME)
        while home is None:
            with suppress(ResourceExists):
                now = store.services.clock.stored_seconds()
                await store.catalog.create_database(ACCOUNT_PREFIX + account, _HOME, None, now=now)
            home = store.database_record(account, _HOME)
        return home

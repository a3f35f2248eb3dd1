"""The collections that a reader of changes watches: one, those of a database, or all of an account."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.models.collections.changes import LoggedChange

# Databases that describe the server itself.
RESERVED_DATABASES = frozenset({"admin", "config", "local"})
_SYSTEM_PREFIX = "system."
# Changes of the catalog that readers see without asking for more than documents.
_ALWAYS_SHOWN = frozenset({"drop", "rename", "dropDatabase"})


@dataclass(frozen=True, slots=True)
class ChangeScope:
    """`collection` None: the whole database; `database` None: the whole account. `is_expanded` adds the changes of
    indexes, options and views."""

    account: str
    database: str | None = None
    collection: str | None = None
    is_expanded: bool = False

    @staticmethod
    def is_reserved(database: str) -> bool:
        return database in RESERVED_DATABASES

    def accepts(self, change: LoggedChange) -> bool:
        if self.database is not None and change.database != self.database:
            return False
        if self.is_reserved(change.database):
            return False
        if not self.is_expanded and (self.is_expanded_only(change) or change.is_view):
            return False
        return self.is_within(change.database, change.name, self._target(change))

    def is_within(self, database: str, name: str, other: str | None = None) -> bool:
        """Return whether a change of a collection, or of the whole database (without a name), is in the scope."""
        if self.database is not None and database != self.database:
            return False
        if self.collection is None:
            return not name.startswith(_SYSTEM_PREFIX)
        return self.collection in (name, other)

    @staticmethod
    def is_expanded_only(change: LoggedChange) -> bool:
        return not change.is_of_document and change.operation not in _ALWAYS_SHOWN

    @staticmethod
    def _target(change: LoggedChange) -> str | None:
        """Return the new name of a collection that was renamed."""
        if change.operation != "rename" or change.description is None:
            return None
        return str(change.description["to"])

    def ends_with(self, change: LoggedChange) -> bool:
        """Return whether the watched collection or database is gone after a change that is in the scope."""
        if self.collection is not None:
            return change.operation in ("drop", "rename")
        return self.database is not None and change.operation == "dropDatabase"

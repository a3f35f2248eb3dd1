"""The home of a database: the keyspace of its collections without a shard key, as one process works with it."""

from __future__ import annotations

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.collections.collection import Collection
from asterism.models.collections.records import CollectionRecord, HomeSettings
from asterism.models.collections.rules import CollectionRules


class Home:
    """The home of a database, read once for each version of its settings."""

    __slots__ = ("collections", "keyspace", "records", "rules", "settings", "source")

    def __init__(self, database: str, keyspace: Keyspace) -> None:
        self.keyspace = keyspace
        self.source = keyspace.record.settings
        self.settings = HomeSettings.from_settings(self.source)
        self.records = {
            name: CollectionRecord.from_text(database, name, text) for name, text in self.settings.collections.items()
        }
        self.rules: dict[str, CollectionRules] = {}
        self.collections: dict[str, Collection] = {}

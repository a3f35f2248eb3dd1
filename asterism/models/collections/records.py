"""Collections as the catalog describes them: in the settings of the keyspace that holds their documents.

All collections of a database that have no shard key share one keyspace, its *home*: each is a logical partition of it,
so that a transaction over several is one batch. A sharded collection has a keyspace of its own, and an entry in the
home that names it. Options hold values of BSON, which JSON cannot keep: they are stored as BSON in base64.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from asterism.partitioning.partition_key import PartitionKeyDefinition, PartitionKeyKind
from asterism.values.bson.codec import decode_record, encode
from asterism.values.bson.types import Document

# In the settings of every keyspace of this model.
MARK = "mongo"
HOME = "home"
SHARDED = "sharded"
HOME_KEYSPACE = "home"
HOME_DEFINITION = PartitionKeyDefinition(paths=("/collection",))

ID_INDEX = "_id_"
ID_INDEX_NUMBER = 0


@dataclass(frozen=True, slots=True)
class IndexRecord:
    """An index. `is_ready` is False until all documents that existed before it have their entries."""

    number: int
    name: str
    key: Document
    options: Document = field(default_factory=dict)
    is_ready: bool = True

    @property
    def is_unique(self) -> bool:
        """True if no two documents may have a key in common, also for new documents alone (`prepareUnique`)."""
        return bool(self.options.get("unique") or self.options.get("prepareUnique"))

    @property
    def is_hidden(self) -> bool:
        return bool(self.options.get("hidden"))

    def to_document(self) -> Document:
        return {"n": self.number, "name": self.name, "key": self.key, "o": self.options, "r": self.is_ready}

    @classmethod
    def from_document(cls, stored: Document) -> IndexRecord:
        return cls(stored["n"], stored["name"], stored["key"], stored["o"], stored["r"])


@dataclass(frozen=True)
class CollectionRecord:
    """A collection or a view. `number` is never given again in its database."""

    database: str
    name: str
    number: int
    uuid: bytes
    options: Document = field(default_factory=dict)
    indexes: tuple[IndexRecord, ...] = ()
    # Dotted paths; none for a collection without a shard key.
    shard_key: tuple[str, ...] = ()
    # As the client wrote it: the paths with 1 or "hashed".
    shard_pattern: Document = field(default_factory=dict)
    next_index: int = 1
    # Writers wait: the documents are about to be found at another place.
    is_frozen: bool = False
    # New readers wait, too.
    is_closed: bool = False

    @property
    def is_view(self) -> bool:
        return "viewOn" in self.options

    @cached_property
    def offers_images(self) -> bool:
        """True if change streams may ask for documents before and after their changes."""
        images = self.options.get("changeStreamPreAndPostImages")
        return isinstance(images, dict) and bool(images.get("enabled"))

    @cached_property
    def namespace(self) -> str:
        return f"{self.database}.{self.name}"

    def index(self, name: str) -> IndexRecord | None:
        return next((index for index in self.indexes if index.name == name), None)

    def to_text(self) -> str:
        document = {
            "number": self.number,
            "uuid": self.uuid,
            "options": self.options,
            "indexes": [index.to_document() for index in self.indexes],
            "shardKey": self.shard_pattern,
            "nextIndex": self.next_index,
            **({"frozen": True} if self.is_frozen else {}),
            **({"closed": True} if self.is_closed else {}),
        }
        return base64.b64encode(encode(document)).decode()

    @classmethod
    def from_text(cls, database: str, name: str, text: str) -> CollectionRecord:
        stored = decode_record(base64.b64decode(text))
        return cls(
            database,
            name,
            stored["number"],
            bytes(stored["uuid"]),
            stored["options"],
            tuple(IndexRecord.from_document(index) for index in stored["indexes"]),
            tuple(stored["shardKey"]),
            stored["shardKey"],
            stored["nextIndex"],
            stored.get("frozen", False),
            stored.get("closed", False),
        )


@dataclass(frozen=True, slots=True)
class HomeSettings:
    """The settings of a database's home keyspace."""

    next_number: int = 1
    # Name -> record as text, or the name of the keyspace of a sharded collection.
    collections: Mapping[str, str] = field(default_factory=dict)
    sharded: Mapping[str, str] = field(default_factory=dict)
    # Numbers of collections whose data is still to be removed.
    dropped: tuple[int, ...] = ()
    # Jobs that give collections another shard key, by their ids (`rekey/job.py`).
    rekeys: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_settings(self) -> dict[str, Any]:
        return {
            MARK: HOME,
            "nextNumber": self.next_number,
            "collections": dict(self.collections),
            "sharded": dict(self.sharded),
            "dropped": list(self.dropped),
            "rekeys": dict(self.rekeys),
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> HomeSettings:
        return cls(
            settings["nextNumber"],
            settings["collections"],
            settings["sharded"],
            tuple(settings["dropped"]),
            settings.get("rekeys", {}),
        )

    def with_collection(self, record: CollectionRecord) -> HomeSettings:
        next_number = max(self.next_number, record.number + 1)
        return replace(self, next_number=next_number, collections={**self.collections, record.name: record.to_text()})

    def with_sharded(self, name: str, keyspace: str, *, next_number: int) -> HomeSettings:
        plain = {other: text for other, text in self.collections.items() if other != name}
        return replace(self, collections=plain, sharded={**self.sharded, name: keyspace}, next_number=next_number)

    def with_rekey(self, job_id: str, job: Mapping[str, Any] | None) -> HomeSettings:
        """Return the settings with a job as it is now; None removes it."""
        others = {other: kept for other, kept in self.rekeys.items() if other != job_id}
        return replace(self, rekeys=others if job is None else {**others, job_id: job})

    def renamed(self, name: str, to_name: str) -> HomeSettings:
        return replace(
            self,
            collections={to_name if other == name else other: text for other, text in self.collections.items()},
            sharded={to_name if other == name else other: key for other, key in self.sharded.items()},
        )

    def without(self, name: str, *, dropped: int | None = None) -> HomeSettings:
        return replace(
            self,
            collections={other: text for other, text in self.collections.items() if other != name},
            sharded={other: text for other, text in self.sharded.items() if other != name},
            dropped=self.dropped if dropped is None else (*self.dropped, dropped),
        )


def sharded_settings(record: CollectionRecord) -> dict[str, Any]:
    return {MARK: SHARDED, "name": record.name, "collection": record.to_text()}


def definition_of(pattern: Mapping[str, Any]) -> PartitionKeyDefinition:
    """Return the partition key of a shard key: one path, or up to three as a hierarchy."""
    paths = tuple("/" + path.replace(".", "/") for path in pattern)
    kind = PartitionKeyKind.HASH if len(paths) == 1 else PartitionKeyKind.MULTI_HASH
    return PartitionKeyDefinition(paths=paths, kind=kind)

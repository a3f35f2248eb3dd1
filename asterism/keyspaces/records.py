"""What the catalog remembers: databases, keyspaces and offers, as immutable records with a JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.partition_map import PartitionMap
from asterism.partitioning.placement import Rules
from asterism.throughput import budgets
from asterism.throughput.budgets import Throughput
from asterism.values.json_text import dumps, loads_stored

Json = dict[str, Any]

# How the data of a keyspace is kept. 1, which older programs have written, has no entries in the order of creation.
LAYOUT = 2
_FIRST_LAYOUT = 1


@dataclass(frozen=True, slots=True)
class DatabaseRecord:
    rid: bytes
    account: str
    name: str
    etag: str
    changed_at: int

    def to_bytes(self) -> bytes:
        return dumps(
            {
                "rid": self.rid.hex(),
                "account": self.account,
                "name": self.name,
                "etag": self.etag,
                "changed_at": self.changed_at,
            }
        )

    @classmethod
    def from_bytes(cls, stored: bytes) -> DatabaseRecord:
        told = cast(Json, loads_stored(stored))
        return cls(
            rid=bytes.fromhex(told["rid"]),
            account=told["account"],
            name=told["name"],
            etag=told["etag"],
            changed_at=told["changed_at"],
        )


@dataclass(frozen=True, slots=True)
class KeyspaceRecord:
    """A keyspace: its partition key, its map, and what only the floors above understand: `settings`, which clients see,
    and `catching_up`, which says what is still to be done to data written under older settings (empty: nothing).
    `writes_refused` is the sentence that clients' writes are refused with (empty: they are not)."""

    rid: bytes
    name: str
    settings: Mapping[str, Any]
    definition: PartitionKeyDefinition
    map: PartitionMap
    etag: str
    changed_at: int
    catching_up: Mapping[str, Any] = field(default_factory=dict)
    # On which nodes its partitions may be; None: what the fleet's own rules say.
    placement: Rules | None = None
    writes_refused: str = ""
    layout: int = LAYOUT

    @property
    def database_rid(self) -> bytes:
        return self.rid[:4]

    def to_bytes(self) -> bytes:
        return dumps(
            {
                "rid": self.rid.hex(),
                "name": self.name,
                "settings": dict(self.settings),
                "definition": self.definition.to_record(),
                "map": self.map.to_json(),
                "etag": self.etag,
                "changed_at": self.changed_at,
                "catching_up": dict(self.catching_up),
                **({} if self.placement is None else {"placement": self.placement.to_json()}),
                "writes_refused": self.writes_refused,
                "layout": self.layout,
            }
        )

    @classmethod
    def from_bytes(cls, stored: bytes) -> KeyspaceRecord:
        told = cast(Json, loads_stored(stored))
        return cls(
            rid=bytes.fromhex(told["rid"]),
            name=told["name"],
            settings=told["settings"],
            definition=PartitionKeyDefinition.from_record(told["definition"]),
            map=PartitionMap.from_json(told["map"]),
            etag=told["etag"],
            changed_at=told["changed_at"],
            catching_up=told.get("catching_up", {}),
            placement=Rules.from_json(told["placement"]) if "placement" in told else None,
            writes_refused=told.get("writes_refused", ""),
            layout=told.get("layout", _FIRST_LAYOUT),
        )


@dataclass(frozen=True, slots=True)
class OfferRecord:
    """Throughput provisioned for a database (4-byte resource) or a keyspace (8-byte resource)."""

    rid: bytes
    resource_rid: bytes
    throughput: Throughput
    # The service derives the lowest throughput one may go back to from the highest there ever was.
    highest_ever_ru: int
    etag: str
    changed_at: int

    def to_bytes(self) -> bytes:
        return dumps(
            {
                "rid": self.rid.hex(),
                "resource_rid": self.resource_rid.hex(),
                "throughput": budgets.to_json(self.throughput),
                "highest_ever_ru": self.highest_ever_ru,
                "etag": self.etag,
                "changed_at": self.changed_at,
            }
        )

    @classmethod
    def from_bytes(cls, stored: bytes) -> OfferRecord:
        told = cast(Json, loads_stored(stored))
        return cls(
            rid=bytes.fromhex(told["rid"]),
            resource_rid=bytes.fromhex(told["resource_rid"]),
            throughput=budgets.from_json(told["throughput"]),
            highest_ever_ru=told["highest_ever_ru"],
            etag=told["etag"],
            changed_at=told["changed_at"],
        )

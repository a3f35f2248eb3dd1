"""The records of the catalog: databases, keyspaces and offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from asterism.keyspaces.catalog.capture_order import CaptureOrder
from asterism.keyspaces.catalog.forwarding import ForwardingRules, pack_rules, unpack_rules
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.partition_map import PartitionMap
from asterism.partitioning.placement import Rules
from asterism.throughput import budgets
from asterism.throughput.budgets import Throughput
from asterism.values.records import Form, StoredRecord

# The layout of the data of a keyspace. 1, which older programs have written, has no entries in the order of creation.
LAYOUT = 2
_FIRST_LAYOUT = 1


@dataclass(frozen=True, slots=True)
class ScratchTerms:
    """Terms of a database for trials: when its lease ends, and how many partitions each of its containers has,
    whatever their throughput is. Its partitions have no reserve for bursts, which would hide what a trial measures."""

    # Wall seconds. From then on the server may drop the database with everything in it.
    expires_at: int
    partitions: int


@dataclass(frozen=True, slots=True)
class DatabaseRecord(StoredRecord):
    STORED_IF_SET: ClassVar = frozenset({"scratch"})

    rid: bytes
    account: str
    name: str
    etag: str
    changed_at: int
    # Set at the creation, by operators alone, and never changed: a database without it never becomes one that expires.
    scratch: ScratchTerms | None = None


@dataclass(frozen=True, slots=True)
class KeyspaceRecord(StoredRecord):
    """A keyspace: its partition key and its map, and two members that only its model understands: `settings`, which
    clients see, and `catching_up`, the work that is due on data written under older settings (empty: none).
    `writes_refused` is the message with which writes of clients are refused (empty: they are not)."""

    FORMS: ClassVar = {
        "definition": Form(PartitionKeyDefinition.to_record, PartitionKeyDefinition.from_record),
        "map": Form(PartitionMap.to_json, PartitionMap.from_json),
        "placement": Form(Rules.to_json, Rules.from_json),
        "capture": Form(CaptureOrder.to_fields, CaptureOrder.from_fields),
        "forwarding": Form(pack_rules, unpack_rules),
    }
    STORED_IF_SET: ClassVar = frozenset({"placement", "capture", "forwarding"})
    ABSENT_VALUES: ClassVar = {"layout": _FIRST_LAYOUT}

    rid: bytes
    name: str
    settings: Mapping[str, Any]
    definition: PartitionKeyDefinition
    map: PartitionMap
    etag: str
    changed_at: int
    catching_up: Mapping[str, Any] = field(default_factory=dict)
    # The rules for the nodes of its partitions; None for the rules of the fleet.
    placement: Rules | None = None
    writes_refused: str = ""
    layout: int = LAYOUT
    # The last capture of its requests that was ordered; None if there was none.
    capture: CaptureOrder | None = None
    # The logical partitions that are served by other keyspaces; None, and never empty, if there are none.
    forwarding: ForwardingRules | None = None

    @property
    def database_rid(self) -> bytes:
        return self.rid[:4]


@dataclass(frozen=True, slots=True)
class OfferRecord(StoredRecord):
    """Throughput provisioned for a database (4-byte resource) or a keyspace (8-byte resource)."""

    FORMS: ClassVar = {"throughput": Form(budgets.to_json, budgets.from_json)}

    rid: bytes
    resource_rid: bytes
    throughput: Throughput
    # The service derives the lowest throughput that may be set from the highest that ever was.
    highest_ever_ru: int
    etag: str
    changed_at: int

"""The settings of a container as the core sees them, and the profile that knows how a protocol writes them down.

The catalog keeps settings as the JSON that a protocol's clients see. A profile reads it: once for each version of a
record it makes the typed object below, and nothing else in the core looks into the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.models.documents.codec import DocumentCodec
from asterism.models.documents.incoming.entries import SinkRule
from asterism.models.documents.indexes.paths import Segment
from asterism.models.documents.indexes.rules import IndexingRules
from asterism.models.documents.unique_keys import UniqueKeys
from asterism.partitioning.computed_key import ComputedKey
from asterism.partitioning.partition_key import PartitionKeyDefinition

# The settings of a record as the catalog keeps them.
StoredSettings = Mapping[str, Any]

# In a record's `catching_up`: the entries of incoming edges are not yet those of the settings, be it that edges lack
# them or that they are no longer wanted.
INCOMING_EDGES_DUE: Final = "incoming_edges"


class ComputedProperty(NamedTuple):
    """A property whose value a query computes from each item that it reads."""

    name: str
    query: str


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """The settings of one version of a container's record, compiled."""

    rules: IndexingRules
    unique_keys: UniqueKeys | None = None
    # Seconds after its last change at which an item without a wish of its own expires; -1 for never, None where items
    # do not expire whatever they wish.
    default_ttl_seconds: int | None = None
    # For how long every version and delete is kept, for the feed that shows them; None where none is.
    versions_kept_seconds: int | None = None
    # Path of a vector -> the function that measures distances there.
    vector_distances: Mapping[tuple[Segment, ...], str] = field(default_factory=dict)
    computed_properties: tuple[ComputedProperty, ...] = ()
    # The rules by which levels of the partition key are made of other properties; None where items have all of it.
    computed_key: ComputedKey | None = None
    # The rule by which edges have entries at their sinks (`incoming/entries.py`); None where they have none.
    sink_rule: SinkRule | None = None
    # True if every stored edge has its entry; False while the container is walked.
    has_all_incoming_edges: bool = False


class NewContainer(NamedTuple):
    """The checked properties of a container that is to be created, completed with the protocol's defaults."""

    name: str
    definition: PartitionKeyDefinition
    settings: StoredSettings


class DocumentProfile(Protocol):
    """How one protocol describes containers. Pure: no method has an effect beyond its answer."""

    def describes(self, record: KeyspaceRecord, /) -> bool:
        """Return whether a keyspace is a container of this profile; others are tables, or another protocol's."""
        ...

    def codec(self, record: KeyspaceRecord, /) -> DocumentCodec: ...

    def compile(self, record: KeyspaceRecord, codec: DocumentCodec, /) -> ContainerSettings:
        """Return the settings of a record, which stay in force as long as its `settings` and `catching_up` do."""
        ...

    # --- what clients ask for ---------------------------------------------------------------------------------------

    def check_name(self, name: object, /) -> str:
        """Return the name of a database that is to be created; MalformedRequest if it cannot be one."""
        ...

    def new_container(self, body: Mapping[str, Any], /) -> NewContainer:
        """Return the properties of a container that a client describes; MalformedRequest says what is wrong."""
        ...

    def replaced(self, before: StoredSettings, body: Mapping[str, Any], /) -> StoredSettings:
        """Return the settings after `body` replaced them; MalformedRequest if it changes what is fixed at creation."""
        ...

    # --- what the server changes by itself --------------------------------------------------------------------------

    def with_key(
        self,
        settings: StoredSettings,
        /,
        *,
        name: str,
        paths: Sequence[str],
        synthetic: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        """Return the description of a container like this one under another name and partition key; `synthetic` has the
        rules of its computed levels, by path."""
        ...

    def with_name(self, settings: StoredSettings, /, *, name: str) -> Mapping[str, Any]:
        """Return the description of a container like this one under another name."""
        ...

    def with_versions_kept(self, settings: StoredSettings, /, *, minutes: int) -> Mapping[str, Any]:
        """Return the description of the container with another retention of versions; 0 ends it."""
        ...

    def index_policy(self, settings: StoredSettings, /) -> Mapping[str, Any]:
        """Return the part that says how items are indexed, as a record of unfinished work keeps it (`catching_up`)."""
        ...

    def gives_same_entries(self, before: Mapping[str, Any], after: Mapping[str, Any], /) -> bool:
        """Return whether items have the same index entries under two index policies."""
        ...

    def keeps_incoming_edges(self, settings: StoredSettings, /) -> bool:
        """Return whether edges are to have entries at the vertices that they lead to."""
        ...

    def computes_key(self, settings: StoredSettings, /) -> bool:
        """Return whether levels of the partition key are made of other properties; that never changes."""
        ...

    def conversion_rules(self, record: KeyspaceRecord, /) -> IndexingRules | None:
        """Return rules that know all index entries that items written by an older program may have; None where those of
        the present rules are all there are."""
        ...

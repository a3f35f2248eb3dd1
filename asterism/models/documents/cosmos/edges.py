"""Edges among the service's items: the documents of a graph that name the vertex they lead to."""

from __future__ import annotations

from typing import Final

from asterism.errors import AsterismError
from asterism.models.documents.codec import Document
from asterism.models.documents.cosmos.properties import LABEL
from asterism.models.documents.incoming.entries import Sink, SinkRule
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.partition_key import PartitionKeyDefinition, extract
from asterism.values.undefined import UNDEFINED

EDGE_MARK: Final = "_isEdge"
SINK_ID: Final = "_sink"
SINK_KEY: Final = "_sinkPartition"


def may_name_sinks(definition: PartitionKeyDefinition) -> bool:
    """Return whether edges of a container can name a sink: its key is one property, or it has no key."""
    return definition.only_property is not None or definition.system_key


def label_bytes(label: str) -> bytes:
    """Return a label as entries have it. Texts of JSON may have halves of surrogate pairs."""
    return label.encode(errors="surrogatepass")


def sink_rule(definition: PartitionKeyDefinition) -> SinkRule:
    """Return the rule that finds the sink of an edge. A document of another shape is no edge, and never refused."""
    name = definition.only_property

    def sink_of(document: Document) -> Sink | None:
        if document.get(EDGE_MARK) is not True:
            return None
        sink_id, label = document.get(SINK_ID), document.get(LABEL)
        if type(sink_id) is not str or type(label) is not str:
            return None
        if name is None:
            return Sink(b"", label_bytes(sink_id), label_bytes(label))
        try:
            point = storage_point(definition, extract(definition, {name: document.get(SINK_KEY, UNDEFINED)}))
        except AsterismError:
            # No item can have such a key, and no vertex either.
            return None
        return Sink(point, label_bytes(sink_id), label_bytes(label))

    return sink_of

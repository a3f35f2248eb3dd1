"""Documents as elements: the reading is lenient, because other doors and bulk loaders write documents too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from asterism.languages.gremlin.graph.elements import EDGE_MARK, SINK_ID, SOURCE_ID, Edge, KeyValue, Vertex


def read_element(document: Mapping[str, Any], key_name: str | None) -> Vertex | Edge | None:
    """Return the vertex or the edge that a document is; None for a document that is neither."""
    label = document.get("label")
    if type(label) is not str:
        return None
    key: KeyValue = None
    if key_name is not None:
        key = document.get(key_name, ())
        if isinstance(key, list | dict | tuple):
            return None
    if document.get(EDGE_MARK) is not True:
        return Vertex(document["id"], label, key, document, key_name=key_name)
    if type(document.get(SOURCE_ID)) is not str or type(document.get(SINK_ID)) is not str:
        return None
    return Edge(document, key_name=key_name)


def is_key_value(value: object) -> TypeGuard[KeyValue]:
    """Return whether a value can be a partition key."""
    return value is None or isinstance(value, str | int | float)

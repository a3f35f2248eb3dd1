"""Containers that can be graphs, by their partition keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

_RESERVED: Final = ("/id", "/label")


def can_be_graph(paths: Sequence[str]) -> bool:
    """Return True for a key of one property that is not an element's id or label; and for a container without a key."""
    return len(paths) <= 1 and all("/" not in path[1:] and path.lower() not in _RESERVED for path in paths)


def is_key_of_graph(key: dict[str, Any]) -> bool:
    """Return True for the partition key of a container that can be a graph: edges name the key of the vertex they lead
    to by one value, which a computed one may not be."""
    return can_be_graph(key["paths"]) and not key.get("synthetic")


def key_property(key: dict[str, Any]) -> str:
    """Return the name of the property that divides a graph; empty for a graph without partitions."""
    paths = key.get("paths") or []
    return "" if not paths or key.get("systemKey") else str(paths[0])[1:].strip('"')

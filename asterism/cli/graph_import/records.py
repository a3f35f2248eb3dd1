"""Vertices and edges as files name them, before the graph's partition key is known for each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

# The value of a partition key.
KeyValue = str | int | float | bool | None


class BadElement(Exception):
    """A line that is no element; the text says why, and the reader of the file adds where."""


@dataclass(slots=True)
class VertexRecord:
    """A vertex; `properties` has the values of each name, each with its meta-properties."""

    id: str
    label: str
    properties: dict[str, list[tuple[Any, dict[str, Any]]]] = field(default_factory=dict)


@dataclass(slots=True)
class EndRecord:
    """An end of an edge. Key and label are None where the file leaves them to the vertex itself."""

    id: str
    key: KeyValue = None
    label: str | None = None


@dataclass(slots=True)
class EdgeRecord:
    """An edge; `id` is None if the file gives it none."""

    id: str | None
    label: str
    source: EndRecord
    target: EndRecord
    properties: dict[str, Any] = field(default_factory=dict)


Record = VertexRecord | EdgeRecord


def id_text(value: object, *, noun: str) -> str:
    """Return an id as the text that a graph stores: numbers are accepted, as the door does."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise BadElement(f"the {noun} has no id: {_shown(value)}" if value else f"the {noun} has no id")


def label_text(value: object, *, noun: str, default: str) -> str:
    if value is None or value == "":
        return default
    if isinstance(value, str):
        return value
    raise BadElement(f"the label of the {noun} is not a text: {_shown(value)}")


def checked_value(name: str, value: Any) -> Any:
    """Return the value of a property if a graph can store it: texts, numbers, booleans, and arrays of them."""
    kind = type(value)
    if kind is str or kind is int or kind is bool:
        return value
    if kind is float and math.isfinite(value):
        return value
    if kind is list:
        return [checked_value(name, entry) for entry in value]
    if value is None:
        raise BadElement(f"the property {name!r} is null; leave it out instead")
    raise BadElement(
        f"the property {name!r} has the value {_shown(value)}; "
        "a graph stores texts, finite numbers, booleans and lists of them"
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"

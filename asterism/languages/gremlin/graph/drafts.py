"""Documents of elements that a traversal adds or changes: what may be stored, and in which form."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from itertools import count
from math import isfinite
from typing import Any
from uuid import UUID

from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.contract import Cardinality, EdgeDraft, VertexDraft
from asterism.languages.gremlin.graph.elements import (
    EDGE_MARK,
    EDGE_NAMES,
    SINK_ID,
    SINK_KEY,
    SINK_LABEL,
    SOURCE_ID,
    SOURCE_LABEL,
)

Document = dict[str, Any]
NewId = Callable[[], str]

# The property that the store reads itself: seconds until the element expires. It stands plainly in documents.
TIME_TO_LIVE = "ttl"

MISSING_KEY = "Cannot add a vertex where the partition key property has value 'null'."
SEVERAL_KEYS = "Partition property must be single-valued."


def merged_ids(merged_by: str) -> Iterator[str]:
    """Yield ids without end, the same for everyone who merges by the same."""
    for number in count():
        digest = hashlib.sha256(f"{number} {merged_by}".encode()).digest()
        yield str(UUID(bytes=digest[:16], version=5))


def vertex_document(draft: VertexDraft, *, key_name: str | None, new_id: NewId) -> Document:
    """Return the document of a new vertex; refuse one without its partition key."""
    document: Document = {"id": draft.vertex_id if draft.vertex_id is not None else new_id(), "label": draft.label}
    if key_name is not None:
        # Placed first, as the service shows it.
        document[key_name] = None
    for name, value, cardinality, meta in draft.properties:
        if name == key_name:
            document[name] = key_value(value, cardinality)
        else:
            set_property(document, name, value, cardinality, meta, new_id=new_id)
    if key_name is not None and document[key_name] is None:
        raise ExecutionFailure(MISSING_KEY)
    return document


def key_value(value: Any, cardinality: Cardinality) -> Any:
    """Return the value of a partition key as it is stored."""
    if isinstance(value, list | tuple | set | frozenset) or cardinality != "single":
        raise ExecutionFailure(SEVERAL_KEYS)
    if value is None:
        raise ExecutionFailure(MISSING_KEY)
    return stored_value(value, "the partition key")


def edge_document(draft: EdgeDraft, *, key_name: str | None, new_id: NewId) -> Document:
    """Return the document of a new edge, which lies with its source."""
    source, target = draft.source, draft.target
    document: Document = {
        "id": draft.edge_id if draft.edge_id is not None else new_id(),
        "label": draft.label,
        EDGE_MARK: True,
        SOURCE_ID: source.id,
        SOURCE_LABEL: source.label,
        SINK_ID: target.id,
        SINK_LABEL: target.label,
    }
    if key_name is not None:
        document[key_name] = source.key
        document[SINK_KEY] = target.key
    for name, value in draft.properties.items():
        set_edge_property(document, name, value, key_name=key_name)
    return document


def set_edge_property(document: Document, name: str, value: Any, *, key_name: str | None) -> None:
    """Give an edge a property."""
    check_name(name)
    if name == key_name:
        if value != document.get(name):
            raise ExecutionFailure(f"The partition key property '{name}' of an edge is that of its source vertex.")
        return
    document[name] = stored_value(value, name)


def set_property(
    document: Document, name: str, value: Any, cardinality: Cardinality, meta: Mapping[str, Any], *, new_id: NewId
) -> None:
    """Give a vertex a value of a property: instead of those it has (`single`), or besides them."""
    check_name(name)
    stored = stored_value(value, name)
    if name == TIME_TO_LIVE and cardinality == "single" and type(stored) is int and not meta:
        document[name] = stored
        return
    stored_meta = {key: stored_value(member, key) for key, member in meta.items()}
    entries = [] if cardinality == "single" else entries_of(document, name)
    if cardinality == "set":
        for entry in entries:
            if entry["_value"] == stored and type(entry["_value"]) is type(stored):
                if stored_meta:
                    entry["_meta"] = {**entry.get("_meta", {}), **stored_meta}
                document[name] = entries
                return
    entry = {"id": new_id(), "_value": stored}
    if stored_meta:
        entry["_meta"] = stored_meta
    document[name] = [*entries, entry]


def entries_of(document: Mapping[str, Any], name: str) -> list[Document]:
    """Return copies of the values of a property with their ids, also of those that others wrote plainly."""
    if name not in document:
        return []
    stored = document[name]
    return [
        dict(entry)
        if type(entry) is dict and "_value" in entry
        else {"id": f"{document['id']}|{name}", "_value": entry}
        for entry in (stored if type(stored) is list else [stored])
    ]


def check_name(name: Any) -> None:
    """Refuse a name that is no text, or that documents use for something else."""
    if not isinstance(name, str) or not name:
        raise ExecutionFailure("The name of a property must be a text that is not empty.")
    if name.startswith("~"):
        raise ExecutionFailure(f"Property key can not be a hidden key: {name}")
    if name in EDGE_NAMES:
        raise ExecutionFailure(f"The property name '{name}' is reserved. Choose another name.")


def stored_value(value: Any, name: str) -> Any:
    """Return a value as documents have it; refuse null, objects, and numbers that JSON lacks."""
    if isinstance(value, list | tuple | set | frozenset):
        return [_scalar(member, name) for member in value]
    return _scalar(value, name)


def _scalar(value: Any, name: str) -> Any:
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float | Decimal):
        if isfinite(value):
            return float(value)
        raise ExecutionFailure(f"The value of the property '{name}' is not a finite number, which cannot be stored.")
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    what = "null" if value is None else f"a {type(value).__name__}"
    raise ExecutionFailure(
        f"The property '{name}' cannot be {what}: properties are texts, numbers, booleans and lists of them."
    )

"""Documents of a graph, made of the elements of files: partition keys chosen, and both ends of each edge found."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field
from typing import Any, Final

from asterism.cli.failure import CommandFailed
from asterism.cli.graph_import.records import BadElement, EdgeRecord, EndRecord, KeyValue, VertexRecord
from asterism.languages.gremlin.graph.elements import (
    EDGE_ID,
    EDGE_MARK,
    EDGE_NAMES,
    SINK_ID,
    SINK_KEY,
    SINK_LABEL,
    SOURCE_ID,
    SOURCE_LABEL,
    VERTEX_NAMES,
    twin_id,
)

Document = dict[str, Any]

_TIME_TO_LIVE: Final = "ttl"
_HASH: Final = "hash:"
# More logical partitions than this make edges of a vertex no more spread, and batches small.
_BUCKETS_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class KeyRule:
    """The partition key of a vertex: the value of a property, its label, its id, or one of N buckets by its id."""

    # The property that is the graph's partition key; None for a graph without partitions.
    name: str | None
    # A property, `label`, `id` or `hash:N`; the property `name` itself if it is None.
    source: str | None = None

    def __post_init__(self) -> None:
        if self.source is not None and self.source.startswith(_HASH) and not 1 <= self._buckets <= _BUCKETS_MAX:
            raise CommandFailed(f"--partition-key-from {self.source} needs a number from 1 to {_BUCKETS_MAX:,}")

    @property
    def _buckets(self) -> int:
        text = (self.source or "").removeprefix(_HASH)
        return int(text) if text.isascii() and text.isdigit() else 0

    def key_of(self, vertex: VertexRecord) -> KeyValue:
        source = self.source
        if self.name is None:
            return None
        if source is None or (source not in ("label", "id") and not source.startswith(_HASH)):
            return self._key_of_property(vertex, source or self.name)
        if source == "label":
            return vertex.label
        if source == "id":
            return vertex.id
        return str(zlib.crc32(vertex.id.encode()) % self._buckets)

    def _key_of_property(self, vertex: VertexRecord, source: str) -> KeyValue:
        values = vertex.properties.get(source, [])
        if len(values) != 1:
            problem = "has no" if not values else "has several values of the"
            raise BadElement(
                f"the vertex {vertex.id!r} {problem} property {source!r}, which is to be its partition key; "
                "another source is given with --partition-key-from"
            )
        value: Any = values[0][0]
        if isinstance(value, list):
            raise BadElement(
                f"the property {source!r} of the vertex {vertex.id!r} is a list, which is no partition key"
            )
        return value  # type: ignore[no-any-return]  # a checked value: text, number or boolean


@dataclass(slots=True)
class Places:
    """Partition key and label of every vertex by its id, each pair kept once."""

    _of_id: dict[str, tuple[KeyValue, str] | None] = field(default_factory=dict)
    _pairs: dict[tuple[type, KeyValue, str], tuple[KeyValue, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._of_id)

    def may_have(self, vertex_id: str, key: KeyValue) -> bool:
        """Return True unless no vertex of the logical partition `key` has the id."""
        found = self._of_id.get(vertex_id, ())
        return found is None or (len(found) > 0 and found[0] == key)

    def add(self, vertex_id: str, key: KeyValue, label: str) -> None:
        pair = self._pairs.setdefault((type(key), key, label), (key, label))
        known = self._of_id.setdefault(vertex_id, pair)
        if known is not pair:
            # The same id in two logical partitions: edges must name the partition.
            self._of_id[vertex_id] = None

    def find(self, end: EndRecord) -> tuple[KeyValue, str]:
        found = self._of_id.get(end.id)
        if found is not None and end.key is None:
            return found if end.label is None else (found[0], end.label)
        if end.key is not None and (end.label is not None or found is not None):
            return end.key, end.label or (found[1] if found is not None else "")
        if end.id not in self._of_id:
            raise BadElement(
                f"no file has the vertex {end.id!r}; edges to vertices that are elsewhere need the columns "
                "fromPk, fromLabel, toPk and toLabel"
            )
        raise BadElement(
            f"the vertex {end.id!r} is in several partitions; name it by fromPk and fromLabel, toPk and toLabel"
        )


@dataclass(slots=True)
class DocumentMaker:
    """Maker of documents for one graph. The same elements give the same documents, so an import can be repeated."""

    rule: KeyRule
    places: Places = field(default_factory=Places)

    def vertex(self, record: VertexRecord) -> tuple[KeyValue, Document]:
        key = self.rule.key_of(record)
        self.places.add(record.id, key, record.label)
        name, vertex_id = self.rule.name, record.id
        document: Document = {"id": vertex_id, "label": record.label}
        if name is not None:
            document[name] = key
        for property_name, values in record.properties.items():
            if property_name == name:
                continue
            if property_name in VERTEX_NAMES:
                raise BadElement(f"{property_name!r} cannot be the name of a property")
            if property_name == _TIME_TO_LIVE:
                document[property_name] = values[0][0]
                continue
            document[property_name] = [
                _stored_value(value, meta, f"{key}\0{vertex_id}\0{property_name}\0{place}")
                for place, (value, meta) in enumerate(values)
            ]
        return key, document

    def edge(self, record: EdgeRecord, *, line: int) -> tuple[KeyValue, Document]:
        source, target, name = record.source, record.target, self.rule.name
        source_key, source_label = self.places.find(source)
        target_key, target_label = self.places.find(target)
        edge_id = record.id
        if edge_id is None:
            edge_id = _guid(f"{source_key}\0{source.id}\0{record.label}\0{target_key}\0{target.id}\0{line}")
        document: Document = {"id": edge_id, "label": record.label, EDGE_MARK: True}
        if self.places.may_have(edge_id, source_key):
            document["id"], document[EDGE_ID] = twin_id(edge_id), edge_id
        if name is not None:
            document[name] = source_key
            document[SINK_KEY] = target_key
        document[SOURCE_ID], document[SOURCE_LABEL] = source.id, source_label
        document[SINK_ID], document[SINK_LABEL] = target.id, target_label
        for property_name, value in record.properties.items():
            if property_name in EDGE_NAMES or property_name == name:
                raise BadElement(f"{property_name!r} cannot be the name of a property of an edge")
            document[property_name] = value
        return source_key, document


def _stored_value(value: Any, meta: dict[str, Any], seed: str) -> Document:
    stored: Document = {"id": _guid(seed), "_value": value}
    if meta:
        stored["_meta"] = meta
    return stored


def _guid(seed: str) -> str:
    text = hashlib.blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

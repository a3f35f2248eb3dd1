"""Changes of a graph: staged while the traversal runs, and written at its end, each logical partition as one unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from uuid import UUID

from asterism.errors import AsterismError, Category, Forbidden, ItemExists, ItemNotFound, PreconditionFailed
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.contract import Cardinality, EdgeDraft, VertexDraft
from asterism.languages.gremlin.graph.drafts import (
    Document,
    edge_document,
    entries_of,
    merged_ids,
    set_edge_property,
    set_property,
    stored_value,
    vertex_document,
)
from asterism.languages.gremlin.graph.elements import (
    EDGE_ID,
    EDGE_MARK,
    Edge,
    KeyValue,
    Property,
    Vertex,
    VertexProperty,
    twin_id,
)
from asterism.languages.gremlin.graph.profile import Ledger
from asterism.languages.gremlin.graph.reads import GET_EDGES, GET_VERTICES, GraphReads
from asterism.languages.gremlin.graph.routing import same_key
from asterism.languages.gremlin.graph.staged import StagedItem, StagedItems
from asterism.languages.gremlin.graph.unit_order import ordered_points
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.transaction import Conditions, Overtaken, Transaction
from asterism.storage.contract import ExpectationFailed

WRITE_KIND: Final = "WriteElements"


@dataclass(eq=False)
class PartlyWritten(AsterismError):
    """A traversal that writes to several logical partitions, each of them a unit, failed at a later one."""

    category: ClassVar[Category] = Category.CONTENTION
    text: ClassVar[str] = "Some of the logical partitions that the traversal changes were written, others were not."
    written: int
    planned: int
    reason: str = "Another writer changed the data of the next one."

    @property
    def sentence(self) -> str:
        return (
            f"The traversal changes {self.planned} logical partitions, and each is written as a whole. "
            f"{self.written} of them were written, then it ended: {self.reason}"
        )


class GraphWrites:
    """The changes of one traversal."""

    __slots__ = (
        "_container",
        "_expected",
        "_ledger",
        "_looks_first",
        "_may_write",
        "_random_bytes",
        "_reads",
        "distant",
        "staged",
    )

    def __init__(
        self,
        container: Container,
        services: DocumentServices,
        reads: GraphReads,
        ledger: Ledger,
        *,
        may_write: bool,
        looks_first: bool,
    ) -> None:
        self._container = container
        self._random_bytes = services.random_bytes
        self._reads = reads
        self._ledger = ledger
        self._may_write = may_write
        # True after an attempt in which an element was added that exists: new ids are then looked up.
        self._looks_first = looks_first
        self.staged = StagedItems()
        # Places of vertices that new edges begin or end at, and that must be there when the edges are written.
        self._expected: dict[bytes, str] = {}
        # New edges to stored vertices of other logical partitions, which their units cannot expect to be there.
        self.distant: list[Edge] = []

    @property
    def key_name(self) -> str | None:
        return self._reads.key_name

    def _new_id(self) -> str:
        return str(UUID(bytes=self._random_bytes(16), version=4))

    def _check_right(self) -> None:
        if not self._may_write:
            raise Forbidden(reason="The key is read-only: it does not permit to change the graph.")

    # --- elements ---------------------------------------------------------------------------------------------------

    async def add_vertex(self, draft: VertexDraft) -> Vertex:
        self._check_right()
        document = vertex_document(draft, key_name=self.key_name, new_id=self._new_id)
        key: KeyValue = None if self.key_name is None else document[self.key_name]
        if draft.vertex_id is None and draft.merged_by is not None:
            document["id"] = await self._merged_id(key, draft.merged_by)
        await self._add(key, document, is_edge=False)
        return Vertex(document["id"], document["label"], key, document, key_name=self.key_name)

    async def add_edge(self, draft: EdgeDraft) -> Edge:
        """Stage an edge. Both ends must exist; those that were not read in this traversal are read now."""
        self._check_right()
        ends = (draft.source, draft.target)
        unread = [end for end in ends if not end.is_loaded and self._staged_at(end) is None]
        if unread:
            for end, document in zip(
                unread,
                await self._reads.read_places([(end.key, end.id) for end in unread], GET_VERTICES),
                strict=True,
            ):
                if document is None:
                    raise ItemNotFound(item_id=end.id)
        document = edge_document(draft, key_name=self.key_name, new_id=self._new_id)
        if draft.edge_id is None and draft.merged_by is not None:
            document["id"] = await self._merged_id(draft.source.key, draft.merged_by)
        await self._add(draft.source.key, document, is_edge=True)
        for end in ends:
            staged = self._staged_at(end)
            if staged is not None and staged.document is None:
                raise ItemNotFound(item_id=end.id)
            if staged is None:
                self._expected[self._reads.reference(end.key, end.id)] = end.id
        edge = Edge(document, key_name=self.key_name)
        if self._staged_at(draft.target) is None and not same_key(draft.source.key, draft.target.key):
            self.distant.append(edge)
        return edge

    async def _add(self, key: KeyValue, document: Document, *, is_edge: bool) -> None:
        element_id = document["id"]
        self._container.codec.id_of(document)
        reference = self._reads.reference(key, element_id)
        staged = self.staged.get(reference)
        if staged is not None and staged.document is not None:
            await self._add_beside(key, document, staged.document, is_edge=is_edge)
            return
        if staged is not None:
            # It was removed by this traversal, and comes back as another.
            self.staged.put(reference, StagedItem(key, element_id, document, False, is_edge, staged.etag))
            return
        if self._looks_first:
            kind = GET_EDGES if is_edge else GET_VERTICES
            (found,) = await self._reads.read_places([(key, element_id)], kind)
            if found is not None:
                await self._add_beside(key, document, found, is_edge=is_edge)
                return
        self.staged.put(reference, StagedItem(key, element_id, document, True, is_edge))

    async def _merged_id(self, key: KeyValue, merged_by: str) -> str:
        """Return the first free id of those that all writers try in turn who merge the same. An id is taken by an
        element that has been changed since, and is not found by what it was merged by."""
        for element_id in merged_ids(merged_by):
            staged = self.staged.get(self._reads.reference(key, element_id))
            if staged is not None:
                if staged.document is None:
                    return element_id
                continue
            if not self._looks_first:
                return element_id
            (found,) = await self._reads.read_places([(key, element_id)], GET_VERTICES)
            if found is None:
                return element_id
        raise AssertionError("there is no end of ids")

    async def _add_beside(self, key: KeyValue, document: Document, found: Mapping[str, Any], *, is_edge: bool) -> None:
        """Add an edge whose id a vertex has, under the id that such edges have; refuse any other element."""
        if not is_edge or EDGE_ID in document or found.get(EDGE_MARK) is True:
            raise ItemExists(item_id=document.get(EDGE_ID) or document["id"])
        document[EDGE_ID] = document["id"]
        document["id"] = twin_id(document["id"])
        await self._add(key, document, is_edge=True)

    def _staged_at(self, element: Vertex | Edge) -> StagedItem | None:
        return self.staged.get(self._reads.reference(element.key, element.item_id)) if self.staged else None

    # --- properties -------------------------------------------------------------------------------------------------

    async def set_vertex_property(
        self, vertex: Vertex, name: str, value: Any, cardinality: Cardinality, meta: Mapping[str, Any]
    ) -> Vertex:
        if name == self.key_name:
            if value == vertex.key and cardinality == "single":
                return vertex
            raise ExecutionFailure(f"The partition key property '{name}' of a vertex cannot be changed.")
        document = await self._changed(vertex)
        set_property(document, name, value, cardinality, meta, new_id=self._new_id)
        return Vertex(vertex.id, vertex.label, vertex.key, document, key_name=self.key_name)

    async def set_edge_property(self, edge: Edge, name: str, value: Any) -> Edge:
        document = await self._changed(edge)
        set_edge_property(document, name, value, key_name=self.key_name)
        return Edge(document, key_name=self.key_name)

    async def set_meta_property(self, owner: VertexProperty, name: str, value: Any) -> VertexProperty:
        stored = stored_value(value, name)
        meta = {**owner.meta, name: stored}
        await self._replace_entry(owner, meta)
        return VertexProperty(owner.id, owner.label, owner.value, owner.vertex, meta)

    async def _replace_entry(self, owner: VertexProperty, meta: Mapping[str, Any] | None) -> None:
        """Change the meta-properties of a value of a property; None removes the value."""
        name = owner.label
        if name == self.key_name:
            raise ExecutionFailure(f"The partition key property '{name}' of a vertex cannot be changed.")
        document = await self._changed(owner.vertex)
        entries: list[Document] = []
        for entry in entries_of(document, name):
            if entry["id"] != owner.id:
                entries.append(entry)
            elif meta is not None:
                kept = {key: member for key, member in entry.items() if key != "_meta"}
                entries.append({**kept, "_meta": dict(meta)} if meta else kept)
        if entries:
            document[name] = entries
        else:
            document.pop(name, None)

    async def _changed(self, element: Vertex | Edge) -> Document:
        """Return the document of an element, staged, for the caller to change."""
        self._check_right()
        reference = self._reads.reference(element.key, element.item_id)
        staged = self.staged.get(reference)
        if staged is not None:
            if staged.document is None:
                raise ItemNotFound(item_id=element.id)
            # Elements that steps hold already keep what they saw.
            document = dict(staged.document)
            self.staged.put(
                reference,
                StagedItem(staged.key, staged.element_id, document, staged.is_new, staged.is_edge, staged.etag),
            )
            return document
        known = element.document
        if known is None or "_etag" not in known:
            (known,) = await self._reads.read_places([(element.key, element.item_id)], GET_VERTICES)
            if known is None:
                raise ItemNotFound(item_id=element.id)
        document = dict(known)
        is_edge = isinstance(element, Edge)
        self.staged.put(
            reference, StagedItem(element.key, element.item_id, document, False, is_edge, document.get("_etag"))
        )
        return document

    async def remove_property(self, entry: VertexProperty | Property) -> None:
        if isinstance(entry, VertexProperty):
            await self._replace_entry(entry, None)
        elif isinstance(entry.element, Edge):
            (await self._changed(entry.element)).pop(entry.key, None)
        else:
            owner = entry.element
            await self._replace_entry(owner, {key: value for key, value in owner.meta.items() if key != entry.key})

    def remove_element(self, element: Vertex | Edge) -> None:
        self._check_right()
        reference = self._reads.reference(element.key, element.item_id)
        staged = self.staged.get(reference)
        if staged is not None and staged.is_new:
            self.staged.forget(reference)
        else:
            self.staged.put(
                reference, StagedItem(element.key, element.item_id, None, False, isinstance(element, Edge), None)
            )

    # --- the end ----------------------------------------------------------------------------------------------------

    async def commit(self) -> None:
        """Write everything that was staged. Raises Overtaken, with nothing written, if the traversal must run again on
        fresh data; PartlyWritten if it cannot."""
        if not self.staged:
            return
        if not self._looks_first and not self._expected and self.staged.is_one_new_item:
            await self._create_single()
            return
        groups: dict[bytes, list[StagedItem]] = {}
        for _, item in self.staged:
            groups.setdefault(self._reads.point(item.key), []).append(item)
        operation = self._ledger.begin(WRITE_KIND)
        keyspace = self._container.keyspace
        written = 0
        try:
            with keyspace.in_flight:
                points = list(groups) if len(groups) == 1 else ordered_points(groups, self._reads.point)
                units = [await self._unit(point, groups[point]) for point in points]
                if len(units) > 1:
                    self._pay_ahead(units)
                for unit in units:
                    cost = unit.cost
                    partition, _ = await self._container.commit(unit)
                    written += 1
                    self._ledger.charge += cost
                    items = groups[unit.point]
                    operation.add(partition, count=len(items), size_bytes=0, charge=cost)
        except (ExpectationFailed, Overtaken, PreconditionFailed):
            if written:
                raise PartlyWritten(written=written, planned=len(groups)) from None
            raise Overtaken from None
        except ItemExists:
            if self._looks_first:
                raise
            raise Overtaken from None
        except AsterismError as problem:
            if not written:
                raise
            raise PartlyWritten(written=written, planned=len(groups), reason=problem.sentence) from problem
        finally:
            operation.end()
        self.staged = StagedItems()
        self._expected = {}
        self.distant = []

    async def _create_single(self) -> None:
        """Write a traversal's only element, without a read: most traversals that write are this."""
        ((_, item),) = self.staged
        assert item.document is not None
        operation = self._ledger.begin(WRITE_KIND)
        container = self._container
        try:
            answer = await container.create_item(item.document, None)
        except ItemExists:
            raise Overtaken from None
        finally:
            operation.end()
        self._ledger.charge += answer.charge
        partition = container.keyspace.record.map.find(self._reads.point(item.key))
        operation.add(partition, count=1, size_bytes=len(answer.body), charge=answer.charge)
        self.staged = StagedItems()

    async def _unit(self, point: bytes, items: Sequence[StagedItem]) -> Transaction:
        """Return the unit of work of one logical partition, decided on what the store has now."""
        work = self._container.begin(self._reads.partition_key(items[0].key))
        if all(item.is_new for item in items) and not self._expected:
            documents = [item.document for item in items if item.document is not None]
            if await work.create_many(documents, looks=self._looks_first) is not None:
                return work
            work = self._container.begin(self._reads.partition_key(items[0].key))
        ends = {reference: end_id for reference, end_id in self._expected.items() if reference.startswith(point)}
        keys = [work.item_key(item.element_id.encode()) for item in items]
        end_keys = [work.item_key(end_id.encode()) for end_id in ends.values()]
        await work.load([*keys, *end_keys])
        for end_key in end_keys:
            await work.read(end_key)
        work.cost = 0.0
        for item, item_key in zip(items, keys, strict=True):
            if item.document is None:
                try:
                    await work.delete(item_key)
                except ItemNotFound:
                    # Another writer removed it first.
                    continue
            elif item.is_new:
                await work.create(item_key, item.document)
            elif item.etag is None:
                await work.upsert(item_key, item.document)
            else:
                await work.replace(item_key, item_key, item.document, Conditions(if_match=item.etag))
        return work

    def _pay_ahead(self, units: Sequence[Transaction]) -> None:
        """Take the costs of all units before the first is written, so that a spent budget leaves nothing half done."""
        keyspace = self._container.keyspace
        for unit in units:
            keyspace.spend(keyspace.record.map.find(unit.point), unit.cost, unit.point)
            self._ledger.charge += unit.cost
            unit.cost = 0.0

"""A container whose partition key is computed: clients write plain items, and name what the key is made of.

Each operation first settles on one logical partition, and then is that of an ordinary container. Where several keys are
possible, all are searched for the item (`key_search`); a new item gets a drawn key, or that of the rule as it is now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from asterism.errors import ItemExists, ItemNotFound, MalformedRequest
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.documents.batch import BatchAnswer, Operation, OperationKind
from asterism.models.documents.codec import Document
from asterism.models.documents.container import Container
from asterism.models.documents.key_search import FoundItem, search_item
from asterism.models.documents.results import ItemAnswer
from asterism.models.documents.transaction import UNCONDITIONAL, Conditions, DocumentEdit
from asterism.partitioning.computed_key import ComputedKey
from asterism.partitioning.partition_key import PartitionKey, named_values

_WRITES_DOCUMENT = frozenset({OperationKind.CREATE, OperationKind.UPSERT, OperationKind.REPLACE})

_ONE_KEY_NEEDED = (
    "A transaction runs in one logical partition, and this key stands for {count}. Name the value of the partition key "
    "itself, with its suffix."
)


class ComputedKeyContainer(Container):
    """Every `key` that a method takes is what a request names (`ComputedKey.keys_named`), or one of the keys."""

    __slots__ = ()

    @property
    def _rule(self) -> ComputedKey:
        rule = self.planner.computed_key
        assert rule is not None, "a container keeps its rule, and its class with it"
        return rule

    def key_named(self, text: str) -> PartitionKey:
        return cast(PartitionKey, named_values(text))

    def keys_named(self, key: PartitionKey) -> list[PartitionKey]:
        return self._rule.keys_named(key)

    # --- single items -----------------------------------------------------------------------------------------------

    async def read_item(
        self,
        item_id: bytes,
        key: PartitionKey,
        *,
        session: Mapping[int, int] | None = None,
        router: PartitionRouter | None = None,
    ) -> ItemAnswer:
        keys = self.keys_named(key)
        if len(keys) == 1:
            return await super().read_item(item_id, keys[0], session=session, router=router)
        search = await search_item(self, router or self._services.router, item_id, keys, session=session)
        found = search.found
        if found is None:
            raise self._not_found(item_id, search.cost)
        return ItemAnswer(found.body, self.codec.etag(found.tag), found.partition.id, found.lsn, search.cost)

    async def create_item(
        self, document: Document, key: PartitionKey | None, *, indexes: bool | None = None
    ) -> ItemAnswer:
        rule, item_id = self._rule, self.codec.id_of(document)
        own_key, *earlier = rule.keys_of_new(self._keys_of(document, key), item_id)
        spent = 0.0
        if earlier:
            # The item may be there under an earlier count of suffixes.
            found, spent = await self._search(item_id, earlier)
            if found is not None:
                raise ItemExists(item_id=self.codec.id_text(item_id))
        answer = await super().create_item(rule.fill(document, own_key), own_key, indexes=indexes)
        return _with_cost(answer, spent)

    async def upsert_item(
        self,
        document: Document,
        key: PartitionKey | None,
        *,
        conditions: Conditions = UNCONDITIONAL,
        indexes: bool | None = None,
    ) -> ItemAnswer:
        keys, item_id = self._keys_of(document, key), self.codec.id_of(document)
        found, spent = await self._search(item_id, keys) if len(keys) > 1 else (None, 0.0)
        own_key = self._key_of_new(keys, item_id) if found is None else keys[found.place]
        answer = await super().upsert_item(document, own_key, conditions=conditions, indexes=indexes)
        return _with_cost(answer, spent)

    async def replace_item(
        self,
        item_id: bytes,
        document: Document,
        key: PartitionKey | None,
        *,
        conditions: Conditions = UNCONDITIONAL,
        indexes: bool | None = None,
    ) -> ItemAnswer:
        own_key, spent = await self._located(item_id, self._keys_of(document, key))
        answer = await super().replace_item(item_id, document, own_key, conditions=conditions, indexes=indexes)
        return _with_cost(answer, spent)

    async def patch_item(
        self,
        item_id: bytes,
        edit: DocumentEdit,
        key: PartitionKey,
        *,
        conditions: Conditions = UNCONDITIONAL,
        indexes: bool | None = None,
    ) -> ItemAnswer:
        own_key, spent = await self._located(item_id, self.keys_named(key))
        answer = await super().patch_item(item_id, edit, own_key, conditions=conditions, indexes=indexes)
        return _with_cost(answer, spent)

    async def delete_item(
        self, item_id: bytes, key: PartitionKey, *, conditions: Conditions = UNCONDITIONAL
    ) -> ItemAnswer:
        own_key, spent = await self._located(item_id, self.keys_named(key))
        return _with_cost(await super().delete_item(item_id, own_key, conditions=conditions), spent)

    # --- several operations at once ---------------------------------------------------------------------------------

    async def run_batch(self, key: PartitionKey, operations: Sequence[Operation]) -> BatchAnswer:
        own_key, spent = await self._key_of_unit(key, operations)
        answer = await super().run_batch(own_key, operations)
        return BatchAnswer(answer.results, answer.range_id, answer.lsn, round(answer.charge + spent, 2))

    async def key_of_unit(self, key: PartitionKey | None, operations: Sequence[Operation] = ()) -> PartitionKey:
        return (await self._key_of_unit(key, operations))[0]

    async def _key_of_unit(
        self, key: PartitionKey | None, operations: Sequence[Operation]
    ) -> tuple[PartitionKey, float]:
        """Return the only key that the operations can share: where their items are, or else one for new items."""
        keys: Sequence[PartitionKey] | None = None if key is None else self.keys_named(key)
        for operation in operations:
            if operation.kind in _WRITES_DOCUMENT:
                keys = self._rule.keys_of(operation.document, keys)
        if keys is not None and len(keys) == 1:
            return keys[0], 0.0
        if keys is None or not operations:
            raise MalformedRequest(reason=_ONE_KEY_NEEDED.format(count="several" if keys is None else len(keys)))
        spent = 0.0
        for operation in operations:
            # Those that a create may conflict with, or all that another operation may mean.
            places = keys
            if operation.kind is OperationKind.CREATE:
                places = self._rule.keys_of_new(keys, operation.item_id)
            found, cost = await self._search(operation.item_id, places)
            spent += cost
            if found is not None:
                return places[found.place], spent
        return self._key_of_new(keys, operations[0].item_id), spent

    # --- keys -------------------------------------------------------------------------------------------------------

    def _own_key(self, document: Document, key: PartitionKey | None) -> PartitionKey:  # noqa: ARG002
        """Return the key that was settled on; that the document may have it was checked then."""
        assert key is not None, "a computed key is settled on before a document is written"
        return key

    def with_own_key(self, document: Document) -> tuple[Document, PartitionKey]:
        key = self._key_of_new(self._rule.keys_of(document), self.codec.stored_id(document))
        return self._rule.fill(document, key), key

    def _keys_of(self, document: Document, key: PartitionKey | None) -> Sequence[PartitionKey]:
        return self._rule.keys_of(document, None if key is None else self.keys_named(key))

    def _key_of_new(self, keys: Sequence[PartitionKey], item_id: bytes) -> PartitionKey:
        """Return the key of an item that is not there yet."""
        return self._rule.keys_of_new(keys, item_id)[0]

    async def _located(self, item_id: bytes, keys: Sequence[PartitionKey]) -> tuple[PartitionKey, float]:
        """Return the key of an item that must be there, and the cost of the search for it."""
        if len(keys) == 1:
            return keys[0], 0.0
        found, spent = await self._search(item_id, keys)
        if found is None:
            raise self._not_found(item_id, spent)
        return keys[found.place], spent

    async def _search(self, item_id: bytes, keys: Sequence[PartitionKey]) -> tuple[FoundItem | None, float]:
        search = await search_item(self, self._services.router, item_id, keys)
        return search.found, search.cost

    def _not_found(self, item_id: bytes, cost: float) -> ItemNotFound:
        return ItemNotFound(item_id=self.codec.id_text(item_id), request_units=cost)


def _with_cost(answer: ItemAnswer, spent: float) -> ItemAnswer:
    if spent:
        answer.charge = round(answer.charge + spent, 2)
    return answer

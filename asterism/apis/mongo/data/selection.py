"""Documents of one collection that a filter selects, in the order that was asked for.

A scan gives candidates; the filter decides on each. Documents in no useful order are collected and sorted here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from asterism.apis.mongo.data.bounds import index_key_of
from asterism.apis.mongo.data.hints import Hint
from asterism.apis.mongo.data.near import metadata_of, near_index
from asterism.apis.mongo.data.ordering import NATURAL, NO_ORDER, SortOrder
from asterism.apis.mongo.data.partial_indexes import implied_indexes
from asterism.apis.mongo.data.text_index import bind_text
from asterism.apis.mongo.data.variables import CommandScope
from asterism.languages.mongo.expressions.misc import METADATA_FIELD
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.filters.match import Condition, Match
from asterism.languages.mongo.geo.near import NearSearch
from asterism.languages.mongo.javascript import runs_javascript
from asterism.models.collections.collection import Collection
from asterism.models.collections.layout import DocumentKey
from asterism.models.collections.records import CollectionRecord
from asterism.models.collections.results import NoSuchCollection, ScanPlan
from asterism.models.collections.scans import ScanQuery
from asterism.reading.turns import Turns
from asterism.values.bson.codec import decode
from asterism.values.bson.types import (
    MISSING,
    Binary,
    DatetimeMS,
    Decimal128,
    Document,
    Int64,
    ObjectId,
    Timestamp,
)

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# MongoDB's own limit for a sort without a disk.
SORT_BYTES_MAX = 100 * 1024 * 1024
# Values that an id is found by without a look at the filter.
_PLAIN_IDS = frozenset({ObjectId, str, int, Int64, float, bool, DatetimeMS, bytes, Binary, Decimal128, Timestamp})
# Indexes that answer only conditions of their own kind.
_WILDCARD = "$**"


class CollectionGone(MongoFailure):
    """The documents that are being read are gone, or at another place."""

    def __init__(self, name: str) -> None:
        super().__init__(175, f"collection dropped. UUID of {name} is no longer known")


class Hit(NamedTuple):
    """A document that the filter holds for. `document` is the decoded body, if the filter needed it."""

    key: DocumentKey
    body: bytes
    document: Document | None
    # The score of a text search or the distance from a point, under the names of `$meta`.
    metadata: Document | None = None

    def decoded(self) -> Document:
        return decode(self.body) if self.document is None else self.document

    def with_metadata(self) -> Document:
        """Return the document as the stages of a pipeline and sorts take it."""
        document = self.decoded()
        return document if self.metadata is None else {**document, METADATA_FIELD: self.metadata}


def plain_id(filter: Document) -> Any:
    """Return the id that a filter asks for if it asks for nothing else, or MISSING."""
    if len(filter) == 1:
        value = filter.get("_id", MISSING)
        if type(value) in _PLAIN_IDS:
            return value
    return MISSING


class Selection:
    """A compiled filter with its order and its index. `plan` is there once the scan is open."""

    __slots__ = (
        "_accepts",
        "_collection",
        "_near",
        "_needs",
        "_query",
        "_runs_scripts",
        "_sort_bytes_max",
        "_test",
        "match",
        "order",
        "plan",
        "scope",
    )  # fmt: skip

    def __init__(
        self,
        collection: Collection,
        scope: CommandScope,
        filter: Document,
        *,
        order: SortOrder = NO_ORDER,
        hint: Hint | None = None,
        collation: Mapping[str, Any] | None = None,
        accepts: Callable[[Document], bool] | None = None,
        wanted: int = 0,
        sort_bytes_max: int = SORT_BYTES_MAX,
        near: NearSearch | None = None,
        metadata: AbstractSet[str] = frozenset(),
        allowed: frozenset[str] | None = None,
    ) -> None:
        """`accepts` is a condition beside the filter. `wanted` is about how many documents will be read, 0 for all.
        `near` is a search for places beside the filter. `metadata` names what readers of the results will ask of
        them beside their fields. `allowed` are the indexes of an index filter, which a hint does not overrule."""
        self.scope = scope
        self.order = order
        self.match: Match = compile_filter(filter, scope.context)
        self._runs_scripts = self.match.uses_where or (self.match.uses_expr and runs_javascript(filter))
        self.plan = ScanPlan()
        self._collection = collection
        self._accepts = accepts
        self._sort_bytes_max = sort_bytes_max
        self._test = self.match.with_variables(scope.variables) if filter else None
        record = collection.record
        implied = implied_indexes(record, self.match, scope.context)
        if self.match.text is not None:
            if hint is not None:
                raise MongoFailure(2, "text and hint not allowed in same query")
            bind_text(self.match, record, implied, order)
            allowed = None
        self._needs = set(metadata)
        if self.match.text is not None and order.has_metadata:
            self._needs.add("textScore")
        self._near: NearSearch | None = near or self.match.geo
        if allowed is not None and hint is not None and hint.name != NATURAL:
            hint = None
        if self._near is not None:
            # Only the index of the search can find what is near.
            hint = Hint(near_index(record, self._near, implied).name)
            allowed = None
        elif hint is not None:
            _check_hint(hint, record, self.match)
        elif order.natural:
            hint = Hint(NATURAL, order.natural < 0)
        self._query = ScanQuery(
            conditions=self.match.conditions,
            equalities=_equalities(self.match, scope) if record.shard_key else {},
            sort=order.paths,
            hint=None if hint is None else hint.name,
            collation=collation,
            collate=scope.collate,
            implied=implied,
            wanted=wanted,
            is_reversed=hint is not None and hint.is_reversed,
            allowed=allowed,
            is_complete=accepts is None and scope.collate is None and self.match.is_planned,
        )

    @property
    def query(self) -> ScanQuery:
        return self._query

    def accepts(self, document: Document) -> bool:
        """Return whether a document, as it is now, is one of the selected."""
        if self._test is not None and not self._test(document):
            return False
        return self._accepts is None or self._accepts(document)

    async def hits(self, call: Call) -> AsyncGenerator[list[Hit], None]:
        """Yield the selected documents in slices, in order."""
        if self._near is not None and self.order.ordering is None:
            async for near_hits in self._by_distance(self._near, call):
                yield near_hits
            return
        scan = await self._collection.open_scan(self._query, unit=call.unit, spent=call.spent)
        self.plan = scan.plan
        self._note_use(call)
        candidates = scan.batches()
        try:
            if self.order.ordering is not None and (self.order.has_metadata or not scan.plan.is_sorted):
                yield await self._sorted(candidates, call)
                return
            async for found in candidates:
                call.check_time()
                hits = await self._selected(found, call, is_exact=scan.plan.is_exact)
                if hits:
                    yield hits
        except NoSuchCollection as gone:
            raise CollectionGone(gone.name) from None
        finally:
            await candidates.aclose()

    def _note_use(self, call: Call) -> None:
        record = self._collection.record
        use = call.context.usage.of(call.account, record.database, record.name)
        index = None if self.plan.index is None else record.index(self.plan.index)
        if index is None:
            use.scans += 1
        else:
            use.index_uses[record.uuid, index.number] += 1

    async def _by_distance(self, search: NearSearch, call: Call) -> AsyncGenerator[list[Hit], None]:
        """Yield the selected documents in the order of distance: those of a small circle first, and those of larger
        ones for as long as the reader wants more."""
        met: set[DocumentKey] = set()
        waiting: list[tuple[float, int, Hit]] = []
        for reach in search.rings():
            condition = Condition(search.path, "geo", search.within(reach))
            # The first condition on a path of places is the one that an index goes by.
            query = replace(self._query, conditions=(condition, *self._query.conditions))
            scan = await self._collection.open_scan(query, unit=call.unit, spent=call.spent)
            self.plan = scan.plan
            self._note_use(call)
            candidates = scan.batches()
            try:
                async for found in candidates:
                    call.check_time()
                    for hit in await self._selected([entry for entry in found if entry.key not in met], call):
                        met.add(hit.key)
                        if hit.metadata:
                            waiting.append((hit.metadata["geoNearDistance"], len(met), hit))
            finally:
                await candidates.aclose()
            waiting.sort()
            ready = [hit for distance, _, hit in waiting if distance <= reach]
            del waiting[: len(ready)]
            if ready:
                yield ready

    async def _selected(self, found: Any, call: Call, *, is_exact: bool = False) -> list[Hit]:
        """Return the candidates that the filter holds for. Filters with scripts are evaluated in turns, so that other
        requests proceed while a script runs."""
        if not self._runs_scripts:
            return self._select(found, is_exact=is_exact)
        turns = Turns(call.context.monotonic_seconds, call.check_time)
        return await turns.run(self._select, found, is_exact=is_exact)

    def _select(self, found: Any, *, is_exact: bool = False) -> list[Hit]:
        """Return the candidates that the filter holds for, with their metadata."""
        hits = self._accepted(found, is_exact=is_exact)
        if self._near is None and not self._needs:
            return hits
        return [hit._replace(metadata=self._metadata(hit.decoded())) for hit in hits]

    def _metadata(self, document: Document) -> Document:
        known: Document = {}
        if self._near is not None and (nearest := self._near.find(document)) is not None:
            known |= metadata_of(nearest)
        if self.match.text is not None and "textScore" in self._needs:
            known["textScore"] = self.match.text.score(document)
        if "indexKey" in self._needs and self.match.text is None and self.plan.index is not None:
            known["indexKey"] = index_key_of(document, self.plan.index, self._collection)
        return known

    def _accepted(self, found: Any, *, is_exact: bool = False) -> list[Hit]:
        test, accepts = self._test, self._accepts
        if is_exact or (test is None and accepts is None):
            return [Hit(key, body, None) for key, body in found]
        if accepts is not None:
            decoded = [(key, body, decode(body)) for key, body in found]
            return [Hit(*entry) for entry in decoded if self.accepts(entry[2])]
        assert test is not None, "one of the two conditions is there"
        if self.match.uses_where:
            decoded = [(key, body, decode(body)) for key, body in found]
            self.match.foresee([document for _, _, document in decoded])
            return [Hit(*entry) for entry in decoded if test(entry[2])]
        hits = []
        for key, body in found:
            document = decode(body)
            if test(document):
                hits.append(Hit(key, body, document))
        return hits

    async def _sorted(self, candidates: AsyncGenerator[Any, None], call: Call) -> list[Hit]:
        ordering = self.order.ordering
        assert ordering is not None, "only what has an order is sorted"
        entries: list[tuple[Any, Hit]] = []
        size = 0
        async for found in candidates:
            call.check_time()
            for hit in await self._selected(found, call):
                size += len(hit.body)
                entries.append((ordering.key(hit.with_metadata()), hit._replace(document=None)))
            if size > self._sort_bytes_max:
                raise MongoFailure(
                    292,
                    f"Sort exceeded memory limit of {self._sort_bytes_max} bytes, but did not opt in to external "
                    "sorting.",
                )
        entries.sort(key=lambda entry: entry[0])
        return [hit for _, hit in entries]

    async def first(self, call: Call) -> Hit | None:
        """Return the first of the selected documents."""
        found = self.hits(call)
        try:
            async for hits in found:
                return hits[0]
        finally:
            await found.aclose()
        return None

    async def all_keys(self, call: Call) -> list[DocumentKey]:
        """Return the keys of all selected documents. Writers take them all before the first change, so that no document
        is met again where its change has moved it in the index."""
        keys: list[DocumentKey] = []
        async for hits in self.hits(call):
            keys += [hit.key for hit in hits]
        return keys


def _equalities(match: Match, scope: CommandScope) -> dict[str, Any]:
    """Return the only values that paths may have. Under a collation other texts are equal, too."""
    return {
        condition.path: condition.value
        for condition in match.conditions
        if condition.operator == "eq" and not (scope.collate is not None and isinstance(condition.value, str))
    }


def _check_hint(hint: Hint, record: CollectionRecord, match: Match) -> None:
    index = record.index(hint.name)
    if index is None:
        return
    is_wildcard = any(path == _WILDCARD or path.endswith("." + _WILDCARD) for path in index.key)
    if is_wildcard and not match.conditions:
        raise MongoFailure(
            291, "error processing query: No query solutions: the hinted index cannot answer a query without conditions"
        )

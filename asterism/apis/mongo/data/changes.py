"""Changes of single statements: what `update`, `delete`, `findAndModify` and `bulkWrite` have in common.

A document is found by a scan, and decided on again where it is written: another writer may have changed it meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from asterism.apis.mongo.admission import hold_until_admitted
from asterism.apis.mongo.data.documents import check_id
from asterism.apis.mongo.data.hints import check_hint_type, resolve_hint
from asterism.apis.mongo.data.ordering import NO_ORDER, read_sort
from asterism.apis.mongo.data.retries import retry_token
from asterism.apis.mongo.data.scopes import CollationChoice, read_collation
from asterism.apis.mongo.data.selection import CollectionGone, Selection, plain_id
from asterism.apis.mongo.data.targets import find_or_create, find_to_change
from asterism.apis.mongo.data.validation import Validator, validator_of
from asterism.apis.mongo.data.variables import CommandScope
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.updates.compile import Update, check_result_size, compile_update
from asterism.models.collections.collection import Collection
from asterism.models.collections.layout import DocumentKey, document_key
from asterism.models.collections.results import (
    Change,
    DuplicateKey,
    NoSuchCollection,
    RetriedStatement,
    RetryToken,
    ShardKeyProblem,
)
from asterism.models.collections.rules import CollectionRules
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.order import equal
from asterism.values.bson.types import MISSING, Document, ObjectId

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# Documents of known batch of a change of many.
_CHUNK = 500
# A document that others keep changing away from the filter is looked for as often.
_ATTEMPTS_MAX = 100


@dataclass(slots=True)
class Statement:
    """One update or delete, as it was read from a command."""

    filter: Document
    # None for a delete.
    update: Any = None
    is_multi: bool = False
    is_upsert: bool = False
    array_filters: Sequence[Document] = ()
    hint: Any = MISSING
    sort: Document | None = None
    collation: Document | None = None
    constants: Document | None = None
    # The place in the command.
    index: int = 0


@dataclass(slots=True)
class Outcome:
    """The outcome of a statement. `before` and `after` are of the known document of a statement that is not multi."""

    matched: int = 0
    modified: int = 0
    upserted: Any = MISSING
    before: Document | None = None
    after: Document | None = None
    # The outcome of a statement that was carried out before.
    retried: Document | None = None

    def to_document(self) -> Document:
        """Return what a repeated statement is answered from."""
        record: Document = {"n": self.matched, "m": self.modified}
        if self.upserted is not MISSING:
            record["u"] = self.upserted
        return record

    @classmethod
    def from_document(cls, record: Document) -> Outcome:
        return cls(record.get("n", 0), record.get("m", 0), record.get("u", MISSING), retried=record)


class _Gone(Exception):
    """The document no longer matches."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """The part of a statement on many documents that is left when the collection is re-keyed."""

    done: Outcome
    # By the rules of the place that they were found at.
    keys: frozenset[DocumentKey]
    rules: CollectionRules

    def accepts(self, key: DocumentKey, document: Document) -> bool:
        point = self.rules.point_of(document, allow_missing=True)
        return DocumentKey(point, key.id_key) in self.keys


class _Interrupted(Exception):
    def __init__(self, rest: _Rest) -> None:
        super().__init__()
        self.rest = rest


class Changer:
    """Carries out the statements of known command on known collection."""

    __slots__ = ("_bypass", "_call", "_collection", "_record", "_scope")

    def __init__(self, call: Call, collection: Collection, scope: CommandScope, *, bypass: bool = False) -> None:
        """`scope` has the variables of the command; a statement has its own collation."""
        self._call = call
        self._collection = collection
        self._record = collection.record
        self._scope = scope
        self._bypass = bypass

    async def run(self, statement: Statement, *, describe: Any = None) -> Outcome:
        """Carry out a statement. `describe` makes the document that a repeated statement is answered from."""
        # Of a statement on many documents, those that a collection which was re-keyed meanwhile still had to change.
        rest: _Rest | None = None
        while True:
            try:
                work = _Work(self._call, self._collection, self._scope, statement, self._bypass)
                return await (work.many(rest) if statement.is_multi else work.first(describe))
            except (NoSuchCollection, CollectionGone):
                if self._call.unit is not None:
                    raise
            except _Interrupted as interrupted:
                rest = interrupted.rest
            found = await self._where_it_is(statement)
            if found is None:
                return Outcome() if rest is None else rest.done
            if rest is not None and found.record.uuid != rest.rules.record.uuid:
                # The rest is gone with the collection.
                return rest.done
            self._collection = found

    async def _where_it_is(self, statement: Statement) -> Collection | None:
        """Return the collection that takes the place of one that was dropped or re-keyed meanwhile."""
        await self._call.store.catch_up()
        if statement.is_upsert:
            return await find_or_create(self._call, self._record.database, self._record.name)
        return find_to_change(self._call, self._record.database, self._record.name)


def check_statement(statement: Statement, scope: CommandScope) -> None:
    """Check a statement whose collection does not exist."""
    collation = read_collation(statement.collation)
    own = scope.with_collation(collation.collate)
    compile_filter(statement.filter, own.context)
    if statement.hint is not MISSING:
        check_hint_type(statement.hint)
    if statement.update is not None:
        _compile(statement, own)


def _compile(statement: Statement, scope: CommandScope) -> tuple[Update, CommandScope]:
    if statement.constants is not None:
        if not isinstance(statement.update, list):
            raise MongoFailure(51198, "Constant values may only be specified for pipeline updates")
        scope = scope.with_values(statement.constants)
    update = compile_update(
        statement.update,
        scope.context,
        array_filters=statement.array_filters,
        is_upsert=statement.is_upsert,
        is_multi=statement.is_multi,
    )
    return update, scope


@dataclass(slots=True)
class _Work:
    """One statement under way."""

    call: Call
    collection: Collection
    command_scope: CommandScope
    statement: Statement
    bypass: bool
    scope: CommandScope = field(init=False)
    selection: Selection = field(init=False)
    update: Update | None = field(init=False, default=None)
    update_scope: CommandScope = field(init=False)
    validator: Validator | None = field(init=False, default=None)
    outcome: Outcome = field(init=False, default_factory=Outcome)

    def __post_init__(self) -> None:
        statement, record = self.statement, self.collection.record
        collation: CollationChoice = read_collation(statement.collation, record.options.get("collation"))
        self.scope = self.update_scope = self.command_scope.with_collation(collation.collate)
        is_single = plain_id(statement.filter) is not MISSING
        hint = None if statement.hint is MISSING else resolve_hint(statement.hint, record)
        self.selection = Selection(
            self.collection,
            self.scope,
            statement.filter,
            # A single document has no order.
            order=NO_ORDER if is_single else read_sort(statement.sort, self.scope.context),
            hint=hint,
            collation=collation.specification,
            wanted=0 if statement.is_multi else 1,
            allowed=self.call.context.index_filters.allowed(
                record, statement.filter, statement.sort or None, None, collation.specification
            ),
        )
        if statement.update is not None:
            self.update, self.update_scope = _compile(statement, self.scope)
            self.validator = validator_of(record, self.scope, bypass=self.bypass)

    @property
    def rules(self) -> CollectionRules:
        return self.collection.rules

    # --- known document -----------------------------------------------------------------------------------------------

    async def first(self, describe: Any) -> Outcome:
        token = retry_token(
            self.call,
            self.statement.index,
            lambda _: self.outcome.to_document() if describe is None else describe(self.outcome),
        )
        key = self._known_key()
        if key is None and token is not None:
            point = self.rules.pinned_point(self.selection.query.equalities)
            if point is None:
                token.is_anywhere = True
                known = await self.collection.retried_anywhere(token)
            else:
                known = await self.collection.retried(token, point)
            if known is not None:
                return Outcome.from_document(known)
        if key is not None:
            try:
                return await self._change(key, token, may_insert=self.statement.is_upsert)
            except _Gone:
                return Outcome()
        for _ in range(_ATTEMPTS_MAX):
            self.call.check_time()
            hit = await self.selection.first(self.call)
            try:
                if hit is not None:
                    return await self._change(hit.key, token, may_insert=False)
                if not self.statement.is_upsert:
                    return Outcome()
                return await self._upsert(token)
            except _Gone:
                continue
            except DuplicateKey as found:
                if hit is not None or not self._is_wanted(found):
                    raise
        raise MongoFailure(112, "The document is changed by too many writers at once; please repeat the command.")

    def _known_key(self) -> DocumentKey | None:
        """Return the key of the only document that can match; None if it has to be looked for."""
        statement = self.statement
        wanted = plain_id(statement.filter)
        if wanted is MISSING or (self.scope.collate is not None and isinstance(wanted, str)):
            return None
        point = self.rules.pinned_point({"_id": wanted})
        return None if point is None else document_key(point, wanted)

    async def _change(self, key: DocumentKey, token: RetryToken | None, *, may_insert: bool) -> Outcome:
        def decide(_: DocumentKey, body: bytes | None) -> Change:
            if body is None:
                if not may_insert:
                    raise _Gone
                return self._insertion()
            return self._decide(body)

        result = await self.collection.change((key,), decide, retry=token, unit=self.call.unit, spent=self.call.spent)
        return Outcome.from_document(result.outcome) if isinstance(result, RetriedStatement) else self.outcome

    def _decide(self, body: bytes) -> Change:
        document = decode(body)
        if not self.selection.accepts(document):
            raise _Gone
        if self.update is None:
            self.outcome = Outcome(1, 1, before=document)
            return Change.delete()
        change, after = self._changed(document)
        self.outcome = Outcome(1, int(after is not None), before=document, after=document if after is None else after)
        return change

    def _changed(self, document: Document) -> tuple[Change, Document | None]:
        """Return the change of a document, and the document after it, None if it stays as it is."""
        update = self.update
        assert update is not None, "a delete changes nothing"
        after = update.apply(document, match=self.selection.match, variables=self.update_scope.variables)
        if after is None:
            return Change.keep(), None
        rules = self.rules
        if rules.is_sharded:
            self._check_shard_key(document, after)
        if self.validator is not None:
            self.validator.check(after, document)
        body = encode(after)
        check_result_size(len(body))
        if update.kind == "replacement":
            return Change.put(body, document=after, operation="replace"), after
        return Change.put(body, update.describe(document, after), document=after, operation="update"), after

    def _check_shard_key(self, before: Document, after: Document) -> None:
        rules = self.rules
        pairs = zip(rules.record.shard_key, rules.shard_values(before), rules.shard_values(after), strict=True)
        for path, old, new in pairs:
            if (old is MISSING) != (new is MISSING) or (old is not MISSING and not equal(old, new)):
                raise MongoFailure(
                    66, f"After applying the update, the (immutable) field '{path}' was found to have been altered"
                )

    # --- inserting --------------------------------------------------------------------------------------------------

    def _new_document(self) -> tuple[Document, bytes]:
        update = self.update
        assert update is not None, "a delete inserts nothing"
        document = update.new_document(self.selection.match.equalities(), variables=self.update_scope.variables)
        if "_id" not in document:
            document = {"_id": ObjectId(), **document}
        if self.validator is not None:
            self.validator.check(document, None)
        body = encode(document)
        check_id(body)
        check_result_size(len(body))
        return document, body

    def _insertion(self) -> Change:
        document, body = self._new_document()
        self.outcome = Outcome(0, 0, document["_id"], None, document)
        return Change.put(body, document=document, operation="insert")

    async def _upsert(self, token: RetryToken | None) -> Outcome:
        document, body = self._new_document()
        rules = self.rules
        allow_missing = not rules.is_sharded or self.call.context.settings.allow_missing_shard_key
        try:
            point = rules.point_of(document, allow_missing=allow_missing)
        except ShardKeyProblem:
            raise MongoFailure(
                61,
                "query in command must target a single shard key: an upsert needs "
                f"{', '.join(rules.record.shard_key)} in its filter or in the new document",
            ) from None
        key = document_key(point, document["_id"])
        insertion = Change.put(body, document=document, operation="insert")
        self.outcome = Outcome(0, 0, document["_id"], None, document)

        def decide(_: DocumentKey, present: bytes | None) -> Change:
            if present is not None:
                raise DuplicateKey(rules.record.namespace, "_id_", {"_id": 1}, {"_id": document["_id"]})
            return insertion

        result = await self.collection.change((key,), decide, retry=token, unit=self.call.unit, spent=self.call.spent)
        return Outcome.from_document(result.outcome) if isinstance(result, RetriedStatement) else self.outcome

    def _is_wanted(self, found: DuplicateKey) -> bool:
        """Return whether the filter asks for the document that was in the way of an upsert: another writer has inserted
        it meanwhile."""
        equalities = self.selection.match.equalities()
        return all(
            path in equalities and equal(equalities[path], value, self.scope.collate)
            for path, value in found.key_value.items()
        )

    # --- many documents ---------------------------------------------------------------------------------------------

    async def many(self, rest: _Rest | None) -> Outcome:
        rules = self.rules
        if rest is None:
            keys = await self.selection.all_keys(self.call)
            total = Outcome()
        else:
            found = [hit async for hits in self.selection.hits(self.call) for hit in hits]
            keys = [hit.key for hit in found if rest.accepts(hit.key, hit.decoded())]
            total = rest.done
        if not keys and rest is None and self.statement.is_upsert:
            return await self._upsert(None)
        # Those of one logical partition are written together.
        keys.sort()
        at = 0
        while at < len(keys):
            self.call.check_time()
            matched: set[DocumentKey] = set()
            modified: set[DocumentKey] = set()
            chunk = _chunk(keys, at)
            try:
                if at == 0:
                    await self._change_many(chunk, matched, modified)
                else:
                    # Drivers repeat what was throttled, and would change the documents before these again.
                    await hold_until_admitted(self.call, partial(self._change_many, chunk, matched, modified))
            except NoSuchCollection:
                if self.call.unit is not None:
                    raise
                raise _Interrupted(_Rest(total, frozenset(keys[at:]), rules)) from None
            at += len(chunk)
            total.matched += len(matched)
            total.modified += len(modified)
        return total

    async def _change_many(
        self, keys: Sequence[DocumentKey], matched: set[DocumentKey], modified: set[DocumentKey]
    ) -> None:
        def decide(key: DocumentKey, body: bytes | None) -> Change:
            # Called again for a document that another writer has changed: the last decision counts.
            matched.discard(key)
            modified.discard(key)
            document = None if body is None else decode(body)
            if document is None or not self.selection.accepts(document):
                return Change.keep()
            matched.add(key)
            if self.update is None:
                return Change.delete()
            change, after = self._changed(document)
            if after is not None:
                modified.add(key)
            return change

        await self.collection.change(keys, decide, unit=self.call.unit, spent=self.call.spent)


def _chunk(keys: Sequence[DocumentKey], at: int) -> Sequence[DocumentKey]:
    """Return the next keys that are written in one batch: all of one logical partition, so that a batch that was not
    written has changed none of them."""
    end = at + 1
    while end < min(len(keys), at + _CHUNK) and keys[end].point == keys[at].point:
        end += 1
    return keys[at:end]

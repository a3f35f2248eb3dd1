"""Events and streams of changes, with a log and a reader of our own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asterism.apis.mongo.change_streams.events import Event, EventMaker
from asterism.apis.mongo.change_streams.stream import ChangeStream
from asterism.errors import RequestRateTooLarge, StorageUnavailable
from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.change_streams import ChangeStreamOptions, read_options
from asterism.languages.mongo.stages.pipeline import Pipeline, compile_pipeline
from asterism.languages.mongo.stages.resume_tokens import ResumeToken, TokenKind, read_token
from asterism.languages.mongo.stages.stage import MemoryContext, PipelinePlace, RunContext
from asterism.models.collections.change_position import ChangePosition
from asterism.models.collections.change_reader import ChangeReader, HistoryLost
from asterism.models.collections.change_scope import ChangeScope
from asterism.models.collections.change_signal import ChangeSignal
from asterism.models.collections.changes import ChangeLog, LoggedChange
from asterism.models.collections.open_readers import OpenReaders
from asterism.models.collections.store import CollectionStore
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import Binary, DatetimeMS, Document, Int64, Timestamp

USERS = ChangeScope("acct", "shop", "users")


class Bodies:
    """The bodies of one document: before, after, and now."""

    def __init__(self, before: Document | None, after: Document | None, now: Document | None) -> None:
        self._bodies = [None if body is None else encode(body) for body in (before, after, now)]

    async def body_before(self, _: LoggedChange) -> bytes | None:
        return self._bodies[0]

    async def body(self, _: LoggedChange) -> bytes | None:
        return self._bodies[1]

    async def current_body(self, _: LoggedChange) -> bytes | None:
        return self._bodies[2]


def logged(operation: str, **fields: Any) -> LoggedChange:
    given: dict[str, Any] = {
        "keyspace": None, "database": "shop", "operation": operation, "name": "users", "uuid": b"u" * 16,
        "time": 5 << 32 | 2, "wall_milliseconds": 5123, "lsn": 1, "place": 0, "number": 1, "point": b"",
        "key": {"_id": 1}, "before": None, "description": None, "transaction": None, "keeps_images": False,
        "is_view": False, "position": ChangePosition(),
    }  # fmt: skip
    return LoggedChange(**(given | fields))


async def made(
    change: LoggedChange,
    specification: Document | None = None,
    *,
    before: Document | None = None,
    after: Document | None = None,
    now: Document | None = None,
    scope: ChangeScope = USERS,
) -> Document:
    options = read_options(specification or {})
    log = cast(ChangeLog, Bodies(before, after, now))
    return (await EventMaker(log, scope, options).make(change)).document


async def test_an_insert_has_its_document_and_its_times() -> None:
    event = await made(logged("insert"), after={"_id": 1, "a": 1})
    token = read_token(event.pop("_id"))
    assert (token.kind, token.database, token.collection) == (TokenKind.EVENT, "shop", "users")
    assert event == {
        "operationType": "insert",
        "clusterTime": Timestamp(5, 2),
        "wallTime": DatetimeMS(5123),
        "fullDocument": {"_id": 1, "a": 1},
        "ns": {"db": "shop", "coll": "users"},
        "documentKey": {"_id": 1},
    }


@pytest.mark.parametrize(
    ("choice", "keeps_images", "expected"),
    [
        ("updateLookup", False, {"_id": 1, "n": 3}),
        ("whenAvailable", False, None),
        ("whenAvailable", True, {"_id": 1, "n": 2}),
        ("required", True, {"_id": 1, "n": 2}),
    ],
)
async def test_an_update_has_the_document_that_was_asked_for(
    choice: str, keeps_images: bool, expected: Document | None
) -> None:
    change = logged("update", keeps_images=keeps_images, description={"updatedFields": {"n": 2}})
    event = await made(change, {"fullDocument": choice}, after={"_id": 1, "n": 2}, now={"_id": 1, "n": 3})
    assert event["fullDocument"] == expected
    assert event["updateDescription"] == {"updatedFields": {"n": 2}, "removedFields": [], "truncatedArrays": []}


@pytest.mark.parametrize("specification", [{"fullDocument": "required"}, {"fullDocumentBeforeChange": "required"}])
async def test_a_required_document_that_is_not_kept_is_an_error(specification: Document) -> None:
    with pytest.raises(MongoFailure) as refused:
        await made(logged("update"), specification, before={"_id": 1}, after={"_id": 1})
    assert refused.value.code == 47


async def test_only_expanded_events_show_ambiguous_paths_and_the_id_of_the_collection() -> None:
    change = logged("update", description={"updatedFields": {"a.1": 2}, "disambiguatedPaths": {"a.1": ["a", "1"]}})
    assert "disambiguatedPaths" not in (await made(change))["updateDescription"]
    expanded = await made(change, {"showExpandedEvents": True})
    assert expanded["updateDescription"]["disambiguatedPaths"] == {"a.1": ["a", "1"]}
    assert expanded["collectionUUID"] == Binary(b"u" * 16, 4)


async def test_a_transaction_is_named_by_its_session() -> None:
    event = await made(logged("delete", transaction={"s": b"0123456789abcdefuser", "n": 7}))
    assert (event["lsid"]["id"], event["txnNumber"]) == (Binary(b"0123456789abcdef", 4), Int64(7))
    assert type(event["txnNumber"]) is Int64


async def test_the_drop_of_what_is_watched_is_the_last_event() -> None:
    dropped = logged("drop", key={})
    assert read_token((await made(dropped))["_id"]).kind is TokenKind.LAST_EVENT
    of_database = await made(dropped, scope=ChangeScope("acct", "shop"))
    assert read_token(of_database["_id"]).kind is TokenKind.EVENT


# --- streams --------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Script:
    """A reader that gives prepared pages: events, or a problem."""

    pages: list[Sequence[Event] | Exception]
    scope: ChangeScope = USERS
    position: ChangePosition = field(default_factory=ChangePosition)
    has_more: bool = False

    async def next(self) -> Sequence[Event]:
        page = self.pages.pop(0) if self.pages else ()
        if isinstance(page, Exception):
            raise page
        return page

    async def drain(self) -> None:
        return


def event(number: int, kind: TokenKind = TokenKind.EVENT) -> Event:
    token = ResumeToken(kind, number, b"%d" % number, "shop", "users")
    times = {"clusterTime": Timestamp(0, number), "wallTime": DatetimeMS(0)}
    return Event({"_id": token.document, "operationType": "insert", "n": number, **times}, token)


def stream_of(*pages: Sequence[Event] | Exception, stages: Sequence[Document] = ()) -> ChangeStream:
    clock = SimpleNamespace(now=99)
    router = SimpleNamespace(has_others=False)
    services = SimpleNamespace(signal=ChangeSignal(), hybrid_clock=clock, router=router)
    store = cast(CollectionStore, SimpleNamespace(services=services, readers=OpenReaders()))
    whole = compile_pipeline(
        [{"$changeStream": {}}, *stages], new_context(DatetimeMS(0), Timestamp(1, 1)), place=PipelinePlace()
    )
    rest = Pipeline(whole.specification[1:], whole.stages[1:], whole.context, whole.place)
    reader = cast(ChangeReader[Event], Script(list(pages)))
    return ChangeStream(store, reader, rest, cast(RunContext, MemoryContext()), lambda: 0.0)


def numbers(documents: Sequence[bytes | Document]) -> list[int | None]:
    found = [document if isinstance(document, dict) else decode(document) for document in documents]
    return [document.get("n") for document in found]


async def test_a_slice_knows_the_token_behind_each_of_its_events() -> None:
    stream = stream_of([event(1), event(2), event(3)])
    assert numbers(await anext(stream)) == [1, 2, 3]
    assert read_token(stream.extra(2)["postBatchResumeToken"]).position == b"1"
    assert read_token(stream.extra(1)["postBatchResumeToken"]).position == b"2"
    behind = read_token(stream.extra(0)["postBatchResumeToken"])
    assert (behind.kind, behind.time) == (TokenKind.HIGH_WATER_MARK, 99)


async def test_an_event_that_ends_the_stream_is_followed_by_an_invalidate() -> None:
    stream = stream_of([event(1), event(2, TokenKind.LAST_EVENT)])
    documents = await anext(stream)
    assert numbers(documents) == [1, 2, None]
    assert read_token(stream.extra(0)["postBatchResumeToken"]).kind is TokenKind.INVALIDATE
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_throttled_stream_answers_an_empty_batch_and_goes_on() -> None:
    stream = stream_of(RequestRateTooLarge(retry_after_seconds=0.0), [event(1)])
    assert list(await anext(stream)) == []
    assert numbers(await anext(stream)) == [1]


async def test_events_that_stages_leave_out_move_the_token_on() -> None:
    stream = stream_of([event(1)], stages=[{"$match": {"n": 7}}])
    assert list(await anext(stream)) == []
    assert read_token(stream.extra(0)["postBatchResumeToken"]).kind is TokenKind.HIGH_WATER_MARK


@pytest.mark.parametrize("stage", [{"$project": {"_id": 0}}, {"$set": {"_id": 1}}, {"$replaceWith": {"a": 1}}])
async def test_an_event_without_its_token_is_fatal(stage: Document) -> None:
    with pytest.raises(MongoFailure) as refused:
        await anext(stream_of([event(1)], stages=[stage]))
    assert refused.value.code == 280


async def test_lost_history_has_a_code_of_its_own() -> None:
    with pytest.raises(MongoFailure) as refused:
        await anext(stream_of(HistoryLost()))
    assert refused.value.code == 286


def test_errors_that_pass_are_labeled_as_resumable() -> None:
    stream = stream_of()
    passing = stream.explain_failure(StorageUnavailable(reason="away"))
    assert isinstance(passing, MongoFailure)
    assert "ResumableChangeStreamError" in passing.labels
    lasting = stream.explain_failure(MongoFailure(280, "no"))
    assert isinstance(lasting, MongoFailure)
    assert "ResumableChangeStreamError" not in lasting.labels


def test_options_have_one_token() -> None:
    assert ChangeStreamOptions().token is None

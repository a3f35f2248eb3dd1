"""The command `aggregate` with `$changeStream`: where a stream may be opened, and where it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asterism.apis.mongo.change_streams.events import EventMaker, invalidate_after
from asterism.apis.mongo.change_streams.stream import ChangeStream
from asterism.apis.mongo.data.aggregate import AggregateOptions, PreparedPipeline, find_source
from asterism.errors import MalformedRequest
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.change_streams import CHANGE_STREAM, ChangeStreamOptions
from asterism.languages.mongo.stages.pipeline import Pipeline
from asterism.languages.mongo.stages.resume_tokens import ResumeToken, TokenKind, not_ours
from asterism.models.collections.change_reader import ChangeReader
from asterism.models.collections.change_scope import RESERVED_DATABASES, ChangeScope
from asterism.models.collections.changes import ChangeLog, ChangePosition
from asterism.models.collections.log_entries import LOG_KEPT_SECONDS
from asterism.models.collections.open_readers import scope_sources
from asterism.partitioning.feed_position import FeedPosition
from asterism.values.bson.types import Binary, Document, Timestamp
from asterism.values.identifiers import Lsn

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.apis.mongo.commands import Answer

# Above every LSN of a partition: nothing of it is read.
_NEVER = Lsn(2**63 - 2)


async def open_change_stream(call: Call, options: AggregateOptions) -> Answer:
    source = find_source(call, options)
    if source.is_view:
        raise MongoFailure(166, f"Namespace {options.namespace} is a view, not a collection")
    prepared = PreparedPipeline(call, options, source)
    pipeline = prepared.pipeline
    asked: ChangeStreamOptions = pipeline.stages[0].meaning
    _check(call, options, asked)
    if asked.watches_cluster:
        scope = ChangeScope(call.account, is_expanded=asked.is_expanded)
    else:
        scope = ChangeScope(call.account, options.database, options.collection, asked.is_expanded)
    log = ChangeLog(call.store.services.router)
    position = await _position(call, log, scope, asked)
    reader = ChangeReader(call.store, scope, position, EventMaker(log, scope, asked).make)
    token = asked.token
    is_ended = token is not None and token.kind is TokenKind.LAST_EVENT and _ends_scope(token, scope)
    stream = ChangeStream(
        call.store,
        reader,
        Pipeline(pipeline.specification[1:], pipeline.stages[1:], pipeline.context, pipeline.place),
        prepared.run_context,
        call.context.monotonic_seconds,
        opening=invalidate_after(token) if token is not None and is_ended else None,
        fatal=None if token is None else _foreign(token, scope),
        skipped_fragments=0 if token is None else token.fragments,
    )
    try:
        answer = await call.context.cursors.open(
            call,
            options.namespace,
            stream,
            batch_size=options.batch_size,
            waits=True,
            extra=stream.extra,
            patience=stream.patience,
            close=stream.stop,
            explain_failure=stream.explain_failure,
        )
    except BaseException:
        await stream.aclose()
        raise
    call.deadline = None
    return answer


def _check(call: Call, options: AggregateOptions, asked: ChangeStreamOptions) -> None:
    name = options.collection
    if asked.watches_cluster and (options.database != "admin" or name is not None):
        raise MongoFailure(
            72, "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, with no "
            "collection name.",
        )  # fmt: skip
    is_system = name is not None and name.startswith("system.")
    if not asked.watches_cluster and (options.database in RESERVED_DATABASES or is_system):
        raise MongoFailure(73, f"$changeStream may not be opened on the internal namespace {options.namespace}")
    if call.field("apiStrict") and "showExpandedEvents" in options.pipeline[0][CHANGE_STREAM]:
        raise MongoFailure(323, "The $changeStream parameter showExpandedEvents is not in API Version 1")
    level = (call.read_concern or {}).get("level")
    if level not in (None, "majority"):
        raise MongoFailure(72, f"$changeStream cannot run with a readConcern other than 'majority'. Found: {level}")


async def _position(call: Call, log: ChangeLog, scope: ChangeScope, asked: ChangeStreamOptions) -> ChangePosition:
    store = call.store
    await store.catch_up()
    token = asked.token
    if token is not None:
        if asked.resume_after is not None and token.kind is TokenKind.INVALIDATE:
            raise MongoFailure(
                260,
                "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate "
                "notification; use 'startAfter'.",
            )
        try:
            position = ChangePosition.from_bytes(token.position)
        except MalformedRequest:
            raise not_ours() from None
        kept_since = int(store.services.clock.wall_seconds()) - LOG_KEPT_SECONDS
        if (token.time >> 32) < kept_since and await log.has_lost(scope_sources(store, scope), position):
            raise MongoFailure(
                286, "Resume of change stream was not possible, as the resume point may no longer be in the log."
            )
        return position
    if asked.start_at is not None:
        return await log.position_at(scope_sources(store, scope), time_of(asked.start_at))
    # No change has this time, so that a client that begins again at it sees none twice.
    store.services.hybrid_clock.next()
    return await log.position_now(scope_sources(store, scope))


def time_of(timestamp: Timestamp) -> int:
    return int(timestamp.time) << 32 | int(timestamp.inc)


def _ends_scope(token: ResumeToken, scope: ChangeScope) -> bool:
    """Return whether the event of a token that ended its stream ends this one, too."""
    if scope.collection is not None:
        return (token.database, token.collection) == (scope.database, scope.collection)
    return scope.database is not None and not token.collection


def _foreign(token: ResumeToken, scope: ChangeScope) -> MongoFailure | None:
    """Return the error of a stream that cannot find the event that it is to begin behind."""
    is_event = token.kind in (TokenKind.EVENT, TokenKind.LAST_EVENT)
    is_within = scope.is_within(token.database, token.collection)
    if not is_event or (is_within and (scope.is_expanded or not token.is_expanded_only)):
        return None
    return MongoFailure(280, f'cannot resume stream; the resume token was not found. {{_data: "{token.to_text()}"}}')


async def change_stream_tokens(call: Call, collection: str, start_at: Any) -> list[Document]:
    """Return a token for each physical partition of a collection, with which only that partition is read: behind all
    that it has now, or from a time on. As the service's `GetChangeStreamTokens`."""
    store, log = call.store, ChangeLog(call.store.services.router)
    scope = ChangeScope(call.account, call.database, collection)
    sources = scope_sources(store, scope)
    found = store.find(call.account, call.database, collection)
    if found is None:
        raise MongoFailure(26, f"Collection {call.database}.{collection} does not exist.")
    since = 0
    if start_at is not None:
        if not isinstance(start_at, Timestamp):
            raise MongoFailure(14, "BSON field 'customAction.startAtOperationTime' must be a timestamp")
        since = time_of(start_at)
    now = await log.position_now(sources)
    rid = found.keyspace.record.rid
    parts = [partition.range for partition in found.keyspace.record.map.ranges]
    if not found.record.shard_key:
        point = found.rules.fixed_point
        parts = [part for part in parts if part.start <= point < part.end]
    tokens: list[Document] = []
    for part in parts:
        own = now.keyspaces[rid] if not since else FeedPosition.at(Lsn(0))
        for other in found.keyspace.record.map.ranges:
            if other.range != part:
                own = own.advanced(other.range.start, other.range.end, _NEVER)
        position = ChangePosition({**now.keyspaces, rid: own}, since=since)
        time = store.services.hybrid_clock.now
        data = ResumeToken(TokenKind.HIGH_WATER_MARK, time, position.to_bytes()).to_bytes()
        tokens.append({"_data": Binary(data, 0), "_kind": 1})
    return tokens

"""Events: the documents in which clients see the changes of the log."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.change_streams import ChangeStreamOptions
from asterism.languages.mongo.stages.resume_tokens import ResumeToken, TokenKind
from asterism.models.collections.change_scope import ChangeScope
from asterism.models.collections.changes import ChangeLog, LoggedChange
from asterism.values.bson.codec import decode
from asterism.values.bson.types import Binary, DatetimeMS, Document, Int64, Timestamp

_UUID_SUBTYPE = 4
_SESSION_ID_BYTES = 16


class Event(NamedTuple):
    document: Document
    token: ResumeToken


class EventMaker:
    """Makes the events of one stream."""

    __slots__ = ("_log", "_options", "_scope")

    def __init__(self, log: ChangeLog, scope: ChangeScope, options: ChangeStreamOptions) -> None:
        self._log = log
        self._scope = scope
        self._options = options

    async def make(self, change: LoggedChange) -> Event:
        """Return the event of a change. MongoFailure 47 when a document that the client requires is not kept."""
        is_last = self._scope.ends_with(change)
        token = ResumeToken(
            TokenKind.LAST_EVENT if is_last else TokenKind.EVENT,
            change.time,
            change.position.to_bytes(),
            change.database,
            # A collection that takes the place of the watched one has another name.
            self._scope.collection or change.name,
            self._scope.is_expanded_only(change) or change.is_view,
        )
        event: Document = {"_id": token.document, "operationType": change.operation, **_times(change.time, change)}
        if change.transaction is not None:
            event |= _session(change.transaction)
        if self._options.is_expanded and change.uuid and not change.is_view:
            event["collectionUUID"] = Binary(change.uuid, _UUID_SUBTYPE)
        if change.is_of_document:
            await self._add_document(event, change)
        else:
            event |= _catalog_fields(change, is_expanded=self._options.is_expanded)
        return Event(event, token)

    async def _add_document(self, event: Document, change: LoggedChange) -> None:
        if change.operation in ("insert", "replace"):
            event["fullDocument"] = _decoded(await self._log.body(change))
        elif change.operation == "update" and self._options.full_document != "default":
            event["fullDocument"] = await self._after_update(change)
        event["ns"] = {"db": change.database, "coll": change.name}
        event["documentKey"] = change.key
        if change.operation == "update":
            event["updateDescription"] = _update_description(change.description, is_expanded=self._options.is_expanded)
        if change.operation != "insert" and self._options.before_change != "off":
            before = await self._log.body_before(change) if change.keeps_images else None
            if before is None and self._options.before_change == "required":
                raise _no_image("fullDocumentBeforeChange", "pre-image")
            event["fullDocumentBeforeChange"] = _decoded(before)

    async def _after_update(self, change: LoggedChange) -> Any:
        if self._options.full_document == "updateLookup":
            return _decoded(await self._log.current_body(change))
        after = await self._log.body(change) if change.keeps_images else None
        if after is None and self._options.full_document == "required":
            raise _no_image("fullDocument", "post-image")
        return _decoded(after)


def invalidate(last: Event) -> Event:
    """Return the event behind the one that ends a stream."""
    token = ResumeToken(TokenKind.INVALIDATE, last.token.time, last.token.position)
    times: Document = {"clusterTime": last.document["clusterTime"], "wallTime": last.document["wallTime"]}
    return Event({"_id": token.document, "operationType": "invalidate", **times}, token)


def invalidate_after(token: ResumeToken) -> Event:
    """Return the `invalidate` of a stream that resumes right in front of it."""
    seconds = token.time >> 32
    times = {"clusterTime": _timestamp(token.time), "wallTime": DatetimeMS(seconds * 1000)}
    own = ResumeToken(TokenKind.INVALIDATE, token.time, token.position)
    return Event({"_id": own.document, "operationType": "invalidate", **times}, own)


def _timestamp(time: int) -> Timestamp:
    return Timestamp(time >> 32, time & 0xFFFFFFFF)


def _times(time: int, change: LoggedChange) -> Document:
    return {"clusterTime": _timestamp(time), "wallTime": DatetimeMS(change.wall_milliseconds)}


def _decoded(body: bytes | None) -> Document | None:
    return None if body is None else decode(body)


def _session(transaction: Document) -> Document:
    session = bytes(transaction["s"])
    user = hashlib.sha256(session[_SESSION_ID_BYTES:]).digest()
    lsid = {"id": Binary(session[:_SESSION_ID_BYTES], _UUID_SUBTYPE), "uid": Binary(user, 0)}
    return {"lsid": lsid, "txnNumber": Int64(transaction["n"])}


def _update_description(stored: Document | None, *, is_expanded: bool) -> Document:
    description: Document = {"updatedFields": {}, "removedFields": [], "truncatedArrays": [], **(stored or {})}
    ambiguous = description.pop("disambiguatedPaths", {})
    return {**description, "disambiguatedPaths": ambiguous} if is_expanded else description


def _no_image(name: str, image: str) -> MongoFailure:
    return MongoFailure(
        47,
        f"Change stream was configured to require a {image} for all update, delete and replace events ({name}: "
        "'required'), but it was not found. Set changeStreamPreAndPostImages of the collection.",
    )


def _catalog_fields(change: LoggedChange, *, is_expanded: bool) -> Document:
    details = change.description or {}
    if change.operation == "dropDatabase":
        return {"ns": {"db": change.database}}
    fields: Document = {"ns": {"db": change.database, "coll": change.name}}
    if change.operation == "rename":
        fields["to"] = {"db": change.database, "coll": details["to"]}
    if not is_expanded:
        return fields
    match change.operation:
        case "create":
            options = details.get("options", {})
            kind = "view" if change.is_view else "timeseries" if "timeseries" in options else "collection"
            fields["nsType"] = kind
            index = {} if change.is_view else {"idIndex": {"v": 2, "key": {"_id": 1}, "name": "_id_"}}
            fields["operationDescription"] = {**index, **options}
        case "rename":
            replaced = details.get("dropTarget")
            dropped = {} if replaced is None else {"dropTarget": Binary(bytes(replaced), _UUID_SUBTYPE)}
            fields["operationDescription"] = {"to": fields["to"], **dropped}
        case "modify":
            before = details.get("before", {})
            changed = {name: value for name, value in details["options"].items() if before.get(name) != value}
            fields["operationDescription"] = changed
            fields["stateBeforeChange"] = {"collectionOptions": before}
        case "createIndexes" | "dropIndexes":
            fields["operationDescription"] = {"indexes": details["indexes"]}
        case "shardCollection" | "reshardCollection" | "refineCollectionShardKey":
            fields["operationDescription"] = {name: value for name, value in details.items() if name != "ends"}
        case _:
            pass
    return fields

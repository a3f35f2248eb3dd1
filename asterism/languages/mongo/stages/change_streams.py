"""The stages `$changeStream` and `$changeStreamSplitLargeEvent`: their arguments, and the stages that may follow.

The events come from outside, as the source of the pipeline: they are read from the store's log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.resume_tokens import ResumeToken, read_token
from asterism.languages.mongo.stages.stage import Batches, Position, RunContext, Scope, Stage, StageRow, Within
from asterism.values.bson.codec import encode
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import Document, Timestamp

CHANGE_STREAM = "$changeStream"
SPLIT_LARGE_EVENT = "$changeStreamSplitLargeEvent"
_FULL_DOCUMENT = ("default", "updateLookup", "whenAvailable", "required")
_BEFORE_CHANGE = ("off", "whenAvailable", "required")
_FIELDS = frozenset(
    {
        "fullDocument", "fullDocumentBeforeChange", "resumeAfter", "startAfter", "startAtOperationTime",
        "allChangesForCluster", "showExpandedEvents",
    }
)  # fmt: skip
# Stages that look at every event by itself.
_MAY_FOLLOW = frozenset(
    {
        "$match", "$project", "$addFields", "$set", "$unset", "$replaceRoot", "$replaceWith", "$redact", "$fill",
        SPLIT_LARGE_EVENT,
    }
)  # fmt: skip
# Room for the fields around a fragment.
_FRAGMENT_BYTES_MAX = 16 * 1024 * 1024 - 64 * 1024


@dataclass(frozen=True, slots=True)
class ChangeStreamOptions:
    full_document: str = "default"
    before_change: str = "off"
    # Behind this event, which may not be an `invalidate`.
    resume_after: ResumeToken | None = None
    # Behind this event.
    start_after: ResumeToken | None = None
    start_at: Timestamp | None = None
    watches_cluster: bool = False
    is_expanded: bool = False

    @property
    def token(self) -> ResumeToken | None:
        return self.resume_after or self.start_after


def read_options(specification: Any) -> ChangeStreamOptions:
    if type(specification) is not dict:
        raise MongoFailure(6188500, f"$changeStream must take a nested object, but got {type_name(specification)}")
    for name in specification:
        if name not in _FIELDS:
            raise MongoFailure(40415, f"BSON field '$changeStream.{name}' is an unknown field.")
    resume_after = _token(specification, "resumeAfter")
    start_after = _token(specification, "startAfter")
    start_at = specification.get("startAtOperationTime")
    if start_at is not None and type(start_at) is not Timestamp:
        raise _wrong_type("startAtOperationTime", start_at, "timestamp")
    if resume_after is not None and start_after is not None:
        raise MongoFailure(50865, "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage")
    if start_at is not None and (resume_after is not None or start_after is not None):
        raise MongoFailure(40674, "Only one type of resume option is allowed, but multiple were found.")
    return ChangeStreamOptions(
        _choice(specification, "fullDocument", _FULL_DOCUMENT),
        _choice(specification, "fullDocumentBeforeChange", _BEFORE_CHANGE),
        resume_after,
        start_after,
        start_at,
        _flag(specification, "allChangesForCluster"),
        _flag(specification, "showExpandedEvents"),
    )


def _wrong_type(name: str, value: Any, expected: str) -> MongoFailure:
    return MongoFailure(
        14, f"BSON field '$changeStream.{name}' is the wrong type '{type_name(value)}', expected type '{expected}'"
    )


def _flag(specification: Document, name: str) -> bool:
    value = specification.get(name, False)
    if type(value) is not bool:
        raise _wrong_type(name, value, "bool")
    return value


def _choice(specification: Document, name: str, choices: Sequence[str]) -> str:
    value = specification.get(name)
    if value is None:
        return choices[0]
    if type(value) is not str:
        raise _wrong_type(name, value, "string")
    if value not in choices:
        raise MongoFailure(2, f"Enumeration value '{value}' for field '$changeStream.{name}' is not a valid value.")
    return value


def _token(specification: Document, name: str) -> ResumeToken | None:
    value = specification.get(name)
    if value is None:
        return None
    if type(value) is not dict:
        raise _wrong_type(name, value, "object")
    return read_token(value)


async def _pass_on(source: Batches, _: RunContext) -> Batches:
    async for batch in source:
        yield batch


def _compile_change_stream(specification: Any, _: Scope) -> Stage:
    return Stage(CHANGE_STREAM, specification, run=_pass_on, meaning=read_options(specification))


def _compile_split(specification: Any, _: Scope) -> Stage:
    if type(specification) is not dict or specification:
        raise MongoFailure(7182800, f"{SPLIT_LARGE_EVENT} must be an empty object")
    return Stage(SPLIT_LARGE_EVENT, specification, run=_pass_on)


def check_following(stages: Sequence[Stage]) -> None:
    """Refuse stages behind `$changeStream` that would have to wait for the end of a stream without one."""
    is_stream = bool(stages) and stages[0].name == CHANGE_STREAM
    for index, stage in enumerate(stages):
        if stage.name == SPLIT_LARGE_EVENT:
            if not is_stream:
                raise MongoFailure(20, f"{SPLIT_LARGE_EVENT} can only be used in a $changeStream pipeline")
            if index + 1 < len(stages):
                raise MongoFailure(7182802, f"{SPLIT_LARGE_EVENT} must be the last stage in the pipeline")
        elif is_stream and index and not _follows(stage):
            raise MongoFailure(20, f"{stage.name} is not permitted in a $changeStream pipeline")


def _follows(stage: Stage) -> bool:
    if stage.name == "$fill":
        # With an order it has to sort, and a method looks at the documents around.
        output = stage.specification.get("output", {})
        return "sortBy" not in stage.specification and all("method" not in value for value in output.values())
    return stage.name in _MAY_FOLLOW


def split_event(event: Document, *, bytes_max: int = _FRAGMENT_BYTES_MAX) -> list[Document]:
    """Divide an event that is too large for one document: the parts have `splitEvent` and share its fields, without
    `_id`. An event that is small enough stays as it is."""
    if len(encode(event)) <= bytes_max:
        return [event]
    parts: list[Document] = [{}]
    size = 0
    for name, value in event.items():
        if name == "_id":
            continue
        field_size = len(encode({name: value}))
        if parts[-1] and size + field_size > bytes_max:
            parts.append({})
            size = 0
        parts[-1][name] = value
        size += field_size
    return [
        {"_id": event.get("_id"), "splitEvent": {"fragment": index + 1, "of": len(parts)}, **part}
        for index, part in enumerate(parts)
    ]


_NEVER_INSIDE = frozenset({Within.FACET, Within.LOOKUP, Within.UNION, Within.VIEW})

ROWS = (
    StageRow(
        CHANGE_STREAM, _compile_change_stream, Position.FIRST, _NEVER_INSIDE, in_transaction=False, is_source=True
    ),
    StageRow(SPLIT_LARGE_EVENT, _compile_split, refused_in=_NEVER_INSIDE, in_transaction=False),
)

"""The stage $changeStream: its arguments, its place, the stages behind it, and events that are too large."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.change_streams import ChangeStreamOptions, read_options, split_event
from asterism.languages.mongo.stages.pipeline import Pipeline, compile_pipeline
from asterism.languages.mongo.stages.resume_tokens import ResumeToken, TokenKind
from asterism.languages.mongo.stages.stage import PipelinePlace
from asterism.values.bson.types import DatetimeMS, Document, Timestamp

TOKEN = ResumeToken(TokenKind.EVENT, 1, b"position")


def compiled(*stages: Document, in_transaction: bool = False) -> Pipeline:
    place = PipelinePlace("shop", "users", in_transaction=in_transaction)
    return compile_pipeline(stages, new_context(DatetimeMS(0), Timestamp(1, 1)), place=place)


def test_absent_and_null_options_have_their_defaults() -> None:
    nulls = dict.fromkeys(("fullDocument", "resumeAfter", "startAfter", "startAtOperationTime"))
    assert read_options({}) == read_options(nulls) == ChangeStreamOptions()


def test_options_are_read() -> None:
    read = read_options({"fullDocument": "required", "startAfter": TOKEN.document, "showExpandedEvents": True})
    assert read == ChangeStreamOptions("required", start_after=TOKEN, is_expanded=True)
    assert read.token == TOKEN
    assert read_options({"startAtOperationTime": Timestamp(5, 6)}).start_at == Timestamp(5, 6)


@pytest.mark.parametrize(
    ("specification", "code"),
    [
        (1, 6188500),
        (None, 6188500),
        ([{}], 6188500),
        ({"bogus": 1}, 40415),
        ({"fullDocument": 1}, 14),
        ({"fullDocument": "off"}, 2),
        ({"fullDocumentBeforeChange": "default"}, 2),
        ({"allChangesForCluster": 1}, 14),
        ({"showExpandedEvents": None}, 14),
        ({"resumeAfter": "x"}, 14),
        ({"resumeAfter": {}}, 40647),
        ({"startAtOperationTime": 5}, 14),
        ({"resumeAfter": TOKEN.document, "startAfter": TOKEN.document}, 50865),
        ({"resumeAfter": TOKEN.document, "startAtOperationTime": Timestamp(1, 1)}, 40674),
    ],
)
def test_wrong_arguments_are_refused(specification: Any, code: int) -> None:
    with pytest.raises(MongoFailure) as refused:
        compiled({"$changeStream": specification})
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("stages", "code"),
    [
        ([{"$match": {}}, {"$changeStream": {}}], 40602),
        ([{"$changeStream": {}}, {"$sort": {"_id": 1}}], 20),
        ([{"$changeStream": {}}, {"$group": {"_id": 1}}], 20),
        ([{"$changeStream": {}}, {"$limit": 1}], 20),
        ([{"$changeStreamSplitLargeEvent": {}}], 20),
        ([{"$changeStream": {}}, {"$changeStreamSplitLargeEvent": {}}, {"$match": {}}], 7182802),
        ([{"$facet": {"a": [{"$changeStream": {}}]}}], 40600),
    ],
)
def test_a_stream_stands_first_and_only_stages_that_look_at_single_events_follow(
    stages: list[Document], code: int
) -> None:
    with pytest.raises(MongoFailure) as refused:
        compiled(*stages)
    assert refused.value.code == code


def test_a_stream_is_refused_in_a_transaction() -> None:
    with pytest.raises(MongoFailure) as refused:
        compiled({"$changeStream": {}}, in_transaction=True)
    assert refused.value.code == 263


def test_single_event_stages_may_follow() -> None:
    stages: list[Document] = [
        {"$match": {}},
        {"$project": {"a": 1}},
        {"$unset": "b"},
        {"$changeStreamSplitLargeEvent": {}},
    ]
    assert len(compiled({"$changeStream": {}}, *stages).stages) == 5


def test_a_large_event_is_divided_between_its_fields() -> None:
    event = {
        "_id": {"_data": "1"},
        "operationType": "update",
        "fullDocument": {"x": "a" * 90},
        "before": {"x": "b" * 90},
    }
    assert split_event(event) == [event]
    first, second = split_event(event, bytes_max=180)
    assert (first["splitEvent"], second["splitEvent"]) == ({"fragment": 1, "of": 2}, {"fragment": 2, "of": 2})
    joined = {**first, **second}
    del joined["splitEvent"]
    assert joined == event

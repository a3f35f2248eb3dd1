"""Messages as JSON: everything that AMQP can hold is shown, and what operators write comes back as they wrote it."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from asterism.apis.admin.messaging.message_form import read_event, read_message
from asterism.apis.admin.messaging.message_view import describe_sections
from asterism.apis.admin.messaging.values_view import BODY_CHARACTERS_MAX, describe_body, describe_value
from asterism.errors import MalformedRequest
from asterism.values.amqp.message import encode_annotations, encode_value_body
from asterism.values.amqp.types import Described, Symbol, Timestamp, UInt, Uuid
from asterism.values.json.text import dumps

TEXTS = some.text(some.characters(codec="utf-8"), max_size=40)
PROPERTY_VALUES = (
    TEXTS | some.booleans() | some.integers(-(2**53), 2**53) | some.floats(allow_nan=False, allow_infinity=False)
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (UInt(7), 7),
        (2**63 - 1, "9223372036854775807"),
        (float("inf"), "inf"),
        (b"\x00\xff", {"hex": "00ff"}),
        (Uuid(bytes(range(16))), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (Timestamp(0), "1970-01-01T00:00:00.000Z"),
        (Timestamp(2**62), str(2**62)),
        ({1: [Symbol("a")]}, {"1": ["a"]}),
        (Described(Symbol("d"), "v"), {"descriptor": "d", "value": "v"}),
    ],
)
def test_every_value_of_amqp_has_a_form_in_json(value: Any, shown: Any) -> None:
    assert describe_value(value) == shown
    assert json.loads(dumps(describe_value(value))) == shown


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (None, "empty", ""),
        (b"", "empty", ""),
        (b"plain\n", "text", "plain\n"),
        (b'{"a": 1}', "json", '{"a": 1}'),
        (b"17", "text", "17"),
        (b"{broken", "text", "{broken"),
        (b"\x00\x01", "hex", "0001"),
        (b"\xff", "hex", "ff"),
        ("text", "text", "text"),
        ({"a": [1, None]}, "json", '{"a":[1,null]}'),
        ([[1], [2]], "json", "[[1],[2]]"),
    ],
)
def test_a_body_is_shown_as_json_text_or_digits(body: Any, kind: str, text: str) -> None:
    shown = describe_body(body)
    assert (shown["kind"], shown["text"], shown["is_cut"]) == (kind, text, False)


@pytest.mark.parametrize("body", [b"x" * 10**6, b"\x00" * 10**6, {"long": "y" * 10**6}])
def test_a_long_body_is_cut_and_its_size_told(body: Any) -> None:
    shown = describe_body(body)
    assert (len(shown["text"]), shown["is_cut"]) == (BODY_CHARACTERS_MAX, True)
    assert shown["bytes"] >= 10**6


def test_nesting_without_end_is_cut() -> None:
    value: Any = "deep"
    for _ in range(100):
        value = [value]
    assert "…" in json.dumps(describe_value(value), ensure_ascii=False)


def test_a_content_that_cannot_be_decoded_is_shown_with_the_problem() -> None:
    shown = describe_sections(b"\x00\x53\x75\xa0\xff")
    assert (shown["body"]["kind"], bool(shown["problem"])) == ("hex", True)
    shown = describe_sections(b"\x00\x53\x74\xc1\x03\x02\xa1\x01")
    assert bool(shown["problem"])


def test_annotations_and_values_as_bodies_are_shown() -> None:
    shown = describe_sections(
        encode_annotations({"x-opt-partition-key": b"k"}) + encode_value_body({"n": Timestamp(0)})
    )
    assert shown["annotations"] == {"x-opt-partition-key": {"hex": "6b"}}
    assert json.loads(shown["body"]["text"]) == {"n": "1970-01-01T00:00:00.000Z"}


@given(TEXTS, some.dictionaries(TEXTS.filter(bool), PROPERTY_VALUES, max_size=5), TEXTS, TEXTS)
def test_messages_come_back_as_they_were_written(
    body: str, properties: dict[str, Any], subject: str, session: str
) -> None:
    fields = {"body": body, "properties": properties, "subject": subject, "session_id": session, "ttl_seconds": 60}
    message = read_message(fields, message_id="id-1")
    shown = describe_sections(message.content)
    assert shown["problem"] is None
    assert bytes_of(shown["body"]) == body.encode()
    assert shown["application_properties"] == properties
    assert shown["properties"] == {"message_id": "id-1", "subject": subject, "group_id": session}
    assert shown["header"] == {"ttl": 60_000}
    assert (message.message_id, message.session_id, message.ttl_ms) == ("id-1", session, 60_000)


def bytes_of(body: dict[str, Any]) -> bytes:
    return bytes.fromhex(body["text"]) if body["kind"] == "hex" else body["text"].encode()


def test_a_moment_and_a_key_are_part_of_a_message() -> None:
    due = int(datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC).timestamp() * 1000)
    message = read_message({"scheduled_ms": due, "partition_key": "k", "body_hex": "00ff"}, message_id="m")
    assert (message.scheduled_ms, message.partition_key) == (due, "k")
    shown = describe_sections(message.content)
    assert (shown["annotations"], shown["body"]["text"]) == ({"x-opt-partition-key": "k"}, "00ff")


def test_an_event_without_properties_is_its_data_alone() -> None:
    assert read_event({"body": "x"}) == b"\x00\x53\x75\xa0\x01x"


@pytest.mark.parametrize(
    "fields",
    [
        {"body": 1},
        {"body": "{", "is_json": True},
        {"body_hex": "0"},
        {"properties": []},
        {"properties": {"a": [1]}},
        {"properties": {"a": 2**64}},
        {"properties": {"a": "x" * 70_000}},
        {"content_type": "ü"},
        {"message_id": "x" * 129},
        {"session_id": "a", "partition_key": "b"},
        {"ttl_seconds": 0},
        {"ttl_seconds": True},
        {"scheduled_ms": -1},
    ],
)
def test_a_message_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(MalformedRequest):
        read_message(fields, message_id="m")

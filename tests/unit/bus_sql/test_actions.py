"""Actions: the copies that they make, read as messages."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.models.messages.rules import FilterFailed
from asterism.values.amqp.message import Message, encode_application_properties, encode_data_body
from asterism.values.amqp.types import Described, Int, Symbol, Timestamp, Uuid
from tests.unit.bus_sql.messages_at_hand import BODY, ENVELOPE, compile_rules, message, selected, sql

ORDER = message({"Color": "red", "size": Int(10), "kept": b"\xff"}, message_id="m-1", subject="greeting")


def copy_of(action: str, wanted: Message = ORDER, /, **parameters: Any) -> Message:
    (sections,) = selected([sql("1=1", action=action, **parameters)], wanted)
    assert sections is not None
    return Message.parse(sections)


@pytest.mark.parametrize(
    ("action", "changes"),
    [
        ("SET price = 5", {"price": 5}),
        ("SET color = 'blue'", {"Color": "blue"}),
        ("SET size = size + 1", {"size": 11}),
        ("SET a = color; SET b = a + '!'", {"a": "red", "b": "red!"}),
        ("SET a = 1 SET b = 2", {"a": 1, "b": 2}),
        ("SET a = NULL;", {"a": None}),
        ("SET a = missing", {"a": None}),
        ("SET [two words] = 1.5", {"two words": 1.5}),
        ("SET user.a = TRUE", {"a": True}),
        ("SET a = size; REMOVE a; SET a = 3", {"a": 3}),
        ("SET a = newid()", {"a": Uuid(bytes.fromhex("000102030405460788090a0b0c0d0e0f"))}),
        ("SET a = sys.EnqueuedTimeUtc", {"a": Timestamp(1_700_000_000_000)}),
        ("SET a = sys.TimeToLive", {"a": Described(Symbol("com.microsoft:timespan"), 600_000_000)}),
        ("SET a = sys.Label", {"a": "greeting"}),
    ],
)
def test_an_action_sets_properties(action: str, changes: dict[str, Any]) -> None:
    before = ORDER.application_properties
    assert copy_of(action).application_properties == {**before, **changes}


def test_an_action_removes_properties_of_any_case() -> None:
    assert copy_of("REMOVE COLOR; REMOVE missing").application_properties == {"size": 10, "kept": b"\xff"}


def test_an_action_sets_and_removes_properties_of_the_system() -> None:
    copy = copy_of(
        "SET sys.Label = color + '-label'; SET sys.CorrelationId = 'c'; REMOVE sys.MessageId; SET sys.To='t'"
    )
    assert copy.properties.subject == "red-label"
    assert copy.properties.correlation_id == "c"
    assert copy.properties.to == "t"
    assert copy.properties.message_id is None
    assert copy.application_properties_bytes == ORDER.application_properties_bytes


def test_parameters_of_an_action_have_types() -> None:
    copy = copy_of("SET at = @at", **{"@at": ("dateTime", "2020-07-05T11:12:13")})
    assert copy.application_properties["at"] == Timestamp(1_593_947_533_000)


def test_body_annotations_and_footer_keep_their_bytes() -> None:
    footer = b"\x00\x53\x78" + encode_application_properties({"a": 1})[3:]
    whole = Message.parse(ORDER.annotations_bytes + encode_data_body(b"1") + encode_data_body(b"2") + footer)
    copy = copy_of("SET a = 1", whole)
    assert copy.annotations_bytes == whole.annotations_bytes
    assert copy.body_bytes == whole.body_bytes
    assert copy.footer_bytes == footer
    assert copy_of("SET a = 1").body_bytes == BODY


def test_the_original_is_not_changed() -> None:
    copy_of("SET color = 'blue'; REMOVE size")
    assert ORDER.application_properties == {"Color": "red", "size": 10, "kept": b"\xff"}


@pytest.mark.parametrize(
    "action",
    [
        "SET a = 1 / 0",
        "SET a = color + size",
        "SET sys.Label = 5",
        ";".join(["SET a = 'xxxxxxxxxxxx'", *["SET a = a + a"] * 31]),
        ";".join(["SET a = 'xxxxxxxxxxxxxxxx'", *["SET a = a + a"] * 11, "SET b = a", "SET c = a"]),
    ],
)
def test_an_action_that_cannot_be_carried_out_fails(action: str) -> None:
    with pytest.raises(FilterFailed):
        copy_of(action)


def test_a_message_enters_once_without_action_and_once_for_each_action() -> None:
    plain = [sql("size = 10"), sql("1=1"), sql("size = 11")]
    acting = [sql("1=1", action="SET a = 1"), sql("1=2", action="SET a = 2"), sql("1=1", action="SET a = 3")]
    first, *copies = selected([*acting, *plain], ORDER)
    assert first is None
    assert [Message.parse(copy or b"").application_properties["a"] for copy in copies] == [1, 3]
    assert len(selected(acting, ORDER)) == 2


def test_a_rule_that_fails_does_not_keep_out_what_another_lets_in() -> None:
    failing, acting = sql("size / 0 = 1"), sql("1=1", action="SET a = 1")
    assert selected([failing, sql("1=1")], ORDER) == [None]
    assert len(selected([failing, acting], ORDER)) == 1
    with pytest.raises(FilterFailed):
        compile_rules(failing, sql("1=2")).select(ORDER, ENVELOPE)


def test_an_action_of_nothing_is_none() -> None:
    assert selected([sql("1=1", action="  ")], ORDER) == [None]

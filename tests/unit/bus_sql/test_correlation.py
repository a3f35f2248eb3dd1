"""Correlation filters: what they match, and that many of them cost a message little."""

from __future__ import annotations

import pytest

from asterism.languages.bus_sql.correlation import CorrelationIndex
from asterism.languages.bus_sql.subject import Subject
from asterism.models.messages.descriptions import FilterDescription, RuleDescription, TypedProperty
from asterism.models.messages.rules import FilterFailed
from asterism.values.amqp.message import Message
from asterism.values.amqp.types import Described, Int, Symbol, Timestamp, ULong, Uuid
from tests.unit.bus_sql.messages_at_hand import ENVELOPE, compile_rules, correlation, message, selected

ORDER = message(
    {
        "color": "red",
        "size": Int(10),
        "price": 1.0,
        "fresh": True,
        "at": Timestamp(1_593_947_533_000),
        "for": Described(Symbol("com.microsoft:timespan"), 937_800_000_000),
        "resent": b"blue",
    },
    message_id=Uuid(bytes(range(16))),
    correlation_id="c",
    subject="greeting",
    to="t",
    reply_to="r",
    group_id="s",
    reply_to_group_id="rs",
    content_type="text/plain",
)


@pytest.mark.parametrize(
    "rule",
    [
        correlation(correlation_id="c"),
        correlation(message_id="00010203-0405-0607-0809-0a0b0c0d0e0f"),
        correlation(label="greeting", to="t", reply_to="r", session_id="s", reply_to_session_id="rs"),
        correlation(content_type="text/plain"),
        correlation({"color": ("string", "red")}),
        correlation({"color": ("string", "red"), "size": ("int", "10")}, correlation_id="c"),
        correlation({"size": ("long", "10")}),
        correlation({"price": ("double", "1")}),
        correlation({"fresh": ("boolean", "true")}),
        correlation({"at": ("dateTime", "2020-07-05T11:12:13")}),
        correlation({"for": ("duration", "P1DT2H3M")}),
        correlation({"resent": ("string", "blue")}),
    ],
)
def test_a_message_with_equal_fields_enters(rule: RuleDescription) -> None:
    assert selected([rule], ORDER) == [None]


@pytest.mark.parametrize(
    "rule",
    [
        correlation(correlation_id="C"),
        correlation(correlation_id="c", label="other"),
        correlation({"color": ("string", "Red")}),
        correlation({"missing": ("string", "")}),
        correlation({"size": ("string", "10")}),
        correlation({"size": ("double", "10")}),
        correlation({"price": ("int", "1")}),
        correlation({"fresh": ("int", "1")}),
        correlation({"color": ("string", "red")}, to="elsewhere"),
        RuleDescription("never", FilterDescription("false")),
    ],
)
def test_a_message_with_another_field_does_not_enter(rule: RuleDescription) -> None:
    assert selected([rule], ORDER) == []


def test_an_id_that_is_a_number_is_compared_as_text() -> None:
    assert selected([correlation(message_id="12")], message(message_id=ULong(12))) == [None]


def test_filters_with_actions_add_copies() -> None:
    acting = correlation(correlation_id="c", action="SET color = 'blue'")
    first, second = selected([acting, correlation(label="greeting")], ORDER)
    assert first is None
    assert Message.parse(second or b"").application_properties["color"] == "blue"


def test_a_message_enters_once_however_many_filters_match() -> None:
    assert selected([correlation(correlation_id="c")] * 3 + [RuleDescription()], ORDER) == [None]


class CountedIndex(CorrelationIndex):
    """Counts the shapes of filters that a message is checked against."""

    def shapes_for(self, wanted: Message) -> int:
        anchors = self._anchors(Subject(wanted, ENVELOPE))
        return sum(len(self._by_anchor.get(anchor, {})) for anchor in anchors)


def test_many_filters_cost_a_message_few_checks() -> None:
    customers = [
        FilterDescription("correlation", label="order", properties=(TypedProperty("customer", "int", str(number)),))
        for number in range(5_000)
    ]
    names = [
        FilterDescription("correlation", properties=(TypedProperty(f"flag{number}", "boolean", "true"),))
        for number in range(5_000)
    ]
    index = CountedIndex([*customers, *names])
    wanted = message({"customer": Int(4_321), "flag77": True}, subject="order")
    assert index.matches(Subject(wanted, ENVELOPE)) == [4_321, 5_077]
    assert index.shapes_for(wanted) == 2


def test_rules_on_properties_that_cannot_be_read_fail() -> None:

    broken = Message.parse(b"\x00\x53\x73\xc0\x03\x01\xa1\x50\x00\x53\x77\x40")
    with pytest.raises(FilterFailed):
        compile_rules(correlation(correlation_id="c")).select(broken, ENVELOPE)

"""SQL filters as scenarios: an expression, and whether a message enters."""

from __future__ import annotations

import pytest

from asterism.models.messages.rules import FilterFailed
from asterism.values.amqp.types import Described, Int, Symbol, Timestamp, Uuid
from tests.unit.bus_sql.messages_at_hand import matches, message

ORDER = message(
    {
        "Color": "red",
        "size": Int(10),
        "price": 2.5,
        "fresh": True,
        "stale": False,
        "nothing": None,
        "resent": b"blue",
        "two words": "yes",
        "sent": Timestamp(1_600_000_000_000),
        "age": Described(Symbol("com.microsoft:timespan"), 36_000_000_000),
        "list": [1, 2],
        "order": 3,
    },
    message_id="m-1",
    correlation_id=Uuid(bytes(range(16))),
    subject="greeting",
    to="there",
    group_id="s-1",
    content_type="text/plain",
)


@pytest.mark.parametrize(
    "expression",
    [
        "1 = 1",
        "1=1 and not 1=2",
        "color = 'red'",
        "COLOR = 'red'",
        "user.Color = 'red'",
        "[Color] = 'red'",
        "\"Color\" = 'red'",
        "[two words] = 'yes'",
        "size = 10 AND price = 2.5",
        "size = 10.0",
        "size <> 11",
        "size != 11",
        "size > 9 AND size >= 10 AND size < 11 AND size <= 10",
        "price * 4 = size",
        "size / 3 = 3",
        "-size / 3 = -3",
        "size % 3 = 1",
        "-size % 3 = -1",
        "size - 1 - 2 = 7",
        "size + 2 * 3 = 16",
        "(size + 2) * 3 = 36",
        "size + 1.5e1 = 25",
        "- -size = +10",
        "color + '!' = 'red!'",
        "color LIKE 'r%'",
        "color LIKE '%d'",
        "color LIKE '_e_'",
        "color LIKE '%'",
        "color NOT LIKE 'b%'",
        "'50%' LIKE '50!%' ESCAPE '!'",
        "color IN ('blue', 'red')",
        "color NOT IN ('blue', 'green')",
        "size IN (1, 5 + 5)",
        "missing IS NULL",
        "color IS NOT NULL",
        "nothing IS NULL",
        "EXISTS(color)",
        "NOT EXISTS(missing)",
        "EXISTS(nothing)",
        "EXISTS(sys.Label)",
        "NOT EXISTS(sys.ReplyTo)",
        "fresh",
        "NOT stale",
        "fresh = TRUE AND stale = FALSE",
        "TRUE",
        "missing = 1 OR color = 'red'",
        "NOT (missing = 1 AND color = 'blue')",
        "resent = 'blue'",
        "property('color') = 'red'",
        "p('two ' + 'words') = 'yes'",
        "p('sys.label') = 'greeting'",
        "newid() = newid()",
        "sys.MessageId = 'm-1'",
        "sys.CorrelationId = '00010203-0405-0607-0809-0a0b0c0d0e0f'",
        "SYS.label = 'greeting' AND sys.Subject = 'greeting'",
        "sys.To = 'there' AND sys.SessionId = 's-1' AND sys.ContentType = 'text/plain'",
        "sys.SequenceNumber = 7 AND sys.DeliveryCount = 0 AND sys.State = 0",
        "sys.PartitionKey = 'blue'",
        "sys.ReplyTo IS NULL",
        "sys.ExpiresAtUtc - sys.EnqueuedTimeUtc = sys.TimeToLive",
        "sent < sys.EnqueuedTimeUtc",
        "'it''s' = 'it''s'",
        "order = 3",
    ],
)
def test_a_message_enters(expression: str) -> None:
    assert matches(expression, ORDER)


@pytest.mark.parametrize(
    "expression",
    [
        "1 = 2",
        "FALSE",
        "color = 'Red'",
        "missing = 'red'",
        "NOT (missing = 'red')",
        "missing <> 'red'",
        "missing = missing",
        "missing = 1 AND color = 'red'",
        "missing LIKE '%'",
        "missing NOT LIKE 'x'",
        "missing IN (1, 2)",
        "color NOT IN ('blue', missing)",
        "missing",
        "NOT missing",
        "nothing = NULL",
        "color = NULL",
        "missing + 1 = 1",
        "-missing = 1",
        "color > 5",
        "size = '10'",
        "size <> '10'",
        "fresh = 1",
        "fresh > FALSE",
        "size LIKE '10'",
        "color LIKE size",
        "color LIKE 'x%d'",
        "color LIKE 're'",
        "list = 1",
        "color",
        "NOT EXISTS(color)",
        "EXISTS(missing)",
        "sys.ReplyTo = 'x'",
        "property(missing) = 1",
    ],
)
def test_a_message_does_not_enter(expression: str) -> None:
    assert not matches(expression, ORDER)


@pytest.mark.parametrize(
    "expression",
    [
        "sys.Nonsense = 1",
        "EXISTS(sys.Nonsense)",
        "size / 0 = 1",
        "size % 0 = 1",
        "price / 0 = 1",
        "price % 0 = 1",
        "9223372036854775807 + size = 1",
        "color + size = 'red10'",
        "-color = 1",
        "fresh + 1 = 2",
        "(size = 10) * 2 = 2",
        "property(size) = 1",
        "color LIKE 'x' ESCAPE color",
        "p('sys.nonsense') = 1",
    ],
)
def test_a_filter_fails_for_a_message(expression: str) -> None:
    with pytest.raises(FilterFailed):
        matches(expression, ORDER)


def test_parameters_have_types() -> None:
    assert matches("color = @wanted", ORDER, **{"@Wanted": ("string", "red")})
    assert matches("size = @wanted", ORDER, wanted=("long", "10"))
    assert matches("sent = @wanted", ORDER, wanted=("dateTime", "2020-09-13T12:26:40Z"))
    assert matches("age = @wanted", ORDER, wanted=("duration", "PT1H"))
    assert not matches("size = @wanted", ORDER, wanted=("string", "10"))


def test_a_message_without_properties_is_unknown_to_a_filter() -> None:
    assert not matches("color = 'red'", message())
    assert matches("color IS NULL", message())


def test_the_exact_spelling_of_a_property_counts_before_others() -> None:
    both = message({"COLOR": "blue", "color": "red"})
    assert matches("color = 'red'", both)
    assert matches("COLOR = 'blue'", both)
    assert matches("Color = 'blue'", both)


def test_a_pattern_of_many_parts_takes_no_exponential_time() -> None:
    long_text = message({"text": "a" * 30_000})
    assert not matches(f"text LIKE '{'%a' * 400}b'", long_text)


def test_a_deep_conjunction_needs_no_deep_stack() -> None:
    assert matches(" AND ".join(["1=1"] * 110), ORDER)
    assert matches("+".join(["size"] * 150) + " = 1500", ORDER)

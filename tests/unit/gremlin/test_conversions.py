"""Conversions to numbers, booleans and dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.conversions import as_bool, as_number, parse_number
from asterism.languages.gremlin.values.dates import add_to_date, as_date, date_difference, parse_date
from asterism.languages.gremlin.values.numbers import BigInteger, Byte, Float, Long, number_type
from asterism.languages.gremlin.values.printing import round_to_float, text_of

AUGUST = datetime(2023, 8, 2, tzinfo=UTC)


def convert(value: Any, token: str | None = None) -> Any:
    return as_number(None if token is None else Token("GType", token))(value)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("5", "Integer", 5),
        (" -5 ", "Integer", -5),
        ("0x1F", "Integer", 31),
        ("-#1f", "Integer", -31),
        ("010", "Integer", 8),
        ("0", "Integer", 0),
        ("5000000000", "Long", 5_000_000_000),
        ("5L", "Long", 5),
        ("123456789012345678901234", "BigInteger", 123456789012345678901234),
        ("5.75", "Float", 5.75),
        ("5.75d", "Double", 5.75),
        ("1f", "Float", 1.0),
        ("3.141592653589793", "Double", 3.141592653589793),
        ("3.14159265358979323846", "BigDecimal", Decimal("3.14159265358979323846")),
        ("1e400", "BigDecimal", Decimal("1e400")),
        ("1e-400", "BigDecimal", Decimal("1e-400")),
        (".5", "Float", 0.5),
        ("1.", "Float", 1.0),
        ("1e3", "Float", 1000.0),
    ],
)
def test_a_text_becomes_the_smallest_number_that_has_its_value(text: str, kind: str, expected: Any) -> None:
    number = convert(text)
    assert (number_type(number), number) == (kind, expected)


@pytest.mark.parametrize("text", ["", "test", "1,000", "09", "1e", "--1", "0x", "1_000", "NaN", "٣", "9" * 5000])
def test_a_text_that_is_no_number_is_refused(text: str) -> None:
    assert parse_number(text) is None
    with pytest.raises(ExecutionFailure, match=r"Can't parse string '.*' as number"):
        convert(text)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_survives_its_text(value: int | float) -> None:
    number = parse_number(str(value))
    assert number is not None
    assert number == value or float(text_of(number)) == value


@pytest.mark.parametrize(
    ("value", "token", "kind", "expected"),
    [
        (5.67, "INT", "Integer", 5),
        (-5.67, "INT", "Integer", -5),
        (5, "LONG", "Long", 5),
        (12, "BYTE", "Byte", 12),
        ("5", "BYTE", "Byte", 5),
        (Decimal("7.9"), "SHORT", "Short", 7),
        (5, "DOUBLE", "Double", 5.0),
        (round_to_float(0.1), "DOUBLE", "Double", 0.1),
        (0.1, "BIGDECIMAL", "BigDecimal", Decimal("0.1")),
        (5, "FLOAT", "Float", 5.0),
        (1e20, "BIGINT", "BigInteger", 10**20),
        (float("inf"), "FLOAT", "Float", float("inf")),
        (AUGUST, "LONG", "Long", 1690934400000),
    ],
)
def test_a_number_takes_the_type_that_is_asked_for(value: Any, token: str, kind: str, expected: Any) -> None:
    number = convert(value, token)
    assert (number_type(number), number) == (kind, expected)


@pytest.mark.parametrize(
    ("value", "token", "sentence"),
    [
        (32768, "SHORT", "Can't convert number of type Integer to Short due to overflow."),
        (300, "BYTE", "Can't convert number of type Integer to Byte due to overflow."),
        (1e300, "INT", "Can't convert number of type Double to Integer due to overflow."),
        (-1e300, "LONG", "Can't convert number of type Double to Long due to underflow."),
        (Decimal("1e999999"), "INT", "Can't convert number of type BigDecimal to Integer due to overflow."),
        (Decimal("1e999999"), "BIGINT", "Can't convert number of type BigDecimal to BigInteger due to overflow."),
        (BigInteger(2**64), "LONG", "Can't convert number of type BigInteger to Long due to overflow."),
        (BigInteger(10**400), "DOUBLE", "Can't convert number of type BigInteger to Double due to overflow."),
        (1e300, "FLOAT", "Can't convert number of type Double to Float due to overflow."),
        (float("nan"), "INT", "Can't convert NaN to Integer."),
        (float("inf"), "LONG", "Can't convert floating point infinity to Long."),
        (float("nan"), "BIGINT", "Can't convert NaN to BigInteger."),
        (5, "VERTEX", "asNumber() requires a numeric type token, got VERTEX"),
        ([1], None, "Can't parse type ArrayList as number."),
        (True, None, "Can't parse type Boolean as number."),
    ],
)
def test_a_number_that_does_not_fit_is_refused(value: Any, token: str | None, sentence: str) -> None:
    with pytest.raises(ExecutionFailure) as failure:
        convert(value, token)
    assert sentence in failure.value.sentence


def test_null_stays_null_and_numbers_stay_as_they_are() -> None:
    assert convert(None) is None
    assert convert(None, "INT") is None
    assert type(convert(Byte(5))) is Byte
    assert type(convert(Float(5.0))) is Float


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), (0, False), (-1, True), (0.0, False), (float("nan"), False), (" TRUE ", True), ("false", False)],
)
def test_values_become_booleans(value: Any, expected: bool) -> None:
    assert as_bool(value) is expected


@pytest.mark.parametrize(
    ("value", "sentence"),
    [(None, "Can't parse null as Boolean."), ("hello", "Can't parse hello as Boolean."), ([], "Can't parse ArrayList")],
)
def test_values_that_are_no_booleans_are_refused(value: Any, sentence: str) -> None:
    with pytest.raises(ExecutionFailure, match=sentence):
        as_bool(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-08-02T00:00:00Z", AUGUST),
        ("2023-08-02T00:00Z", AUGUST),
        ("2023-08-02T00:00:00", AUGUST),
        ("2023-08-02", AUGUST),
        ("2023-08", datetime(2023, 8, 1, tzinfo=UTC)),
        ("2023-08-02t00:00:00.123456789z", AUGUST.replace(microsecond=123456)),
        ("2023-08-02T00:00:00-07:00", datetime(2023, 8, 2, tzinfo=timezone(timedelta(hours=-7)))),
        ("2023-08-02T02:00:00+0200", AUGUST),
    ],
)
def test_a_text_becomes_a_date(text: str, expected: datetime) -> None:
    assert as_date(text) == expected


@pytest.mark.parametrize("text", ["", "x", "2023", "2023-13", "2023-08-32", "2023-08-02T25:00", "2023-08-02T00:00+99"])
def test_a_text_that_is_no_date_is_refused(text: str) -> None:
    assert parse_date(text) is None
    with pytest.raises(ExecutionFailure, match=r"Can't parse .*as OffsetDateTime"):
        as_date(text)


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_date_survives_its_text(moment: datetime) -> None:
    assert as_date(text_of(moment)) == moment


def test_numbers_are_milliseconds_and_dates_stay() -> None:
    assert as_date(1694017707000) == datetime(2023, 9, 6, 16, 28, 27, tzinfo=UTC)
    assert as_date(Long(-1)) == datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    assert as_date(AUGUST) is AUGUST
    for value in (None, 1.5, [1], True, 10**30):
        with pytest.raises(ExecutionFailure, match="Can't parse"):
            as_date(value)


def test_times_are_added_to_dates() -> None:
    assert add_to_date("hour", 2)(AUGUST) == AUGUST + timedelta(hours=2)
    assert add_to_date("day", -1)(AUGUST) == AUGUST - timedelta(days=1)
    with pytest.raises(ExecutionFailure, match="DT tokens should only be second, minute, hour, or day"):
        add_to_date("year", 1)
    with pytest.raises(ExecutionFailure, match="accept only OffsetDateTime"):
        add_to_date("day", 1)("x")
    with pytest.raises(ExecutionFailure, match="years 1 to 9999"):
        add_to_date("day", 2**31 - 1)(AUGUST)


def test_dates_differ_by_milliseconds() -> None:
    assert date_difference(AUGUST, AUGUST + timedelta(days=7)) == -604800000
    assert date_difference(AUGUST, None) == 1690934400000
    assert type(date_difference(AUGUST, AUGUST)) is Long
    for value, other in ((5, AUGUST), (AUGUST, 5), (None, AUGUST)):
        with pytest.raises(ExecutionFailure, match="DateDiff can only take OffsetDateTime"):
            date_difference(value, other)

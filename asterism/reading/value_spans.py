"""Conditions on one path as spans of the bytes that its values have in an index.

A span holds every value that meets its conditions. It is exact when it holds no other value: a value whose encoding is
cut may stand for several, and a condition that compares with one is then only a first choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from asterism.models.documents.indexes.composite import TURNED
from asterism.reading.conditions import Comparison, Defined, OneOf, Operator, PathCondition, Prefix
from asterism.values.value_order import ValueOrder, behind, is_truncated

# No encoding begins with this byte, turned round or not.
ANY_VALUE_END: Final = b"\xff"


@dataclass(frozen=True, slots=True)
class ValueSpan:
    """Values whose bytes are from `low` up to, not including, `high`."""

    low: bytes
    high: bytes
    # Whether all of them have the bytes `low`, so that index entries are in the order of item numbers.
    is_point: bool = False
    is_exact: bool = True


ANY_VALUE: Final = ValueSpan(b"", ANY_VALUE_END)


def spans_of(conditions: Iterable[PathCondition], order: ValueOrder, bytes_max: int) -> list[ValueSpan]:
    """Return the spans, in order and apart from each other, of values that meet all conditions. An index has at most
    `bytes_max` bytes of each value."""
    spans = [ANY_VALUE]
    for condition in conditions:
        spans = _meeting(spans, _spans_of(condition, order, bytes_max))
    return spans


def joined(spans: Iterable[ValueSpan]) -> list[ValueSpan]:
    """Return spans that hold the same values, in order and apart from each other."""
    found: list[ValueSpan] = []
    for span in sorted(spans, key=lambda each: (each.low, each.high)):
        last = found[-1] if found else None
        if last is None or span.low >= last.high:
            found.append(span)
        elif span != last:
            is_exact = last.is_exact and span.is_exact
            found[-1] = ValueSpan(last.low, max(last.high, span.high), is_exact=is_exact)
    return found


def turned(spans: Sequence[ValueSpan]) -> list[ValueSpan]:
    """Return the spans of the same values in an index that has every bit of them turned round."""
    return [_turned(span) for span in reversed(spans)]


def _turned(span: ValueSpan) -> ValueSpan:
    if span.is_point:
        return _point(span.low.translate(TURNED), is_exact=span.is_exact)
    # What begins with a bound is behind it, turned round or not: so each bound is passed as a whole.
    low = behind(span.high.translate(TURNED))
    high = behind(span.low.translate(TURNED)) if span.low else ANY_VALUE_END
    return ValueSpan(low, high, is_exact=span.is_exact)


def _point(encoded: bytes, *, is_exact: bool) -> ValueSpan:
    return ValueSpan(encoded, behind(encoded), is_point=True, is_exact=is_exact)


def _meeting(left: Sequence[ValueSpan], right: Sequence[ValueSpan]) -> list[ValueSpan]:
    found: list[ValueSpan] = []
    at_left = at_right = 0
    while at_left < len(left) and at_right < len(right):
        one, other = left[at_left], right[at_right]
        low, high = max(one.low, other.low), min(one.high, other.high)
        if low < high:
            is_point = one.is_point or other.is_point
            found.append(ValueSpan(low, high, is_point, one.is_exact and other.is_exact))
        if one.high <= other.high:
            at_left += 1
        else:
            at_right += 1
    return found


def _spans_of(condition: PathCondition, order: ValueOrder, bytes_max: int) -> list[ValueSpan]:
    match condition:
        case Comparison(_, operator, value):
            span = _compared(operator, value, order, bytes_max)
            return [span] if span.low < span.high else []
        case OneOf(_, values):
            return joined(_compared("=", value, order, bytes_max) for value in values)
        case Prefix(_, prefix):
            return [_beginning(prefix, order, bytes_max)]
        case Defined():
            return [ValueSpan(low, high) for low, high in order.defined_spans]
        case _:
            assert_never(condition)


def _compared(operator: Operator, value: object, order: ValueOrder, bytes_max: int) -> ValueSpan:
    """Return the values that compare so with `value`; comparisons hold within one type."""
    encoded = order.encode(value, bytes_max=bytes_max)
    is_exact = not is_truncated(encoded, bytes_max)
    after = behind(encoded)
    type_start, type_end = order.type_span(encoded)
    match operator:
        case "=":
            return _point(encoded, is_exact=is_exact)
        case "<":
            return ValueSpan(type_start, encoded if is_exact else after, is_exact=is_exact)
        case "<=":
            return ValueSpan(type_start, after, is_exact=is_exact)
        case ">":
            return ValueSpan(after if is_exact else encoded, type_end, is_exact=is_exact)
        case ">=":
            return ValueSpan(encoded, type_end, is_exact=is_exact)
        case _:
            assert_never(operator)


def _beginning(prefix: str, order: ValueOrder, bytes_max: int) -> ValueSpan:
    # A NUL in a string is escaped in its encoding, and the string's end is not part of a prefix.
    whole = order.encode(prefix, bytes_max=None)[: -len(order.string_end)]
    encoded = whole[: bytes_max - 1]
    return ValueSpan(encoded, behind(encoded), is_exact=encoded == whole)

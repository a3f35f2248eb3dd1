"""Conditions on one path as spans of the bytes that its values have in an index.

A span holds every value that meets its conditions. It is exact if it holds no other value: a truncated encoding may
stand for several values, and a condition that compares with one then only preselects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from asterism.models.documents.indexes.composite import INVERTED
from asterism.reading.conditions import Comparison, Defined, OneOf, Operator, PathCondition, Prefix
from asterism.values.value_order import ValueOrder, behind, is_truncated

# No encoding begins with this byte, inverted or not.
ANY_VALUE_END: Final = b"\xff"


@dataclass(frozen=True, slots=True)
class ValueSpan:
    """Values whose bytes are from `low` up to, not including, `high`."""

    low: bytes
    high: bytes
    # True if all of them have the bytes `low`, so that index entries are in the order of item numbers.
    is_point: bool = False
    is_exact: bool = True


ANY_VALUE: Final = ValueSpan(b"", ANY_VALUE_END)


def spans_of(conditions: Iterable[PathCondition], order: ValueOrder, bytes_max: int) -> list[ValueSpan]:
    """Return the spans, in order and disjoint, of values that meet all conditions. An index has at most `bytes_max`
    bytes of each value."""
    spans = [ANY_VALUE]
    for condition in conditions:
        spans = _intersection(spans, _spans_of(condition, order, bytes_max))
    return spans


def joined(spans: Iterable[ValueSpan]) -> list[ValueSpan]:
    """Return spans that hold the same values, in order and disjoint."""
    found: list[ValueSpan] = []
    for span in sorted(spans, key=lambda each: (each.low, each.high)):
        last = found[-1] if found else None
        if last is None or span.low >= last.high:
            found.append(span)
        elif span != last:
            is_exact = last.is_exact and span.is_exact
            found[-1] = ValueSpan(last.low, max(last.high, span.high), is_exact=is_exact)
    return found


def inverted(spans: Sequence[ValueSpan]) -> list[ValueSpan]:
    """Return the spans of the same values in an index that has every bit of them inverted."""
    return [_inverted(span) for span in reversed(spans)]


def _inverted(span: ValueSpan) -> ValueSpan:
    if span.is_point:
        return _point(span.low.translate(INVERTED), is_exact=span.is_exact)
    # Bytes that begin with a bound are behind it, inverted or not, so each bound moves behind all of them.
    low = behind(span.high.translate(INVERTED))
    high = behind(span.low.translate(INVERTED)) if span.low else ANY_VALUE_END
    return ValueSpan(low, high, is_exact=span.is_exact)


def _point(encoded: bytes, *, is_exact: bool) -> ValueSpan:
    return ValueSpan(encoded, behind(encoded), is_point=True, is_exact=is_exact)


def _intersection(left: Sequence[ValueSpan], right: Sequence[ValueSpan]) -> list[ValueSpan]:
    found: list[ValueSpan] = []
    left_index = right_index = 0
    while left_index < len(left) and right_index < len(right):
        left_span, right_span = left[left_index], right[right_index]
        low, high = max(left_span.low, right_span.low), min(left_span.high, right_span.high)
        if low < high:
            is_point = left_span.is_point or right_span.is_point
            found.append(ValueSpan(low, high, is_point, left_span.is_exact and right_span.is_exact))
        if left_span.high <= right_span.high:
            left_index += 1
        else:
            right_index += 1
    return found


def _spans_of(condition: PathCondition, order: ValueOrder, bytes_max: int) -> list[ValueSpan]:
    match condition:
        case Comparison(_, operator, value):
            span = _compared(operator, value, order, bytes_max)
            return [span] if span.low < span.high else []
        case OneOf(_, values):
            return joined(_compared("=", value, order, bytes_max) for value in values)
        case Prefix(_, prefix):
            return [_prefixed(prefix, order, bytes_max)]
        case Defined():
            return [ValueSpan(low, high) for low, high in order.defined_spans]
        case _:
            assert_never(condition)


def _compared(operator: Operator, value: object, order: ValueOrder, bytes_max: int) -> ValueSpan:
    """Return the span of the values that compare with `value` by `operator`; comparisons hold within one type."""
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


def _prefixed(prefix: str, order: ValueOrder, bytes_max: int) -> ValueSpan:
    # A NUL in a string is escaped in its encoding, and the string's end is not part of a prefix.
    whole = order.encode(prefix, bytes_max=None)[: -len(order.string_end)]
    encoded = whole[: bytes_max - 1]
    return ValueSpan(encoded, behind(encoded), is_exact=encoded == whole)

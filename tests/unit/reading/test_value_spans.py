"""Spans of an index hold every value that meets their conditions, and no other where they say so."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pytest

from asterism.models.documents.indexes.composite import CompositeIndex
from asterism.reading.access_plan import ValueIndex, bounds_within, composite_index
from asterism.reading.conditions import Comparison, Defined, OneOf, Operator, PathCondition, Prefix
from asterism.reading.value_spans import ValueSpan, joined, spans_of
from asterism.values.json.key_bytes import encode
from asterism.values.json.order import compare, values_equal
from asterism.values.json.value_order import JSON_ORDER
from asterism.values.undefined import UNDEFINED

A, B, C = ("a",), ("b",), ("c",)
BYTES_MAX = 20
VALUES: list[Any] = [
    *(UNDEFINED, None, False, True, -1, 0, 1, 1.5, 2**53 + 1, "", "a", "ab", "b", "a\x00", "a\x00b"),
    *("x" * 16, "x" * 17, "x" * 18, "x" * 30, "x" * 30 + "y", [], [1], ["x" * 30], {}, {"p": 1}),
]
PRIMITIVES = [value for value in VALUES if value is not UNDEFINED and not isinstance(value, list | dict)]
OPERATORS: list[Operator] = ["=", "<", "<=", ">", ">="]


def meets(value: Any, condition: PathCondition) -> bool:
    match condition:
        case Comparison(_, "=", wanted):
            return value is not UNDEFINED and values_equal(value, wanted)
        case Comparison(_, operator, wanted):
            numbers = (int, float)
            are_alike = type(value) is type(wanted) or (type(value) in numbers and type(wanted) in numbers)
            signs = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}[operator]
            return are_alike and compare(value, wanted) in signs
        case OneOf(_, values):
            return value is not UNDEFINED and any(values_equal(value, wanted) for wanted in values)
        case Prefix(_, prefix):
            return isinstance(value, str) and value.startswith(prefix)
        case Defined():
            return value is not UNDEFINED


def conditions_on(path: tuple[str, ...]) -> list[PathCondition]:
    compared = [Comparison(path, operator, value) for operator in OPERATORS for value in PRIMITIVES]
    prefixes = [Prefix(path, text) for text in ("", "a", "a\x00", "x" * 16, "x" * 17, "x" * 19, "x" * 25)]
    chosen = [OneOf(path, (1, "a", 1.0, None)), OneOf(path, ("x" * 30, False)), OneOf(path, ())]
    return [*compared, *prefixes, *chosen, Defined(path)]


def holds(spans: Any, entry: bytes) -> bool:
    return any(span.low <= entry < span.high for span in spans)


def check(spans: Any, entries: list[tuple[bytes, bool]], what: object) -> None:
    """Check spans against `entries`: the bytes of values, each with True if it meets the conditions."""
    assert [what for entry, is_wanted in entries if is_wanted and not holds(spans, entry)] == []
    if all(span.is_exact for span in spans):
        assert [(what, entry) for entry, is_wanted in entries if not is_wanted and holds(spans, entry)] == []
    for span in spans:
        inside = {entry for entry, _ in entries if span.low <= entry < span.high}
        assert not span.is_point or inside <= {span.low}, what
    assert all(left.high <= right.low for left, right in pairwise(spans)), what


def test_a_condition_is_a_span_of_the_values_that_meet_it() -> None:
    for condition in conditions_on(A):
        entries = [(encode(value, bytes_max=BYTES_MAX), meets(value, condition)) for value in VALUES]
        check(spans_of([condition], JSON_ORDER, BYTES_MAX), entries, condition)


def test_several_conditions_leave_what_meets_all_of_them() -> None:
    several = [condition for condition in conditions_on(A) if not isinstance(condition, Comparison)]
    several += [
        Comparison(A, operator, value) for operator in OPERATORS for value in (1, "a", "x" * 17, "x" * 30, True)
    ]
    for pair in product(several, several):
        entries = [
            (encode(value, bytes_max=BYTES_MAX), all(meets(value, condition) for condition in pair)) for value in VALUES
        ]
        check(spans_of(pair, JSON_ORDER, BYTES_MAX), entries, pair)


def test_joined_spans_hold_what_any_of_them_holds() -> None:
    some = conditions_on(A)[::3]
    for left, right in product(some, some):
        spans = [*spans_of([left], JSON_ORDER, BYTES_MAX), *spans_of([right], JSON_ORDER, BYTES_MAX)]
        entries = [(encode(value, bytes_max=BYTES_MAX), meets(value, left) or meets(value, right)) for value in VALUES]
        check(joined(spans), entries, (left, right))


def test_spans_that_only_touch_stay_apart() -> None:
    points = [ValueSpan(b"\x03", b"\x04", is_point=True), ValueSpan(b"\x04", b"\x05", is_point=True)]
    assert joined(points[::-1]) == points


# Of one value, or of several.
GIVEN: list[PathCondition] = [Comparison(A, "=", "a"), Comparison(A, "=", "x" * 30), OneOf(A, (1, "b", None))]
FIRST: list[PathCondition] = [*GIVEN, Comparison(A, ">", 0), Prefix(A, "a")]
SECOND: list[PathCondition] = [
    *(Comparison(B, operator, value) for operator in OPERATORS for value in (1, "a", "x" * 17, "x" * 30, True)),
    OneOf(B, ("a", 1.5)),
    Prefix(B, "x" * 17),
    Defined(B),
]


@pytest.mark.parametrize("directions", list(product([False, True], repeat=3)))
def test_a_composite_index_is_bounded_by_conditions_on_its_first_paths(directions: tuple[bool, ...]) -> None:
    composite = CompositeIndex(b"", ((A, directions[0]), (B, directions[1]), (C, directions[2])), JSON_ORDER)
    values = [UNDEFINED, True, 1, 1.5, "a", "b", "x" * 17, "x" * 30, "x" * 30 + "y", [1]]
    for first, second in product(FIRST, SECOND):
        conditions = {A: [first], B: [second]}
        bounds = bounds_within(_shortened(composite), conditions)
        entries = []
        for combination in product(values, values, [7]):
            entry = b"".join(
                encoded.translate(bytes(255 - byte for byte in range(256))) if descends else encoded
                for encoded, descends in zip(
                    (encode(value, bytes_max=BYTES_MAX) for value in combination), directions, strict=True
                )
            )
            is_wanted = all(
                meets(value, condition)
                for path, value in zip((A, B), combination, strict=False)
                if path in bounds.paths
                for condition in conditions[path]
            )
            entries.append((entry, is_wanted))
        check(bounds.spans, entries, (first, second))
        is_given = all(
            isinstance(condition, OneOf) or getattr(condition, "operator", "") == "=" for condition in (first,)
        )
        assert bounds.paths == ({A, B} if is_given else {A})


def _shortened(composite: CompositeIndex) -> ValueIndex:
    index = composite_index(composite)
    return replace(index, value_bytes_max=BYTES_MAX)

"""`$filter`: its grammar, what it compares, and where it looks."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.table.entities.entity_json import read_entity
from asterism.languages.odata.malformed_filter import MalformedFilter
from asterism.languages.odata.match import make_matcher
from asterism.languages.odata.parser import parse_filter
from asterism.languages.odata.spans import Interval, KeySpan, order, spans_of, within
from asterism.languages.odata.tree import And, Compare, Comparison, Condition, Constant, IsTrue, Literal, Not, Or
from asterism.models.tables.codec import decode
from asterism.models.tables.entities import StoredEntity
from asterism.models.tables.property_types import EdmType
from asterism.values.json.text import dumps
from asterism.values.ticks import ticks_of

NOON = "2026-11-16T12:00:00Z"
GUID = "c9da6455-213d-42c9-9a79-3e9149a57833"


def entity(partition_key: str = "p", row_key: str = "r", **properties: object) -> StoredEntity:
    members = {name.replace("__type", "@odata.type"): value for name, value in properties.items()}
    given = read_entity(dumps(members), is_cosmos=False)
    ticks = ticks_of(NOON)
    assert ticks is not None
    return StoredEntity(partition_key, row_key, ticks, given.properties)


EVERYTHING = entity(
    text="it's",
    small=7,
    large="70000000000",
    large__type="Edm.Int64",
    real=7.5,
    yes=True,
    no=False,
    moment=NOON,
    moment__type="Edm.DateTime",
    guid=GUID,
    guid__type="Edm.Guid",
    data="AAH/",
    data__type="Edm.Binary",
    endless="Infinity",
    endless__type="Edm.Double",
)


def matches(text: str, stored: StoredEntity = EVERYTHING) -> bool:
    return make_matcher(parse_filter(text)).matches(stored)


@pytest.mark.parametrize(
    "text",
    [
        "text eq 'it''s'",
        "'it''s' eq text",
        "small eq 7",
        "small lt 8 and small gt 6",
        "7 le small",
        "8 gt small",
        "large eq 70000000000L",
        "large eq 70000000000",
        "large gt 5",
        "real eq 7.5",
        "real gt 7",
        "real lt 70000000000L",
        "real gt -1e3",
        "yes",
        "yes eq true",
        "(yes) eq true",
        "no eq false",
        "not no",
        "not (small eq 8)",
        "no lt true",
        f"moment eq datetime'{NOON}'",
        "moment gt datetime'2026-11-16T11:59:59.9999999Z'",
        f"guid eq guid'{GUID.upper()}'",
        "guid gt guid'00000000-0000-0000-0000-000000000000'",
        "data eq X'0001ff'",
        "data eq binary'0001FF'",
        "data gt x'0001'",
        "endless gt 1e300",
        "PartitionKey eq 'p' and RowKey eq 'r'",
        f"Timestamp ge datetime'{NOON}'",
        "small eq 8 or text ne 'x'",
        "small eq 7 or small eq 8 and small eq 9",
        "((small eq 7))",
        "true",
        "missing eq 1 or not (missing eq 1)",
    ],
)
def test_a_filter_that_holds(text: str) -> None:
    assert matches(text)


@pytest.mark.parametrize(
    "text",
    [
        "text eq 'it'",
        "text",
        "small",
        "no",
        "not yes",
        "small ne 7",
        "missing",
        "missing ne 1",
        "missing eq 1",
        "missing lt 1",
        "small eq 7L",
        "small eq '7'",
        "small eq 7.0",
        "(small eq 7 or small eq 8) and small eq 9",
        f"text eq guid'{GUID}'",
        "PartitionKey eq 5",
        "false",
    ],
)
def test_a_filter_that_does_not_hold(text: str) -> None:
    assert not matches(text)


@pytest.mark.parametrize(
    ("comparison", "expected"), [("eq", False), ("gt", False), ("ge", False), ("ne", True), ("lt", True), ("le", True)]
)
def test_a_property_counts_as_less_than_a_literal_of_a_type_it_cannot_be_compared_with(
    comparison: str, expected: bool
) -> None:
    assert matches(f"small {comparison} 'x'") is expected
    assert matches(f"small {comparison} 3L") is expected
    assert matches(f"PartitionKey {comparison} 3") is expected
    assert matches(f"Timestamp {comparison} 'x'") is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "small eq",
        "eq 7",
        "small eq 7 and",
        "small eq 7 small",
        "(small eq 7",
        "small eq 7)",
        "small EQ 7",
        "small == 7",
        "small eq other",
        "7 eq 7",
        "'x'",
        "5",
        "small eq 'unclosed",
        "moment eq datetime'yesterday'",
        "guid eq guid'123'",
        "data eq X'0'",
        "data eq X'zz'",
        "small eq 99999999999999999999",
        "startswith(text, 'i')",
        "small add 1 eq 8",
        "not",
        "(" * 2000 + "yes" + ")" * 2000,
        "not " * 5000 + "yes",
    ],
)
def test_a_text_that_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(MalformedFilter) as refused:
        parse_filter(text)
    assert 0 <= refused.value.position <= len(text)
    assert refused.value.reason.endswith(".")


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("a eq 1 and b eq ?", 15, "not a name"),
        ("  eq 7", 2, "must stand here"),
        ("a eq 'x' and 5", 13, "literal alone"),
        ("a eq  datetime'x'", 6, "not a datetime"),
        ("(a eq 1 b", 0, "not closed"),
        ("a eq 1 b", 7, "is complete"),
        ("a eq ", 4, "ends too early"),
        ("x and a eq b", 6, "on the other"),
    ],
)
def test_a_refusal_has_the_position_and_the_reason(text: str, position: int, reason: str) -> None:
    with pytest.raises(MalformedFilter, match=reason) as refused:
        parse_filter(text)
    assert refused.value.position == position


@given(st.text(alphabet="ab eqnotrdl'()0159.-LXguidtime", max_size=40))
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    with suppress(MalformedFilter):
        matches(text)


@pytest.mark.parametrize("name", ["नाम", "e\u0301tat", "größe", "名前", "_1"])
def test_any_name_that_a_property_can_have_can_be_filtered_on(name: str) -> None:
    stored = entity(**{name: 5})
    assert matches(f"{name} eq 5", stored)
    assert matches(f"5 le {name} and not ({name} gt 5)", stored)


def test_a_long_text_that_is_almost_a_number_is_refused_and_not_pondered() -> None:
    with pytest.raises(MalformedFilter):
        parse_filter("x eq " + "1" * 60_000 + "x")


def test_a_date_alone_is_its_first_moment() -> None:
    assert matches("moment gt datetime'2026-11-16'")
    assert matches("moment lt datetime'2026-11-17'")


def test_whole_numbers_beyond_32_bits_need_no_suffix() -> None:
    assert parse_filter("a eq 3000000000") == Compare("a", Comparison.EQ, Literal(EdmType.INT64, 3_000_000_000))


# --- spans ----------------------------------------------------------------------------------------------------------


def test_a_point_is_a_span_of_one_key() -> None:
    assert spans_of(parse_filter("PartitionKey eq 'p' and RowKey eq 'r'")) == [KeySpan(("p", "r"), ("p", "r\0"))]


def test_a_range_of_rows_in_a_partition_is_one_span() -> None:
    (span,) = spans_of(parse_filter("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'c' and x eq 1"))
    assert span == KeySpan(("p", "a"), ("p", "c"))
    assert span.partition_key == "p"


def test_a_range_of_partitions_is_one_span() -> None:
    (span,) = spans_of(parse_filter("PartitionKey ge 'a' and PartitionKey lt 'c'"))
    assert span == KeySpan(("a", ""), ("c", ""))
    assert span.partition_key is None


def test_alternatives_are_spans_in_order_and_apart() -> None:
    text = "PartitionKey eq 'c' or (PartitionKey eq 'a' and RowKey gt '5') or PartitionKey eq 'a'"
    assert spans_of(parse_filter(text)) == [
        KeySpan(("a", ""), ("a\0", "")),
        KeySpan(("c", ""), ("c\0", "")),
    ]


def test_conditions_that_exclude_each_other_leave_nothing_to_read() -> None:
    assert spans_of(parse_filter("PartitionKey eq 'a' and PartitionKey eq 'b'")) == []


def test_a_filter_without_keys_looks_everywhere() -> None:
    assert spans_of(parse_filter("x eq 1 or PartitionKey eq 'a'")) == [KeySpan(("", ""), None)]


def test_a_thousand_keys_are_looked_up_one_by_one_and_more_are_still_answered() -> None:
    def alternatives(count: int) -> str:
        return " or ".join(f"PartitionKey eq 'p{number:04}'" for number in range(count))

    assert len(spans_of(parse_filter(alternatives(1000)))) == 1000
    assert len(spans_of(parse_filter(f"RowKey eq 'r' and ({alternatives(1000)})"))) == 1000
    (span,) = spans_of(parse_filter(alternatives(2000)))
    assert span == KeySpan(("p0000", ""), ("p1999\0", ""))


def test_alternatives_of_alternatives_are_not_multiplied_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    combined = 0
    common = Interval.common

    def counted(interval: Interval, other: Interval) -> Interval:
        nonlocal combined
        combined += 1
        return common(interval, other)

    monkeypatch.setattr(Interval, "common", counted)
    pairs = " and ".join(f"(RowKey ge '0' or RowKey lt '{number}')" for number in range(1, 100))
    assert spans_of(parse_filter(f"PartitionKey eq 'p' and {pairs}")) == [KeySpan(("p", ""), ("p\0", ""))]
    assert combined < 2000


def test_a_partition_key_counts_however_many_rows_are_asked_for() -> None:
    rows = " or ".join(f"RowKey eq '{number:03}'" for number in range(200))
    more = " or ".join(f"RowKey ge '{number:03}'" for number in range(20))
    assert len(spans_of(parse_filter(f"({rows}) and PartitionKey eq 'p'"))) == 200
    for text in (f"({rows}) and ({more}) and PartitionKey eq 'p'", f"PartitionKey eq 'p' and ({more}) and ({rows})"):
        assert {span.partition_key for span in spans_of(parse_filter(text))} == {"p"}
    two = spans_of(parse_filter(f"({rows}) and (PartitionKey eq 'p' or PartitionKey eq 'q')"))
    assert {span.partition_key for span in two} == {"p", "q"}


def test_spans_are_cut_to_what_is_granted() -> None:
    spans = spans_of(parse_filter("PartitionKey lt 'c' or PartitionKey eq 'd' or PartitionKey ge 'f'"))
    assert within(spans, ("b", ""), ("d", "5\0")) == [
        KeySpan(("b", ""), ("c", "")),
        KeySpan(("d", ""), ("d", "5\0")),
    ]
    assert within(spans, ("g", "1"), None) == [KeySpan(("g", "1"), None)]
    assert within(spans, ("d\0", ""), ("f", "")) == []


KEY_TEXTS = st.text(st.sampled_from("ab\ue000\U0001f600"), max_size=3)
COMPARISONS = st.builds(
    Compare,
    st.sampled_from(["PartitionKey", "RowKey", "x"]),
    st.sampled_from(list(Comparison)),
    st.builds(Literal, st.just(EdmType.STRING), KEY_TEXTS),
)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    COMPARISONS | st.builds(Constant, st.booleans()) | st.just(IsTrue("x")),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(lambda parts: And(tuple(parts)), st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda parts: Or(tuple(parts)), st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=8,
)


@given(CONDITIONS, KEY_TEXTS, KEY_TEXTS, KEY_TEXTS)
def test_every_match_lies_in_a_span_and_spans_are_in_order_and_apart(
    condition: Condition, partition_key: str, row_key: str, x: str
) -> None:
    spans = spans_of(condition)
    bounds = [order(key) for span in spans for key in span if key is not None]
    assert bounds == sorted(bounds)
    stored = entity(partition_key, row_key, x=x)
    if make_matcher(condition).matches(stored):
        key = order((partition_key, row_key))
        assert any(order(span.lower) <= key and (span.upper is None or key < order(span.upper)) for span in spans)


@given(CONDITIONS, KEY_TEXTS)
def test_looking_at_bytes_first_changes_no_answer(condition: Condition, x: str) -> None:
    matcher = make_matcher(condition)
    for stored in (entity(x=x), entity(y=x), entity(x=True), entity(x=5)):
        assert matcher.matches(stored) == matcher.test(stored, decode(stored.properties))

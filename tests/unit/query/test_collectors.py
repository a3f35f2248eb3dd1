from __future__ import annotations

import functools
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.errors import TooLarge
from asterism.languages.cosmos_sql import CompiledQuery, Kind, compile_query, parse_query
from asterism.reading import limits
from asterism.reading.ordered_rows import positions_before
from asterism.values.json.order import compare, sort_key
from asterism.values.undefined import UNDEFINED

Item = dict[str, Any]

_SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, -1.0, 2.0, "", "a", "b"])
_VALUES = _SCALARS | st.lists(_SCALARS, max_size=2) | st.dictionaries(st.sampled_from("xy"), _SCALARS, max_size=2)
_ITEMS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "n"]), _VALUES, max_size=3), max_size=12)
_PARTITIONS = st.lists(_ITEMS, max_size=4)

_QUERIES = [
    "SELECT * FROM c",
    "SELECT TOP 3 VALUE c.a FROM c",
    "SELECT VALUE x FROM c JOIN x IN c.a OFFSET 1 LIMIT 4",
    "SELECT DISTINCT VALUE c.a FROM c",
    "SELECT DISTINCT TOP 2 c.a, c.b FROM c",
    "SELECT * FROM c ORDER BY c.a",
    "SELECT * FROM c ORDER BY c.a DESC, c.b",
    "SELECT TOP 2 * FROM c ORDER BY c.b DESC",
    "SELECT DISTINCT VALUE c.b FROM c ORDER BY c.a OFFSET 1 LIMIT 2",
    "SELECT VALUE [COUNT(c.a), SUM(c.n), AVG(c.n), MIN(c.a), MAX(c.b), COUNTIF(c.a)] FROM c",
    "SELECT VALUE {'l': MAKELIST(c.a), 's': MAKESET(c.b)} FROM c",
    "SELECT c.a, COUNT(1) AS n, SUM(c.n) AS total FROM c GROUP BY c.a",
    "SELECT VALUE MAX(c.n) FROM c GROUP BY c.a, c.b ORDER BY c.b DESC OFFSET 0 LIMIT 3",
    "SELECT COUNT(1) AS n FROM c JOIN x IN c.a GROUP BY x",
]


def _compiled(text: str) -> CompiledQuery:
    return compile_query(parse_query(text), {})


def _results(query: CompiledQuery, items: list[Item]) -> list[object]:
    collector = query.new_collector()
    for item in items:
        collector.feed(item)
    return list(collector.results())


@settings(max_examples=40)
@pytest.mark.parametrize("text", _QUERIES)
@given(partitions=_PARTITIONS)
def test_merged_partitions_equal_one_collector_of_all_items(text: str, partitions: list[list[Item]]) -> None:
    query = _compiled(text)
    merged = query.new_collector()
    for items in partitions:
        part = query.new_collector()
        for item in items:
            part.feed(item)
        merged.merge_state(pickle.loads(pickle.dumps(part.partial_state())))
    everything = [item for items in partitions for item in items]
    assert json.dumps(list(merged.results())) == json.dumps(_results(query, everything))


@given(_PARTITIONS)
def test_it_does_not_matter_which_partitions_are_merged_first(partitions: list[list[Item]]) -> None:
    query = _compiled("SELECT VALUE [COUNT(1), SUM(c.n), AVG(c.n), MIN(c.a), MAX(c.a)] FROM c")
    forward, backward = query.new_collector(), query.new_collector()
    for collector, order in ((forward, partitions), (backward, partitions[::-1])):
        for items in order:
            part = query.new_collector()
            for item in items:
                part.feed(item)
            collector.merge(part)
    assert sort_key(list(forward.results())) == sort_key(list(backward.results()))


@given(_ITEMS)
def test_distinct_keeps_the_first_of_equal_values(items: list[Item]) -> None:
    kept: list[object] = []
    for value in (item["a"] for item in items if "a" in item):
        kept += [value] if all(compare(value, other) for other in kept) else []
    assert json.dumps(_results(_compiled("SELECT DISTINCT VALUE c.a FROM c"), items)) == json.dumps(kept)


@given(_ITEMS)
def test_every_row_is_in_the_group_of_its_key(items: list[Item]) -> None:
    groups: list[tuple[object, list[Item]]] = []
    for item in items:
        key = item.get("a", UNDEFINED)
        found = [rows for other, rows in groups if compare(key, other) == 0]
        groups += [] if found else [(key, [])]
        next(rows for other, rows in groups if compare(key, other) == 0).append(item)
    results = _results(_compiled("SELECT MAKELIST(c) AS rows FROM c GROUP BY c.a"), items)
    assert json.dumps(results) == json.dumps([{"rows": rows} for _, rows in groups])


@pytest.mark.parametrize(("first", "second"), [("ASC", "ASC"), ("ASC", "DESC"), ("DESC", "ASC"), ("DESC", "DESC")])
@given(items=_ITEMS)
def test_rows_are_in_order(first: str, second: str, items: list[Item]) -> None:
    def order(left: Item, right: Item) -> int:
        by_a = compare(left.get("a", UNDEFINED), right.get("a", UNDEFINED))
        by_b = compare(left.get("b", UNDEFINED), right.get("b", UNDEFINED))
        return by_a * {"ASC": 1, "DESC": -1}[first] or by_b * {"ASC": 1, "DESC": -1}[second]

    results = _results(_compiled(f"SELECT * FROM c ORDER BY c.a {first}, c.b {second}"), items)
    assert json.dumps(results) == json.dumps(sorted(items, key=functools.cmp_to_key(order)))


@given(_ITEMS)
def test_rows_without_a_value_are_in_every_order(items: list[Item]) -> None:
    assert len(_results(_compiled("SELECT * FROM c ORDER BY c.a"), items)) == len(items)


@pytest.mark.parametrize(("direction", "expected"), [("ASC", [1, 2, 3, 0]), ("DESC", [0, 3, 2, 1])])
def test_equal_rows_are_in_the_order_of_item_numbers_or_against_it(direction: str, expected: list[int]) -> None:
    collector = _compiled(f"SELECT VALUE c.id FROM c ORDER BY c.a {direction}").new_collector()
    for identity, value in ((3, 1), (0, 2), (1, 1), (2, 1)):
        collector.feed({"id": identity, "a": value}, identity)
    assert list(collector.results()) == expected


@given(_ITEMS, st.integers(0, 8), st.sampled_from(["ASC", "DESC"]))
def test_a_collector_resumes_after_any_of_its_rows(items: list[Item], count: int, direction: str) -> None:
    query = _compiled(f"SELECT VALUE x FROM c JOIN x IN c.a ORDER BY x {direction}")
    whole = query.ordered_collector(None, None)
    for number, item in enumerate(items):
        whole.feed(item, number)
    rows = whole.ordered_rows()
    for before, index in zip(positions_before(rows, None), range(min(count, len(rows))), strict=False):
        rest = query.ordered_collector(None, before)
        for number, item in reversed(list(enumerate(items))):
            rest.feed(item, number)
        assert rest.ordered_rows() == rows[index:]


@given(_ITEMS, st.integers(0, 5), st.integers(0, 5))
def test_a_window_is_a_slice(items: list[Item], offset: int, limit: int) -> None:
    everything = _results(_compiled("SELECT * FROM c ORDER BY c.a"), items)
    window = _results(_compiled(f"SELECT * FROM c ORDER BY c.a OFFSET {offset} LIMIT {limit}"), items)
    assert window == everything[offset : offset + limit]


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_the_first_few_of_many_rows_are_those_of_the_whole_order(direction: str) -> None:
    items = [{"id": number, "a": number * 7919 % 1009} for number in range(5000)]
    everything = _results(_compiled(f"SELECT VALUE c.id FROM c ORDER BY c.a {direction}"), items)
    assert _results(_compiled(f"SELECT TOP 25 VALUE c.id FROM c ORDER BY c.a {direction}"), items) == everything[:25]


def test_the_first_few_distinct_results_are_found_among_many_equal_rows() -> None:
    items = [{"id": number // 2000, "a": number} for number in range(5000)]
    assert _results(_compiled("SELECT DISTINCT TOP 3 VALUE c.id FROM c ORDER BY c.a"), items) == [0, 1, 2]


def test_a_full_collector_reports_it() -> None:
    collector = _compiled("SELECT TOP 2 * FROM c").new_collector()
    fullness = []
    for number in range(3):
        collector.feed({"id": number})
        fullness.append(collector.is_full)
    assert fullness == [False, True, True]


def test_results_can_be_read_more_than_once() -> None:
    collector = _compiled("SELECT VALUE c.a FROM c ORDER BY c.a").new_collector()
    collector.feed({"a": 2})
    first = list(collector.results())
    collector.feed({"a": 1})
    assert [first, list(collector.results())] == [[2], [1, 2]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT * FROM c", Kind.STREAMING),
        ("SELECT TOP 1 * FROM c", Kind.STREAMING),
        ("SELECT VALUE x FROM c JOIN x IN c.a OFFSET 1 LIMIT 1", Kind.STREAMING),
        ("SELECT VALUE (SELECT VALUE COUNT(1) FROM x IN c.a) FROM c", Kind.STREAMING),
        ("SELECT DISTINCT c.a FROM c", Kind.DISTINCT),
        ("SELECT DISTINCT c.a FROM c ORDER BY c.a", Kind.ORDERED),
        ("SELECT VALUE COUNT(1) FROM c", Kind.AGGREGATE),
        ("SELECT c.a FROM c GROUP BY c.a", Kind.GROUPED),
    ],
)
def test_a_query_has_the_kind_of_its_clauses(text: str, kind: Kind) -> None:
    assert _compiled(text).kind is kind


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM c ORDER BY c.a",
        "SELECT DISTINCT VALUE c.a FROM c",
        "SELECT VALUE MAKELIST(c.a) FROM c",
        "SELECT VALUE MAKESET(c.a) FROM c",
        "SELECT c.a FROM c GROUP BY c.a",
        "SELECT VALUE c.a FROM c",
    ],
)
def test_no_collector_keeps_more_than_allowed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COLLECTED_BYTES_MAX", 10_000)
    with pytest.raises(TooLarge):
        _results(_compiled(text), [{"a": f"{number}" * 100} for number in range(100)])


def test_the_first_few_rows_need_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COLLECTED_BYTES_MAX", 1_000_000)
    items = [{"a": number, "text": "x" * 100} for number in range(10_000)]
    assert len(_results(_compiled("SELECT TOP 5 * FROM c ORDER BY c.a DESC"), items)) == 5


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE 1 FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a",
        "SELECT VALUE ARRAY(SELECT VALUE 1 FROM x IN c.a JOIN y IN c.a JOIN z IN c.a) FROM c",
        "SELECT * FROM c WHERE ALL(SELECT VALUE 1 FROM x IN c.a JOIN y IN c.a JOIN z IN c.a WHERE x >= 0)",
        "SELECT VALUE (SELECT VALUE COUNT(1) FROM y IN c.a) FROM c JOIN x IN c.a",
    ],
)
def test_a_product_of_arrays_is_stopped(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROWS_PER_ITEM_MAX", 500)
    with pytest.raises(TooLarge):
        _results(_compiled(text), [{"a": list(range(30))}])


def test_the_limit_of_rows_is_for_each_item(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROWS_PER_ITEM_MAX", 50)
    items: list[Item] = [{"a": list(range(20))}] * 10
    query = _compiled("SELECT VALUE EXISTS(SELECT VALUE x FROM x IN c.a WHERE x = 19) FROM c")
    assert [query.project(item) for item in items] == [True] * 10
    assert [result for item in items for result in query.rows(item)] == [True] * 10
    assert _results(query, items) == [True] * 10

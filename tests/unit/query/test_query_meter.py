"""The limits of one query: each attack is refused after a counted amount of work, and ordinary queries are not."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest

from asterism.errors import MalformedRequest, QueryMemoryInUse, QueryTookTooLong, TooLarge
from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.languages.cosmos_sql.compiling.compile import CompiledQuery
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax.parser import KEPT_QUERY_CHARACTERS_MAX, _parse_cached
from asterism.languages.cosmos_sql.syntax.token_stream import TOKENS_MAX
from asterism.reading.collectors import Collector
from asterism.reading.limits import (
    COLLECTED_BYTES_MAX,
    RESULT_BYTES_MAX,
    ROWS_PER_ITEM_MAX,
    STEPS_PER_ITEM_MAX,
    QueryAccount,
    QueryMemory,
    rough_bytes,
)
from asterism.values.json.order import sort_key, values_equal

MIB = 1024 * 1024
NUMBERS = list(range(1000))
CORNERS = 2000
CIRCLE = [
    [10 * math.cos(2 * math.pi * corner / CORNERS), 10 * math.sin(2 * math.pi * corner / CORNERS)]
    for corner in range(CORNERS)
]
ROUND = {"type": "Polygon", "coordinates": [[*CIRCLE, CIRCLE[0]]]}


def compiled(text: str, **parameters: object) -> CompiledQuery:
    return compile_query(parse_query(text), {f"@{name}": value for name, value in parameters.items()})


def results(query: CompiledQuery, items: Iterable[dict[str, object]] = ({},)) -> list[object]:
    collector = query.new_collector()
    for item in items:
        collector.feed(item)
    return list(collector.results())


# --- bytes ----------------------------------------------------------------------------------------------------------

PRODUCT = "FROM a IN (SELECT VALUE @numbers) JOIN b IN (SELECT VALUE @numbers)"
LONG = 'CONCAT(REPLICATE("x", 10000), ToString(a))'


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE {LONG} {PRODUCT}))",
        f"SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE {{long: {LONG}}} {PRODUCT}))",
        f"SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT DISTINCT VALUE CONCAT({LONG}, '-', ToString(b)) {PRODUCT}))",
        f"SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE @numbers {PRODUCT}))",
        f"SELECT VALUE (SELECT VALUE MAKELIST({LONG}) {PRODUCT})",
        f"SELECT VALUE (SELECT VALUE MAKESET(CONCAT({LONG}, '-', ToString(b))) {PRODUCT})",
        f"SELECT COUNT(1) AS many {PRODUCT} GROUP BY CONCAT({LONG}, '-', ToString(b))",
        f"SELECT DISTINCT VALUE CONCAT({LONG}, '-', ToString(b)) {PRODUCT}",
        f"SELECT VALUE {LONG} {PRODUCT} ORDER BY b",
    ],
)
def test_values_are_counted_while_a_query_makes_them(text: str) -> None:
    query = compiled(text, numbers=NUMBERS)
    with pytest.raises(TooLarge):
        results(query)
    made_rows = ROWS_PER_ITEM_MAX - query.meter.rows_left
    assert 0 < made_rows < 250_000


@pytest.mark.parametrize("constructor", ["[{}]", "{{{}}}", "CONCAT({})", "ARRAY_LENGTH(ARRAY_CONCAT({}))"])
def test_an_expression_of_many_parts_stays_within_the_limit(constructor: str) -> None:
    part = {"{{{}}}": "p{}: REVERSE(@long)", "ARRAY_LENGTH(ARRAY_CONCAT({}))": "[REVERSE(@long)]"}
    parts = ", ".join(part.get(constructor, "REVERSE(@long)").format(number) for number in range(300))
    query = compiled(f"SELECT VALUE {constructor.format(parts)}", long="x" * MIB)
    with pytest.raises(TooLarge):
        results(query)
    assert query.meter.account.held_bytes <= COLLECTED_BYTES_MAX + 2 * MIB


def test_the_memory_of_a_row_is_released_with_the_row() -> None:
    query = compiled(f"SELECT VALUE COUNT(1) {PRODUCT} WHERE LENGTH({LONG}) > 5", numbers=NUMBERS[:300])
    assert results(query) == [90_000]
    assert query.meter.bytes_built > 2 * COLLECTED_BYTES_MAX
    assert query.meter.account.held_bytes < MIB


def test_the_memory_of_an_item_is_released_with_the_item() -> None:
    query = compiled("SELECT VALUE LENGTH(CONCAT(c.long, c.long)) FROM c")
    item: dict[str, object] = {"long": "x" * MIB}
    for _ in range(200):
        assert list(query.rows(item)) == [2 * MIB]


def test_a_result_whose_parts_are_shared_is_refused_before_it_is_written() -> None:
    text = "@numbers"
    for _ in range(3):
        text = f"(SELECT VALUE [{', '.join(['v'] * 100)}] FROM (SELECT VALUE {text}) AS v)"
    query = compiled(f"SELECT VALUE {text}", numbers=NUMBERS)
    (shared,) = query.rows({})
    with pytest.raises(TooLarge):
        query.meter.check_result(shared)
    assert rough_bytes(shared, RESULT_BYTES_MAX) < 2 * RESULT_BYTES_MAX
    for compare in (sort_key, lambda value: values_equal(value, [list(part) for part in value])):
        with pytest.raises(TooLarge):
            compare(shared)


def test_a_list_of_all_items_is_no_larger_than_a_result_may_be() -> None:
    query = compiled("SELECT VALUE MAKELIST(c.long) FROM c")
    with pytest.raises(TooLarge):
        results(query, [{"long": f"{number}" + "x" * MIB} for number in range(40)])


# --- work -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "parameters"),
    [
        ("ST_AREA(@shape) > a", {"shape": ROUND}),
        ("ST_DISTANCE(@shape, @shape) > a", {"shape": ROUND}),
        ("ST_WITHIN(@shape, @shape)", {"shape": ROUND}),
        ("CONTAINS(@long, 'y', true)", {"long": "x" * MIB}),
        ("CONTAINS_ANY_CI(@long, 'y', 'z', ToString(a))", {"long": "x" * MIB}),
        ("ARRAY_CONTAINS(@many, [a])", {"many": [[number] for number in range(100_000)]}),
        ("SetUnion(@many, [a]) = [a]", {"many": list(range(100_000))}),
        ("@many = @other", {"many": list(range(100_000)), "other": list(range(100_000))}),
        ("@long LIKE @pattern", {"long": "a" * 200_000, "pattern": "%" + "a_" * 500 + "b%"}),
        (" OR ".join(f"a = {number}.5" for number in range(10_000)), {}),
    ],
)
def test_work_that_would_take_long_is_refused_before_it_is_done(
    condition: str, parameters: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is a hundredth of the real one, so that the test takes a hundredth of the time."""
    monkeypatch.setattr("asterism.reading.limits.STEPS_PER_ITEM_MAX", STEPS_PER_ITEM_MAX // 100)
    query = compiled(
        f"SELECT VALUE COUNT(1) FROM a IN (SELECT VALUE @numbers) WHERE {condition}", **parameters, numbers=NUMBERS
    )
    with pytest.raises(QueryTookTooLong):
        results(query)
    assert ROWS_PER_ITEM_MAX - query.meter.rows_left < len(NUMBERS)


def test_each_item_has_the_whole_budget() -> None:
    query = compiled("SELECT VALUE COUNT(1) FROM a IN c.numbers WHERE CONTAINS(ToString(a), '7')")
    assert results(query, [{"numbers": NUMBERS}] * 3) == [3 * 271]
    assert query.meter.steps >= 3 * len(NUMBERS)


def test_a_filter_that_makes_nothing_is_not_metered() -> None:
    for text in (
        "SELECT * FROM c",
        "SELECT c.id, c.n FROM c WHERE c.n > 3 AND IS_DEFINED(c.a) OR c.b IN (1, 2)",
        "SELECT VALUE COUNT(1) FROM c WHERE c.n = 3",
        "SELECT * FROM c ORDER BY c.n",
    ):
        assert not compiled(text).is_metered


def test_comparing_ordinary_values_of_many_items_stays_within_the_budget() -> None:
    query = compiled("SELECT VALUE c.id FROM c WHERE c.a = c.b")
    item: dict[str, object] = {"id": "1", "a": [1, 2, 3], "b": [1, 2, 3]}
    for _ in range(3 * STEPS_PER_ITEM_MAX // 1_000_000):
        assert query.matches(item)


# --- all queries together ---------------------------------------------------------------------------------------------


def new_collector(memory: QueryMemory) -> Collector:
    query = compiled("SELECT DISTINCT VALUE c.long FROM c")
    query.meter.account.draw_on(memory)
    return query.new_collector()


def feed(collector: Collector, numbers: range) -> None:
    for number in numbers:
        collector.feed({"long": f"{number}" + "x" * MIB})


def test_queries_share_the_memory_of_the_process_and_release_it() -> None:
    memory = QueryMemory(8 * MIB)
    early, late = [new_collector(memory), new_collector(memory)], new_collector(memory)
    for collector in early:
        feed(collector, range(3))
    with pytest.raises(QueryMemoryInUse):
        feed(late, range(6))
    del collector
    early.clear()
    feed(late, range(6, 9))
    del late
    assert memory.held_bytes == 0


def test_an_account_releases_its_memory_when_it_is_deleted() -> None:
    memory = QueryMemory(100 * MIB)
    account = QueryAccount(memory)
    account.take(50 * MIB)
    assert memory.held_bytes == 50 * MIB
    account.give_back(40 * MIB)
    assert memory.held_bytes == 10 * MIB
    del account
    assert memory.held_bytes == 0


# --- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE " + "+".join(["1"] * 100_000),
        "SELECT VALUE " + "NOT " * 50_000 + "true",
        "SELECT VALUE " + "[" * 200_000,
        "SELECT VALUE " + "(" * 200_000,
        "SELECT VALUE " + "c??" * 100_000 + "c",
        "SELECT VALUE f()" + ".a" * 100_000,
        "SELECT VALUE f()" + "[c]" * 100_000,
    ],
)
def test_a_text_that_nests_too_deep_is_refused_at_that_place(text: str) -> None:
    with pytest.raises(MalformedQuery) as refused:
        parse_query(text)
    assert refused.value.reason == "The query is nested too deeply."
    assert refused.value.end < 10_000


def test_a_text_with_too_many_words_is_refused() -> None:
    parse_query(f"SELECT * FROM c WHERE c.n IN ({','.join(['1'] * (TOKENS_MAX // 3))})")
    with pytest.raises(MalformedQuery):
        parse_query(f"SELECT * FROM c WHERE c.n IN ({','.join(['1'] * TOKENS_MAX)})")


def test_the_trees_of_long_texts_are_not_cached() -> None:
    before = _parse_cached.cache_info().currsize
    parse_query(f"SELECT * FROM c WHERE c.n = '{'x' * KEPT_QUERY_CHARACTERS_MAX}'")
    assert _parse_cached.cache_info().currsize == before


def test_a_pattern_with_long_runs_of_any_character_is_cheap() -> None:
    query = compiled("SELECT VALUE @long LIKE @pattern", long="a" * 200_000, pattern="%" + "_" * 50_000 + "b%")
    assert list(query.rows({})) == [False]
    assert query.meter.steps < 200_000


def test_a_pattern_with_too_many_parts_is_refused() -> None:
    query = compiled("SELECT VALUE 'a' LIKE @pattern", pattern="%" + "a_" * 50_000 + "b%")
    with pytest.raises(MalformedRequest):
        list(query.rows({}))

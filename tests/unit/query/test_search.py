from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql import Kind, compile_query, parse_query
from asterism.languages.cosmos_sql.functions.distances import DISTANCE_FUNCTIONS, nearness_to
from asterism.languages.cosmos_sql.functions.full_text import TermCounts, relevance
from asterism.languages.cosmos_sql.functions.words import occurrences, words_of
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.plans.plan import make_plan
from asterism.languages.cosmos_sql.plans.ranges import range_of_key
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.values.undefined import UNDEFINED

DEFINITION = PartitionKeyDefinition(paths=("/pk",))
ITEMS: list[dict[str, object]] = [
    {"id": "1", "_rid": "a", "text": "north sea", "v": [5, 0]},
    {"id": "2", "_rid": "b", "text": "sea of ice and more ice", "v": [1, 1]},
    {"id": "3", "_rid": "c", "text": "mountains", "v": [0, 1]},
]
NUMBERS = st.floats(-1e6, 1e6)
WORDS = st.lists(st.sampled_from(["a", "b"]), max_size=12)


def _results(text: str, *, distance: str | None = None) -> list[Any]:
    compiled = compile_query(parse_query(text), {}, distance_function_of=lambda _path: distance)
    collector = compiled.new_collector()
    for item in ITEMS:
        collector.feed(item)
    return list(collector.results())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("Ice-cold, 2 seas!", ["ice", "cold", "2", "sea"]),
        ("cities boxes glasses houses", ["city", "box", "glass", "house"]),
        ("gas glass virus basis ties", ["gas", "glass", "virus", "basis", "tie"]),
        ("snake_case Größe", ["snake", "case", "größe"]),
        ("1,977 of 3.5 in 1.2.3, 4,x 5.", ["1,977", "of", "3.5", "in", "1.2.3", "4", "x", "5"]),
    ],
)
def test_a_text_is_split_into_words(text: str, words: list[str]) -> None:
    assert words_of(text).stems == words


@given(st.text())
def test_every_text_has_words_that_are_the_same_in_upper_case(text: str) -> None:
    assert words_of(text.lower()) == words_of(text)


def test_a_text_too_long_to_be_cached_has_words_as_well() -> None:
    assert words_of("the sea " * 20_000) == (["the", "sea"] * 20_000, 20_000)


@given(WORDS, WORDS.filter(bool))
def test_a_phrase_is_counted_wherever_it_begins(words: list[str], phrase: list[str]) -> None:
    places = range(len(words))
    assert occurrences(words, phrase) == sum(words[place : place + len(phrase)] == phrase for place in places)


def test_relevance_is_that_of_bm25() -> None:
    rarity = math.log(1 + (10 - 3 + 0.5) / (3 + 0.5))
    expected = rarity * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 8 / 4))
    assert relevance(TermCounts(8, (2, 0)), 10, 40, [3, 1]) == pytest.approx(expected)


@given(st.integers(0, 50), st.integers(0, 9), st.floats(-9, 1e9), st.floats(-9, 1e9), st.floats(-9, 1e9))
def test_relevance_is_never_below_zero(words: int, count: int, documents: float, total: float, hits: float) -> None:
    assert relevance(TermCounts(words, (count,)), documents, total, [hits]) >= 0


@given(st.sampled_from(sorted(DISTANCE_FUNCTIONS)), st.data())
def test_a_distance_is_the_same_from_both_sides(name: str, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5))
    left, right = (data.draw(st.lists(NUMBERS, min_size=size, max_size=size)) for _ in range(2))
    there, back = nearness_to(name, left)(right), nearness_to(name, right)(left)
    assert (there is UNDEFINED) is (back is UNDEFINED)
    assert there is UNDEFINED or there == pytest.approx(back)


@pytest.mark.parametrize("value", [None, "x", [], [1], [1, None], [True, 1], [10**400, 1], {"0": 1}])
def test_a_value_that_is_not_a_vector_of_that_length_has_no_distance(value: object) -> None:
    found = [nearness_to(name, [1, 2])(value) for name in DISTANCE_FUNCTIONS]
    assert found + [nearness_to(name, value)([1, 2]) for name in DISTANCE_FUNCTIONS] == [UNDEFINED] * 6


@pytest.mark.parametrize(
    ("distance", "ids"),
    [
        ("cosine", ["3", "2", "1"]),
        ("dotproduct", ["2", "3", "1"]),
        ("euclidean", ["3", "2", "1"]),
        (None, ["3", "2", "1"]),
    ],
)
def test_the_policy_of_the_container_decides_how_vectors_are_compared(distance: str | None, ids: list[str]) -> None:
    assert _results("SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, [0, 1])", distance=distance) == ids
    assert _results("SELECT VALUE c.id FROM c ORDER BY _VectorScore(c.v, [0, 1])", distance=distance) == ids
    assert _results("SELECT VALUE c.id FROM c ORDER BY RANK RRF(VectorDistance(c.v, [0, 1]))", distance=distance) == ids


def test_a_call_names_another_distance_than_its_container() -> None:
    text = "SELECT VALUE VectorDistance(c.v, [0, 0], false, {'distanceFunction': 'euclidean'}) FROM c WHERE c.id = '1'"
    assert _results(text, distance="cosine") == [5]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * FROM c ORDER BY VectorDistance(c.v, [1]) ASC", "Specifying a sorting order"),
        ("SELECT * FROM c ORDER BY VectorDistance(c.v, [1]), c.id", "must be the only item"),
        ("SELECT VectorDistance(c.v, [1], true, {'distanceFunction': 'miles'}) FROM c", "must be one of cosine"),
        ("SELECT * FROM c ORDER BY RANK FullTextScore(c.text, 'x') DESC", "Specifying a sort order"),
        ("SELECT * FROM c ORDER BY RANK LOWER(c.text)", "must be followed by a VectorDistance and/or"),
        ("SELECT COUNT(1) FROM c ORDER BY RANK FullTextScore(c.text, 'x')", "not supported with GROUP BY"),
    ],
)
def test_a_search_with_a_wrong_order_is_refused(text: str, reason: str) -> None:
    with pytest.raises((MalformedQuery, MalformedRequest)) as refusal:
        compile_query(parse_query(text), {})
    assert reason in str(refusal.value)


def test_a_search_is_ranked_when_all_items_are_known() -> None:
    compiled = compile_query(parse_query("SELECT * FROM c ORDER BY RANK FullTextScore(c.text, 'x')"), {})
    assert (compiled.kind, compiled.index_use.order_paths) == (Kind.RANKED, None)


def test_items_that_the_filter_leaves_out_count_in_the_rarity_of_a_word() -> None:
    """Of all items, two have the sea and one has mountains; of those that match, one each."""
    rank = "ORDER BY RANK FullTextScore(c.text, 'sea', 'mountain')"
    assert _results(f"SELECT VALUE c.id FROM c WHERE c.id != '1' {rank}") == ["3", "2"]


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
@pytest.mark.parametrize("weights", ["", ", [2, 1]", ", [1, -1]"])
def test_the_queries_of_a_plan_run_and_rank_as_one_partition_does(distance: str, weights: str) -> None:
    rank = f"RRF(FullTextScore(c.text, 'sea', 'ice'), VectorDistance(c.v, [0, 1]){weights})"
    text = f"SELECT TOP 3 c.id FROM c ORDER BY RANK {rank}"
    plan = make_plan(
        parse_query(text),
        text=text,
        parameters={},
        partition_key_paths=DEFINITION.segments,
        range_of_key=range_of_key(DEFINITION),
        distance_function_of=lambda _path: distance,
    )
    assert plan.search is not None
    statistics = _results(plan.search.statistics_query)[0]
    assert statistics == {"documentCount": 3, "fullTextStatistics": [{"totalWordCount": 6, "hitCounts": [2, 1]}]}
    numbers = {
        "totaldocumentcount": "3",
        "totalwordcount-0": "6",
        "hitcountsarray-0": json.dumps(statistics["fullTextStatistics"][0]["hitCounts"]),
    }
    fused = dict.fromkeys(["1", "2", "3"], 0.0)
    for index, component in enumerate(plan.search.components):
        query = component.rewritten_query.replace("{documentdb-formattableorderbyquery-filter}", "true")
        for name, number in numbers.items():
            query = query.replace(f"{{documentdb-formattablehybridsearchquery-{name}}}", number)
        rows = _results(query, distance=distance)
        assert [row["payload"]["componentScores"][index] for row in rows] == [
            row["orderByItems"][0]["item"] for row in rows
        ]
        for place, row in enumerate(rows, 1):
            fused[row["payload"]["payload"]["id"]] += (plan.search.weights or (1.0, 1.0))[index] / (60 + place)
    expected = sorted(fused, key=lambda item_id: -fused[item_id])
    assert [row["id"] for row in _results(text, distance=distance)] == expected


def test_stop_words_do_not_count_in_the_length_of_a_text() -> None:
    """The first text has more words, most of them stop words; the other has fewer, and all of them count."""
    wordy = {
        "id": "wordy",
        "text": "It was in the sea that many of them were, as is well known, at one time or another",
    }
    dense = {"id": "dense", "text": "Sea salt crystals, harvested, sold by barrel"}
    compiled = compile_query(parse_query("SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'sea')"), {})
    collector = compiled.new_collector()
    for item in (dense, wordy):
        collector.feed(item)
    assert list(collector.results()) == ["wordy", "dense"]


def test_a_stop_word_is_found_all_the_same() -> None:
    assert _results("SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'of')") == ["2"]
    assert _results("SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'sea of ice')") == ["2"]

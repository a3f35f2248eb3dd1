"""Steps that map, reduce and order values, tried on values alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.gremlin.engine.run import Frame, Run, RunLimits
from asterism.languages.gremlin.engine.substreams import in_larger_batches
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.failure import CompileFailure, ExecutionFailure, FailStep, MemoryExceeded
from asterism.languages.gremlin.tree import Instruction, Strategy, Token, Traversal
from asterism.languages.gremlin.values.comparison import order_key
from asterism.languages.gremlin.values.numbers import Long
from asterism.languages.gremlin.values.results import Path, Tree
from asterism.languages.gremlin.values.structures import MapEntry
from tests.unit.gremlin.memory_graph import MemoryGraph, results_of

LOCAL = Token("Scope", "local")
DESC = Token("Order", "desc")
KEYS, VALUES = Token("Column", "keys"), Token("Column", "values")


def call(name: str, *arguments: Any) -> Instruction:
    return Instruction(name, arguments)


def anonymous(*steps: Instruction) -> Traversal:
    return Traversal(steps)


def by(*arguments: Any) -> Instruction:
    return call("by", *arguments)


async def run(*steps: Instruction, source: tuple[Instruction, ...] = ()) -> list[Any]:
    return await results_of(MemoryGraph(), Traversal(steps, source))


def injected(values: list[Any]) -> Instruction:
    return Instruction("inject", tuple(values))


async def test_counting_counts_every_traverser_and_answers_zero_for_none() -> None:
    assert await run(injected([1, 1, 2]), call("barrier"), call("count")) == [3]
    assert await run(injected([]), call("count")) == [0]
    assert type((await run(injected([]), call("count")))[0]) is Long
    assert await run(injected([[1, 2], {"a": 1}, "text"]), call("count", LOCAL)) == [2, 1, 1]


async def test_a_child_that_counts_does_so_for_each_parent() -> None:
    lengths = anonymous(call("unfold"), call("count"))
    found = await run(injected([[1, 2], [], [3]]), call("project", "n"), by(lengths))
    assert found == [{"n": 2}, {"n": 0}, {"n": 1}]


async def test_folding_with_an_operator_begins_with_the_seed() -> None:
    assert await run(injected([1, 2, 3]), call("fold", 10, Token("Operator", "sum"))) == [16]
    assert await run(injected([]), call("fold", 10, Token("Operator", "sum"))) == [10]
    with pytest.raises(CompileFailure):
        await run(injected([]), call("fold", 10))


async def test_unfolding_gives_members_and_entries_and_leaves_other_values() -> None:
    assert await run(injected([[1, 2], {"a": 3}, 4]), call("unfold")) == [1, 2, MapEntry("a", 3), 4]


async def test_indexing_gives_pairs_or_a_map() -> None:
    assert await run(injected([["a", "b"]]), call("index")) == [[["a", 0], ["b", 1]]]
    indexer = call("with", "~tinkerpop.index.indexer", 1)
    assert await run(injected([["a", "b"]]), call("index"), indexer) == [{0: "a", 1: "b"}]


async def test_ordering_by_several_modulators_lets_the_first_decide() -> None:
    rows = [{"a": 1, "b": 1}, {"a": 2, "b": 5}, {"a": 1, "b": 3}, {"b": 9}]
    found = await run(injected(rows), call("order"), by("a", DESC), by("b", DESC))
    assert found == [rows[1], rows[2], rows[0]]


async def test_ordering_puts_types_one_after_the_other() -> None:
    assert await run(injected(["b", 2, None, True, 1.5, "a"]), call("order")) == [None, True, 1.5, 2, "a", "b"]


async def test_ordering_within_values_sorts_lists_and_maps() -> None:
    assert await run(injected([[3, 1, 2]]), call("order", LOCAL), by(DESC)) == [[3, 2, 1]]
    found = await run(injected([{"x": 2, "y": 1}]), call("order", LOCAL), by(VALUES))
    assert list(found[0].items()) == [("y", 1), ("x", 2)]
    assert await run(injected([5]), call("order", LOCAL)) == [5]


async def test_shuffling_keeps_every_traverser() -> None:
    found = await run(injected(list(range(20))), call("order"), by(Token("Order", "shuffle")))
    assert sorted(found) == list(range(20))


MIXED = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=True), st.text(max_size=3))


@given(st.lists(MIXED, max_size=20))
async def test_ordering_is_a_sorted_permutation(values: list[Any]) -> None:
    found = await run(injected(values), call("order"))
    assert [order_key(value) for value in found] == sorted(order_key(value) for value in values)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=30))
async def test_grouping_loses_nothing_and_invents_nothing(pairs: list[tuple[str, int]]) -> None:
    rows = [{"key": key, "value": value} for key, value in pairs]
    (groups,) = await run(injected(rows), call("group"), by("key"), by("value"))
    assert {key: sorted(values) for key, values in groups.items()} == {
        key: sorted(value for other, value in pairs if other == key) for key, _ in pairs
    }
    (counts,) = await run(injected(rows), call("groupCount"), by("key"))
    assert counts == {key: len(values) for key, values in groups.items()}


async def test_a_group_is_reduced_by_a_child_that_sees_all_of_it() -> None:
    rows = [{"k": "a", "v": 3}, {"k": "a", "v": 1}, {"k": "b", "v": 2}]
    values = anonymous(call("select", "v"), call("order"), call("fold"))
    assert await run(injected(rows), call("group"), by("k"), by(values)) == [{"a": [1, 3], "b": [2]}]
    counts = anonymous(call("count"))
    assert await run(injected(rows), call("group"), by("k"), by(counts)) == [{"a": 2, "b": 1}]
    absent = anonymous(call("select", "no"), call("order"))
    assert await run(injected(rows), call("group"), by("k"), by(absent)) == [{}]
    last = anonymous(call("select", "v"))
    assert await run(injected(rows), call("group"), by("k"), by(last)) == [{"a": 1, "b": 2}]


async def test_lists_and_maps_can_be_keys_of_groups() -> None:
    assert await run(injected([[1], [1], [2]]), call("groupCount")) == [{_frozen([1]): 2, _frozen([2]): 1}]


def _frozen(values: list[Any]) -> Any:
    from asterism.languages.gremlin.values.structures import freeze

    return freeze(values)


async def test_a_group_of_too_many_keys_is_refused_with_a_sentence() -> None:
    steps = (injected(list(range(200))), call("groupCount"))
    with pytest.raises(MemoryExceeded, match="keeps more than 100 values"):
        await results_of(MemoryGraph(), Traversal(steps), limits=RunLimits(values=100))


async def test_groups_take_one_or_two_modulators() -> None:
    with pytest.raises(CompileFailure, match="GroupCount step can only have one by modulator"):
        await run(injected([]), call("groupCount"), by("a"), by("b"))
    with pytest.raises(CompileFailure, match="already been set"):
        await run(injected([]), call("group"), by("a"), by("b"), by("c"))


async def test_projecting_leaves_out_keys_without_a_value() -> None:
    assert await run(injected([{"a": 1}]), call("project", "x", "y"), by("a"), by("b")) == [{"x": 1}]
    with pytest.raises(CompileFailure, match="unique"):
        await run(injected([]), call("project", "x", "x"))


async def test_selecting_looks_in_the_map_then_in_side_effects_then_on_the_path() -> None:
    source = (call("withSideEffect", "x", "effect"),)
    labels = (injected([1]), call("as", "x", "y"))
    assert await run(*labels, call("constant", {"x": "map"}), call("select", "x"), source=source) == ["map"]
    assert await run(*labels, call("constant", 2), call("select", "x"), source=source) == ["effect"]
    assert await run(*labels, call("constant", 2), call("select", "y"), source=source) == [1]
    assert await run(*labels, call("select", "z")) == []


async def test_selecting_one_label_of_several_places_follows_the_pop() -> None:
    steps = (injected([1]), call("as", "a"), call("constant", 2), call("as", "a"))
    for pop, expected in (("first", 1), ("last", 2), ("all", [1, 2]), ("mixed", [1, 2])):
        assert await run(*steps, call("select", Token("Pop", pop), "a")) == [expected]
    single = (injected([1]), call("as", "a"))
    assert await run(*single, call("select", Token("Pop", "all"), "a")) == [[1]]
    assert await run(*single, call("select", Token("Pop", "mixed"), "a")) == [1]


async def test_selecting_several_labels_gives_a_map_or_nothing() -> None:
    steps = (injected([1]), call("as", "a"), call("constant", 2), call("as", "b"))
    assert await run(*steps, call("select", "a", "b")) == [{"a": 1, "b": 2}]
    assert await run(*steps, call("select", "a", "c")) == []
    assert await run(*steps, call("select", "a"), by(anonymous(call("fold")))) == [[1]]


async def test_selecting_by_a_traversal_takes_its_result_as_the_key() -> None:
    assert await run(injected([{"a": 7}]), call("select", anonymous(call("constant", "a")))) == [7]


async def test_columns_of_maps_keep_their_order() -> None:
    (keys,) = await run(injected([{"b": 1, "a": 2}]), call("select", KEYS))
    assert list(keys) == ["b", "a"]
    assert await run(injected([{"b": 1, "a": 2}]), call("select", VALUES)) == [[1, 2]]
    assert await run(injected([{"b": 1}]), call("unfold"), call("select", KEYS)) == ["b"]


async def test_a_path_has_all_places_with_their_labels() -> None:
    steps = (injected([1]), call("as", "a"), call("constant", 2), call("as", "b"), call("constant", 3))
    (path,) = await run(*steps, call("path"))
    assert path == Path([{"a"}, {"b"}, set()], [1, 2, 3])
    (part,) = await run(*steps, call("path"), call("from", "b"))
    assert part.objects == [2, 3]
    (part,) = await run(*steps, call("path"), call("to", "a"))
    assert part.objects == [1]
    with pytest.raises(ExecutionFailure):
        await run(*steps, call("path"), call("from", "nowhere"))


async def test_modulators_of_a_path_are_taken_in_turn() -> None:
    steps = (injected([{"a": 1, "b": 2}]), call("constant", {"a": 3, "b": 4}), call("constant", {"a": 5, "b": 6}))
    (path,) = await run(*steps, call("path"), by("a"), by("b"))
    assert path.objects == [1, 4, 5]
    assert await run(*steps, call("path"), by("c")) == []


async def test_a_tree_joins_paths_with_the_same_beginning() -> None:
    steps = (injected([1, 1, 2]), call("constant", "x"))
    assert await run(*steps, call("tree")) == [Tree({1: Tree({"x": Tree()}), 2: Tree({"x": Tree()})})]
    assert await run(*steps, call("tree", "t"), call("cap", "t")) == await run(*steps, call("tree"))


async def test_aggregated_values_are_complete_for_the_first_traverser() -> None:
    steps = (injected([1, 2]), call("aggregate", "x"), call("select", "x"), call("count", LOCAL))
    assert await run(*steps) == [2, 2]


async def test_aggregation_into_a_declared_side_effect_follows_its_operator() -> None:
    total = (call("withSideEffect", "x", 10, Token("Operator", "sum")),)
    assert await run(injected([1, 2]), call("aggregate", "x"), call("cap", "x"), source=total) == [13]
    unique = (call("withSideEffect", "x", {9}),)
    assert await run(injected([1, 1]), call("aggregate", "x"), call("cap", "x"), source=unique) == [{1, 9}]
    assigned = (call("withSideEffect", "x", [9], Token("Operator", "assign")),)
    assert await run(injected([1, 2]), call("aggregate", "x"), call("cap", "x"), source=assigned) == [[1, 2]]


async def test_a_declared_side_effect_is_new_for_every_run() -> None:
    source = (call("withSideEffect", "x", [0]),)
    for _round in range(2):
        assert await run(injected([1]), call("aggregate", "x"), call("cap", "x"), source=source) == [[0, 1]]


async def test_capping_gives_a_side_effect_that_nothing_reached_as_it_began() -> None:
    assert await run(injected([]), call("groupCount", "x"), call("cap", "x")) == [{}]
    assert await run(injected([]), call("aggregate", "x"), call("store", "y"), call("cap", "x", "y")) == [
        {"x": [], "y": []}
    ]
    with pytest.raises(ExecutionFailure, match="does not exist"):
        await run(injected([]), call("cap", "z"))


async def test_groups_as_side_effects_go_on_where_they_stopped() -> None:
    steps = (injected([1, 2]), call("groupCount", "x"), call("constant", 2), call("groupCount", "x"), call("cap", "x"))
    assert await run(*steps) == [{1: 1, 2: 3}]


async def test_failing_needs_a_traverser() -> None:
    assert await run(injected([]), call("fail", "no")) == []
    with pytest.raises(FailStep, match="no"):
        await run(injected([1]), call("fail", "no"))


async def test_sacks_are_carried_and_merged_by_their_operator() -> None:
    source = (call("withSack", 1, Token("Operator", "sum")),)
    assert await run(injected([5]), call("sack", Token("Operator", "sum")), call("sack"), source=source) == [6]
    merged = await run(injected([7, 7]), call("barrier"), call("sack"), source=(*source, call("withBulk", False)))
    assert merged == [2]
    with pytest.raises(CompileFailure, match="Sack step can only have one by modulator"):
        await run(injected([]), call("sack", Token("Operator", "sum")), by("a"), by("b"))


async def test_normalized_sacks_add_up_to_one() -> None:
    steps = (injected([1, 2, 3, 4]), call("barrier", Token("Barrier", "normSack")), call("sack"))
    assert await run(*steps, source=(call("withSack", 2.0),)) == [0.25] * 4


async def test_injected_values_stand_beside_those_that_come() -> None:
    assert sorted(await run(injected([1]), call("inject", 2, 3))) == [1, 2, 3]


async def test_productive_modulators_yield_null() -> None:
    source = (call("withStrategies", Strategy("ProductiveByStrategy")),)
    assert await run(injected([{"a": 1}, {}]), call("order"), by("a"), source=source) == [{}, {"a": 1}]


async def test_an_assigned_side_effect_has_the_values_of_the_last_parent() -> None:
    source = (call("withSideEffect", "x", [9], Token("Operator", "assign")),)
    collected = call("local", anonymous(call("unfold"), call("aggregate", "x")))
    assert await run(injected([[1, 2], [3]]), collected, call("cap", "x"), source=source) == [[3]]


async def test_equal_traversers_of_a_group_count_for_each_of_them() -> None:
    rows = [{"k": "a", "v": 3}, {"k": "a", "v": 3}, {"k": "a", "v": 4}]
    totals = anonymous(call("select", "v"), call("sum"))
    assert await run(injected(rows), call("group"), by("k"), by(totals)) == [{"a": 10}]


async def test_loops_take_small_batches_together() -> None:
    async def batches() -> AsyncIterator[Batch]:
        for size in (1, 2, 3000, 4):
            yield [Traverser(size)] * size

    progress = Run(MemoryGraph(), monotonic=lambda: 0.0)
    assert [len(batch) async for batch in in_larger_batches(batches(), Frame(progress))] == [3003, 4]


async def test_a_subgraph_is_refused_with_a_way_to_do_without() -> None:
    with pytest.raises(CompileFailure, match="aggregate"):
        await run(injected([]), call("subgraph", "x"))

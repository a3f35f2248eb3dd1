"""Filters: the has-family, conditions by child traversals, ranges, chances and paths."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.languages.gremlin.failure import CompileFailure, ExecutionFailure
from asterism.languages.gremlin.tree import T_ID, T_LABEL, Predicate, Token
from tests.unit.gremlin.chains import LOCAL, Chain, chain, names, run_chain
from tests.unit.gremlin.memory_graph import modern

_OVER_30 = Predicate("gt", 30)
_PEOPLE = ["josh", "marko", "peter", "vadas"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (chain.has("age", _OVER_30), ["josh", "peter"]),
        (chain.has("person", "name", "marko"), ["marko"]),
        (chain.has("software", "name", "marko"), []),
        (chain.has("lang"), ["lop", "ripple"]),
        (chain.has(None), []),
        (chain.has(None, "x"), []),
        (chain.has("name", None), []),
        (chain.has("age", chain.is_(_OVER_30)), ["josh", "peter"]),
        (chain.has(T_LABEL, chain.is_("software")), ["lop", "ripple"]),
        (chain.has(T_ID, 1), ["marko"]),
        (chain.hasNot("age"), ["lop", "ripple"]),
        (chain.hasLabel("person"), _PEOPLE),
        (chain.hasLabel("person").hasLabel("software"), []),
        (chain.hasId("1", 2, None), ["marko", "vadas"]),
        (chain.hasId(["1", "2"]), ["marko", "vadas"]),
        (chain.hasId(Predicate("without", [])), [*_PEOPLE[:1], "lop", "marko", "peter", "ripple", "vadas"]),
        (chain.not_(chain.has("age")), ["lop", "ripple"]),
        (chain.and_(chain.has("age", _OVER_30), chain.out("created")), ["josh", "peter"]),
        (chain.or_(chain.has("age", _OVER_30), chain.has("lang")), ["josh", "lop", "peter", "ripple"]),
        (chain.filter(chain.out("knows")), ["marko"]),
        (chain.where(chain.in_("created").count().is_(Predicate("gte", 2))), ["lop"]),
        (chain.has("age", _OVER_30).or_().has("lang").and_().has("name", "lop"), ["josh", "lop", "peter"]),
        (chain.dedup().by(T_LABEL).count().is_(2).discard(), []),
    ],
)
async def test_a_condition_passes_the_vertices_that_fit(condition: Chain, expected: list[str]) -> None:
    assert await names(modern(), Chain((*chain.V().steps, *condition.steps))) == sorted(expected)


async def test_texts_are_tokens_in_the_dialect_of_the_service() -> None:
    assert await names(modern(), chain.V().has("id", "1"), dialect="cosmos") == ["marko"]
    assert await names(modern(), chain.V().has("id", "1")) == []


async def test_has_refuses_values_that_are_no_elements() -> None:
    with pytest.raises(ExecutionFailure, match="must be of type Property or Element"):
        await run_chain(modern(), chain.inject(1).has("x", 1))


@pytest.mark.parametrize(
    ("step", "passes"),
    [
        (chain.all(_OVER_30), [[31, 32]]),
        (chain.any(_OVER_30), [[31, 32], [1, 40]]),
        (chain.none(_OVER_30), [[], [2]]),
        (chain.none(), []),
    ],
)
async def test_lists_are_tested_by_their_members(step: Chain, passes: list[list[int]]) -> None:
    lists = chain.inject([31, 32], [1, 40], [2], 7, None)
    found = await run_chain(modern(), Chain((*lists.steps, *step.steps)))
    # An empty list has no member at all: all of them fit, and none of them.
    expected = [member for member in passes if member]
    assert found == expected


async def test_where_compares_values_of_labels() -> None:
    both_ways = chain.V("1").as_("a").out("created").in_("created")
    assert await names(modern(), both_ways.where(Predicate("neq", "a"))) == ["josh", "peter"]
    assert await names(modern(), both_ways.as_("b").where("b", Predicate("eq", "a"))) == ["marko"]
    older = both_ways.as_("b").where("b", Predicate("gt", "a")).by("age")
    assert await names(modern(), older) == ["josh", "peter"]


async def test_where_starts_and_ends_at_labels() -> None:
    pairs = chain.V().as_("a").out().as_("b")
    known = pairs.where(chain.as_("a").out("knows").as_("b"))
    assert await names(modern(), known) == ["josh", "vadas"]
    either = pairs.where(chain.or_(chain.as_("b").has("lang"), chain.as_("a").has("name", "nobody")))
    assert await names(modern(), either) == ["lop", "lop", "lop", "ripple"]


async def test_where_takes_values_of_maps_first() -> None:
    found = await run_chain(modern(), chain.inject({"a": 1, "b": 1}, {"a": 1, "b": 2}).where("a", Predicate("eq", "b")))
    assert found == [{"a": 1, "b": 1}]


async def test_where_refuses_a_name_that_is_not_in_scope() -> None:
    with pytest.raises(ExecutionFailure, match="Neither the map, sideEffects, nor path has a x-key"):
        await run_chain(modern(), chain.V().where(Predicate("eq", "x")))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (chain.range(1, 3), [2, 3]),
        (chain.limit(2), [1, 2]),
        (chain.limit(0), []),
        (chain.limit(-1), [1, 2, 3, 4]),
        (chain.skip(3), [4]),
        (chain.range(2, -1), [3, 4]),
        (chain.tail(), [4]),
        (chain.tail(2), [3, 4]),
        (chain.tail(9), [1, 2, 3, 4]),
        (chain.fold().range(LOCAL, 1, 2), [[2]]),
        (chain.fold().limit(LOCAL, 1), [[1]]),
        (chain.fold().skip(LOCAL, 3), [[4]]),
        (chain.fold().tail(LOCAL, 2), [[3, 4]]),
        (chain.fold().tail(LOCAL, 9), [[1, 2, 3, 4]]),
        (chain.limit(1).limit(LOCAL, 0), [1]),
    ],
)
async def test_a_range_passes_its_part(step: Chain, expected: list[Any]) -> None:
    assert await run_chain(modern(), Chain((*chain.inject(1, 2, 3, 4).steps, *step.steps))) == expected


async def test_a_range_on_a_map_keeps_its_order() -> None:
    found = await run_chain(modern(), chain.inject({"a": 1, "b": 2, "c": 3}).range(LOCAL, 1, 3).tail(LOCAL, 1))
    assert found == [{"c": 3}]


async def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ExecutionFailure, match=r"Not a legal range: \[2, 1\]"):
        await run_chain(modern(), chain.V().range(2, 1))


async def test_ranges_divide_bulks() -> None:
    # All vertices, merged: both ends of six edges.
    many = chain.V().repeat(chain.both()).times(3)
    total = len(await run_chain(modern(), many))
    assert len(await run_chain(modern(), many.limit(5))) == 5
    assert len(await run_chain(modern(), many.range(3, 10))) == 7
    assert len(await run_chain(modern(), many.tail(4))) == 4
    assert len(await run_chain(modern(), many.skip(4))) == total - 4
    assert len(await run_chain(modern(), many.sample(7))) == 7
    assert len(await run_chain(modern(), many.dedup())) == 6


@pytest.mark.parametrize("step", [chain.limit(1), chain.tail(1), chain.sample(1), chain.range(0, 1)])
async def test_a_range_in_a_child_is_of_each_parent(step: Chain) -> None:
    child = Chain((*chain.out("created").steps, *step.steps))
    assert len(await run_chain(modern(), chain.V().local(child))) == 3


async def test_dedup_goes_by_type_and_modulator() -> None:
    assert await run_chain(modern(), chain.inject(1, 1.0, 1, "1", True).dedup()) == [1, 1.0, "1", True]
    assert len(await run_chain(modern(), chain.V().both().dedup().by(T_LABEL))) == 2
    # Software has no age, and is left out.
    assert await names(modern(), chain.V().both().dedup().by("age")) == _PEOPLE
    assert await run_chain(modern(), chain.inject(["a", "b", "a"]).dedup(LOCAL)) == [{"a", "b"}]


async def test_dedup_by_labels_looks_at_all_of_them() -> None:
    pairs = chain.V().as_("a").both().as_("b")
    assert len(await run_chain(modern(), pairs.dedup("a", "b").by(T_LABEL))) == 3


@pytest.mark.parametrize(
    "step", [chain.dedup().by("name").by("age"), chain.sample(1).by("age").by("name"), chain.all(3), chain.limit("x")]
)
async def test_modulators_and_arguments_that_do_not_fit_are_refused(step: Chain) -> None:
    with pytest.raises(CompileFailure):
        await run_chain(modern(), Chain((*chain.V().steps, *step.steps)))


async def test_sample_goes_by_weights() -> None:
    found = await run_chain(modern(), chain.V().sample(2).by("age"))
    # Software has no age: it is never drawn.
    assert len(found) == 2
    assert {vertex.label for vertex in found} == {"person"}
    assert await run_chain(modern(), chain.inject([1, 2, 3]).sample(LOCAL, 5)) == [[1, 2, 3]]
    (members,) = await run_chain(modern(), chain.inject([1, 2, 3]).sample(LOCAL, 2))
    assert len(set(members)) == 2


async def test_a_seed_makes_chances_repeat() -> None:
    tossed = chain.inject(*range(40)).coin(0.5)
    first = await run_chain(modern(), tossed, seed=7)
    assert first == await run_chain(modern(), tossed, seed=7)
    assert 0 < len(first) < 40
    assert await run_chain(modern(), chain.inject(1, 2).coin(0.0)) == []
    assert await run_chain(modern(), chain.inject(1, 2).coin(1.0)) == [1, 2]


async def test_paths_are_simple_or_cyclic() -> None:
    there_and_back = chain.V("1").out("created").in_("created")
    assert await names(modern(), there_and_back.simplePath()) == ["josh", "peter"]
    assert await names(modern(), there_and_back.cyclicPath()) == ["marko"]
    labelled = chain.V("1").as_("a").out("created").as_("b").in_("created").as_("c")
    assert await names(modern(), labelled.cyclicPath().from_("a").to("b")) == []
    # People and software by turns: josh and marko have the same label.
    assert await names(modern(), there_and_back.simplePath().by(T_LABEL)) == []


async def test_a_label_that_is_not_on_the_path_is_refused() -> None:
    with pytest.raises(ExecutionFailure, match="Could not locate path from-label: x"):
        await run_chain(modern(), chain.V().simplePath().from_("x"))


async def test_time_limit_passes_what_comes_in_time() -> None:
    assert len(await run_chain(modern(), chain.V().timeLimit(100_000))) == 6
    assert await run_chain(modern(), chain.V().timeLimit(0)) == []


async def test_tokens_pick_properties() -> None:
    column = Token("T", "key")
    with pytest.raises(ExecutionFailure):
        await run_chain(modern(), chain.inject("x").has(column, "y"))


async def test_a_modulator_of_a_path_filter_sees_properties_of_all_places() -> None:
    # Both ways from marko: back to himself over each of three neighbors, and from software to others.
    assert await names(modern(), chain.V("1").both().both().cyclicPath().by("age")) == ["marko", "marko"]

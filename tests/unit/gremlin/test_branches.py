"""Branches: union, choose, branch, coalesce, optional, local and the maps by a child."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.tree import T_LABEL, Predicate, Token
from tests.unit.gremlin.chains import Chain, chain, names, run_chain
from tests.unit.gremlin.memory_graph import modern

_NONE, _ANY, _UNPRODUCTIVE = (Token("Pick", name) for name in ("none", "any", "unproductive"))


def _texts(values: list[Any]) -> list[str]:
    return sorted(map(str, values))


async def test_union_gives_every_traverser_to_every_child() -> None:
    found = await run_chain(modern(), chain.V("1").union(chain.constant(1), chain.constant(2), chain.out()))
    assert _texts(found) == ["1", "2", "v[2]", "v[3]", "v[4]"]


async def test_children_of_union_see_all_traversers_and_those_of_local_one() -> None:
    counts = chain.union(chain.out().count(), chain.in_().count())
    assert await run_chain(modern(), Chain((*chain.V("1", "2").steps, *counts.steps))) == [3, 1]
    assert sorted(await run_chain(modern(), chain.V("1", "2").local(counts))) == [0, 0, 1, 3]
    assert await run_chain(modern(), chain.V("none").union(chain.count())) == []


async def test_union_starts_a_traversal() -> None:
    assert await names(modern(), chain.union(chain.V("1"), chain.union(chain.V("2").out(), chain.V("4")))) == [
        "josh",
        "marko",
    ]
    assert await run_chain(modern(), chain.union(chain.inject(1), chain.inject(2))) == [1, 2]
    assert await run_chain(modern(), chain.union()) == []


async def test_a_branch_without_traversers_does_not_answer() -> None:
    folded = chain.choose(chain.is_(1), chain.constant(10).fold(), chain.fold())
    assert await run_chain(modern(), Chain((*chain.inject(1).steps, *folded.steps))) == [[10]]
    # The same for each origin of a child.
    assert await run_chain(modern(), chain.inject(1, 2, 1).local(folded)) == [[10], [2], [10]]


async def test_choose_by_a_condition() -> None:
    by_age = chain.V().choose(chain.has("age"), chain.values("age"), chain.constant("none"))
    assert _texts(await run_chain(modern(), by_age)) == ["27", "29", "32", "35", "none", "none"]
    assert _texts(await run_chain(modern(), chain.V().choose(chain.has("age"), chain.constant(0)))) == [
        *["0"] * 4,
        "v[3]",
        "v[5]",
    ]
    ages = chain.V().values("age").choose(Predicate("eq", 29), chain.constant("yes"), chain.constant("no"))
    assert _texts(await run_chain(modern(), ages)) == ["no", "no", "no", "yes"]


async def test_choose_by_options_takes_the_first_that_fits() -> None:
    by_age = (
        chain.V()
        .choose(chain.values("age"))
        .option(Predicate("between", [26, 30]), chain.constant("x"))
        .option(Predicate("between", [20, 34]), chain.constant("y"))
        .option(_NONE, chain.constant("z"))
    )
    assert _texts(await run_chain(modern(), by_age)) == ["v[3]", "v[5]", "x", "x", "y", "z"]
    labelled = by_age.option(_UNPRODUCTIVE, chain.label())
    assert _texts(await run_chain(modern(), labelled)) == ["software", "software", "x", "x", "y", "z"]


async def test_choose_by_a_token_passes_what_no_option_fits() -> None:
    found = await run_chain(modern(), chain.V().choose(T_LABEL).option("person", chain.constant("p")))
    assert _texts(found) == ["p", "p", "p", "p", "v[3]", "v[5]"]


@pytest.mark.parametrize(
    ("pick", "sentence"), [(_ANY, "can not have an any-option"), (chain.is_(1), "not allowed as a Pick token")]
)
async def test_choose_refuses_options_that_pick_more(pick: Any, sentence: str) -> None:
    with pytest.raises(CompileFailure, match=sentence):
        await run_chain(modern(), chain.V().choose(chain.label()).option(pick, chain.constant(1)))


async def test_branch_takes_every_option_that_fits() -> None:
    found = await run_chain(
        modern(),
        chain.inject(1, 5)
        .branch(chain.identity())
        .option(Predicate("lt", 9), chain.constant("below"))
        .option(chain.is_(Predicate("lt", 3)), chain.constant("small"))
        .option(_NONE, chain.constant("never"))
        .option(_ANY, chain.constant("always")),
    )
    assert _texts(found) == ["always", "always", "below", "below", "small"]


async def test_coalesce_takes_the_first_child_with_results() -> None:
    found = await run_chain(
        modern(), chain.V().coalesce(chain.values("nothing"), chain.values("age"), chain.constant("x"))
    )
    assert _texts(found) == ["27", "29", "32", "35", "x", "x"]


async def test_optional_passes_the_traverser_where_the_child_yields_nothing() -> None:
    assert await names(modern(), chain.V("1", "2").optional(chain.out("knows"))) == ["josh", "vadas", "vadas"]


async def test_map_takes_one_result_and_flat_map_all() -> None:
    assert len(await run_chain(modern(), chain.V().map(chain.out()))) == 3
    assert len(await run_chain(modern(), chain.V().flatMap(chain.out()))) == 6


async def test_the_path_of_a_child_shows_in_local_alone() -> None:
    lengths = {
        step: {len(path) for path in await run_chain(modern(), getattr(chain.V("1"), step)(chain.out().out()).path())}
        for step in ("local", "optional", "flatMap", "map", "coalesce")
    }
    assert lengths == {"local": {3}, "optional": {3}, "flatMap": {2}, "map": {2}, "coalesce": {2}}


async def test_side_effect_passes_the_traverser() -> None:
    assert await names(modern(), chain.V("1").sideEffect(chain.out())) == ["marko"]


async def test_results_of_merged_traversers_count_as_often() -> None:
    merged = chain.V().repeat(chain.both()).times(2)
    plain = chain.V().both().both()
    for step in (
        chain.local(chain.out().count()),
        chain.flatMap(chain.out()),
        chain.map(chain.out().fold()),
        chain.coalesce(chain.out("knows"), chain.identity()),
        chain.optional(chain.out("knows")),
        chain.choose(chain.out("knows"), chain.constant(1), chain.constant(2)),
        chain.union(chain.count(), chain.out()),
        chain.local(chain.limit(1)),
    ):
        expected = await run_chain(modern(), Chain((*plain.steps, *step.steps)))
        assert _texts(await run_chain(modern(), Chain((*merged.steps, *step.steps)))) == _texts(expected)


_CHILDREN = st.recursive(
    st.sampled_from(
        [
            chain.out(),
            chain.in_(),
            chain.both().dedup(),
            chain.limit(1),
            chain.tail(1),
            chain.out().count(),
            chain.fold(),
            chain.has("age"),
            chain.both().limit(2),
            chain.constant(1),
        ]
    ),
    lambda child: st.one_of(
        st.builds(lambda first, second: chain.union(first, second), child, child),
        st.builds(lambda first, second: chain.coalesce(first, second), child, child),
        st.builds(lambda first, second: chain.choose(chain.hasLabel("person"), first, second), child, child),
        st.builds(lambda first: chain.local(first), child),
        st.builds(lambda first: chain.optional(first), child),
        st.builds(lambda first: chain.where(first), child),
        st.builds(lambda first: chain.repeat(chain.both().dedup()).times(2).local(first), child),
    ),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None)
@given(child=_CHILDREN)
async def test_a_child_run_for_many_parents_answers_as_for_each_alone(child: Chain) -> None:
    together = await run_chain(modern(), chain.V().local(child))
    alone = []
    for vertex in ("1", "2", "3", "4", "5", "6"):
        alone += await run_chain(modern(), chain.V(vertex).local(child))
    assert _texts(together) == _texts(alone)

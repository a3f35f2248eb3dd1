"""The source of a traversal: settings, and strategies as rewrites."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.languages.gremlin.engine.run import Run
from asterism.languages.gremlin.evaluation import SourceOptions
from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.plan.source import read_source
from asterism.languages.gremlin.tree import Instruction, Predicate, Strategy, Token, Traversal
from tests.unit.gremlin.memory_graph import modern


def call(name: str, *arguments: Any) -> Instruction:
    return Instruction(name, arguments)


def anonymous(*steps: Instruction) -> Traversal:
    return Traversal(steps)


def rewritten(strategy: Strategy, *steps: Instruction, key_name: str | None = None) -> tuple[Instruction, ...]:
    source = (call("withStrategies", strategy),)
    traversal, _ = read_source(Traversal(steps, source), key_name=key_name)
    return traversal.steps


def test_a_run_begins_with_the_side_effects_and_the_sack_of_the_source() -> None:
    collected = [1]
    source = (
        call("withSideEffect", "x", collected),
        call("withSideEffect", "y", 2, Token("Operator", "sum")),
        call("withSack", 5, Token("Operator", "sum")),
        call("withBulk", False),
    )
    _, settings = read_source(Traversal((), source), key_name=None)
    run = Run(modern(), monotonic=lambda: 0.0)
    settings.prepare(run)
    assert run.side_effects["x"].value == [1]
    assert run.side_effects["x"].value is not collected
    merge = run.side_effects["y"].operator
    assert merge is not None
    assert merge(2, 3) == 5
    assert run.sack == 5
    assert run.merge_sacks is not None
    assert settings.has_sack
    assert not run.is_bulked


def test_a_seed_makes_chances_repeat() -> None:
    _, settings = read_source(
        Traversal((), (call("withStrategies", Strategy("SeedStrategy", {"seed": 7})),)), key_name=None
    )
    drawn = []
    for _round in range(2):
        run = Run(modern(), monotonic=lambda: 0.0)
        settings.prepare(run)
        drawn.append([run.random.random() for _ in range(4)])
    assert drawn[0] == drawn[1]


def test_options_come_from_with_and_from_their_strategy() -> None:
    source = (
        call("with", "evaluationTimeout", 500),
        call("with", "quiet"),
        call("withStrategies", Strategy("OptionsStrategy", {"a": 1})),
    )
    _, settings = read_source(Traversal((), source), key_name=None)
    assert settings.options == {"evaluationTimeout": 500, "quiet": True, "a": 1}


def test_options_of_a_request_are_read_from_the_source() -> None:
    source = (call("with", "evaluationTimeout", 500), call("with", "batchSize", 7))
    _, settings = read_source(Traversal((), (*source, call("with", "materializeProperties", "tokens"))), key_name=None)
    assert settings.request_options == SourceOptions(0.5, 7, materializes_properties=False)
    _, settings = read_source(Traversal((), (call("with", "evaluationTimeout", 0),)), key_name=None)
    assert settings.request_options == SourceOptions()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("evaluationTimeout", "soon"),
        ("evaluationTimeout", -1),
        ("evaluationTimeout", float("nan")),
        ("batchSize", 0),
        ("batchSize", True),
        ("materializeProperties", "some"),
        ("materializeProperties", []),
    ],
)
def test_an_option_that_means_nothing_is_refused(name: str, value: object) -> None:
    with pytest.raises(CompileFailure, match=name):
        read_source(Traversal((), (call("with", name, value),)), key_name=None)


def test_system_properties_are_named_by_the_projection_strategy() -> None:
    strategy = Strategy("ProjectionStrategy", {"IncludeSystemProperties": "_ts"})
    _, settings = read_source(Traversal((), (call("withStrategies", strategy),)), key_name=None)
    assert settings.system_properties == ("_ts",)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (call("withStrategies", Strategy("NoSuchStrategy")), "'NoSuchStrategy' is not known"),
        (call("withoutStrategies", Strategy("NoSuchStrategy")), "'NoSuchStrategy' is not known"),
        (call("withStrategies", "x"), "takes traversal strategies"),
        (call("withComputer"), "Graph computers are not available"),
        (call("withStrategies", Strategy("VertexProgramStrategy")), "Graph computers are not available"),
        (call("withSideEffect", "x"), "withSideEffect() takes"),
        (call("withSideEffect", "x", 1, "sum"), "takes an Operator"),
        (call("withSack"), "withSack() takes"),
        (call("withBulk", "no"), "withBulk() takes"),
        (call("withNothing"), "Unable to find any method 'withNothing'"),
        (call("withStrategies", Strategy("SubgraphStrategy")), "A subgraph must be filtered"),
        (call("withStrategies", Strategy("SubgraphStrategy", {"vertices": 1})), "must be a traversal"),
        (call("withStrategies", Strategy("PartitionStrategy")), "needs a partitionKey"),
        (call("withStrategies", Strategy("SeedStrategy", {"seed": "x"})), "whole number"),
    ],
)
def test_a_source_that_means_nothing_is_refused_with_a_sentence(source: Instruction, words: str) -> None:
    with pytest.raises(CompileFailure) as refusal:
        read_source(Traversal((), (source,)), key_name=None)
    assert words in refusal.value.sentence


def test_a_restricted_source_refuses_a_graph_computer_in_words_of_its_own() -> None:
    source = (call("withStrategies", Strategy("VertexProgramRestrictionStrategy"), Strategy("VertexProgramStrategy")),)
    with pytest.raises(CompileFailure, match="does not allow the use of a GraphComputer"):
        read_source(Traversal((), source), key_name=None)


def test_names_of_optimizations_change_nothing() -> None:
    steps = (call("V"), call("out", "knows"), call("values", "name"))
    assert rewritten(Strategy("LazyBarrierStrategy"), *steps) == steps


def test_a_removed_strategy_does_not_apply() -> None:
    source = (
        call("withStrategies", Strategy("ReadOnlyStrategy")),
        call("withoutStrategies", Strategy("ReadOnlyStrategy")),
    )
    traversal, _ = read_source(Traversal((call("addV"),), source), key_name=None)
    assert traversal.steps == (call("addV"),)


@pytest.mark.parametrize(
    "steps",
    [
        (call("addV"),),
        (call("V"), call("drop")),
        (call("V"), call("coalesce", anonymous(call("out")), anonymous(call("property", "a", 1)))),
    ],
)
def test_a_read_only_traversal_has_no_step_that_writes(steps: tuple[Instruction, ...]) -> None:
    with pytest.raises(CompileFailure, match="has a mutating step and thus is not read only"):
        rewritten(Strategy("ReadOnlyStrategy"), *steps)


def test_reserved_keys_are_refused_only_on_demand() -> None:
    steps = (call("addV"), call("property", Token("Cardinality", "single"), "age", 1))
    lenient = Strategy("ReservedKeysVerificationStrategy", {"keys": {"age"}})
    assert rewritten(lenient, *steps) == steps
    strict = Strategy("ReservedKeysVerificationStrategy", {"keys": {"age"}, "throwException": True})
    with pytest.raises(CompileFailure, match="reserved word: age"):
        rewritten(strict, *steps)


def test_steps_without_edge_labels_are_refused_on_demand() -> None:
    strict = Strategy("EdgeLabelVerificationStrategy", {"throwException": True})
    with pytest.raises(CompileFailure, match="without any specified edge label"):
        rewritten(strict, call("V"), call("local", anonymous(call("outE"))))
    with pytest.raises(CompileFailure, match="without any specified edge label"):
        rewritten(strict, call("V"), call("to", Token("Direction", "OUT")))
    assert rewritten(strict, call("V"), call("out", "knows"))


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((call("V"), call("emit")), "The repeat()-traversal was not defined"),
        ((call("V"), call("repeat", anonymous(call("inject", 1)))), "The parent of inject()-step"),
        ((call("V"), call("repeat", anonymous(call("count")))), "reducing/supplying barrier"),
        ((call("V"), call("profile"), call("out")), "profile()-Step must be the last"),
    ],
)
def test_traversals_that_cannot_mean_anything_are_refused(steps: tuple[Instruction, ...], words: str) -> None:
    with pytest.raises(CompileFailure) as refusal:
        read_source(Traversal(steps), key_name=None)
    assert words in refusal.value.sentence


WITHIN_A = call("has", "pk", Predicate("within", ["a"]))
PARTITIONS = {"partitionKey": "pk", "readPartitions": ["a"], "writePartition": "a"}


def test_partitions_become_a_condition_behind_every_step_that_reads_elements() -> None:
    found = rewritten(
        Strategy("PartitionStrategy", PARTITIONS),
        call("V"),
        call("has", "name", "x"),
        call("as", "a"),
        call("where", anonymous(call("outE"), call("inV"))),
        call("values", "name"),
    )
    assert found == (
        call("V"),
        call("has", "name", "x"),
        call("as", "a"),
        WITHIN_A,
        call("where", anonymous(call("outE"), WITHIN_A, call("inV"), WITHIN_A)),
        call("values", "name"),
    )


def test_new_elements_get_the_partition_that_is_written() -> None:
    strategy = Strategy("PartitionStrategy", PARTITIONS)
    written = call("property", "pk", "a")
    assert rewritten(strategy, call("addV"), call("addE", "x")) == (call("addV"), written, call("addE", "x"), written)
    # The graph's own key is the place of an edge, not a property of it.
    assert rewritten(strategy, call("addV"), call("addE", "x"), key_name="pk") == (
        call("addV"),
        written,
        call("addE", "x"),
    )
    assert rewritten(strategy, call("mergeV", {"name": "x"})) == (call("mergeV", {"name": "x", "pk": "a"}),)


def test_partitions_of_meta_properties_may_not_be_asked_for() -> None:
    strategy = Strategy("PartitionStrategy", {**PARTITIONS, "includeMetaProperties": True})
    with pytest.raises(CompileFailure, match="Cannot explicitly request the partitionKey"):
        rewritten(strategy, call("V"), call("values", "pk"))
    assert rewritten(strategy, call("V"), call("property", "name", "x")) == (
        call("V"),
        WITHIN_A,
        call("property", "name", "x", "pk", "a"),
    )


def test_a_subgraph_filters_vertices_where_they_are_read_and_edges_by_their_ends() -> None:
    people = anonymous(call("hasLabel", "person"))
    strategy = Strategy("SubgraphStrategy", {"vertices": people})
    assert rewritten(strategy, call("V"), call("outE"), call("count")) == (
        call("V"),
        call("hasLabel", "person"),
        call("outE"),
        call("filter", anonymous(call("inV"), call("hasLabel", "person"))),
        call("count"),
    )
    careless = Strategy("SubgraphStrategy", {"vertices": people, "checkAdjacentVertices": False})
    assert rewritten(careless, call("V"), call("outE")) == (call("V"), call("hasLabel", "person"), call("outE"))


def test_neighbors_in_a_subgraph_of_edges_are_reached_through_its_edges() -> None:
    strategy = Strategy("SubgraphStrategy", {"edges": anonymous(call("where", anonymous(call("inV"))))})
    edge_filter = call("filter", anonymous(call("where", anonymous(call("inV")))))
    assert rewritten(strategy, call("V"), call("out", "knows"), call("both")) == (
        call("V"),
        call("outE", "knows"),
        edge_filter,
        call("inV"),
        call("bothE"),
        edge_filter,
        call("otherV"),
    )

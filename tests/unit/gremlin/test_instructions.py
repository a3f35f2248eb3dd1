"""The check of instructions: names, forms of arguments, children, limits."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.languages.gremlin.failure import CompileFailure, LimitExceeded
from asterism.languages.gremlin.plan.instructions import (
    SOURCE_INSTRUCTIONS,
    START_STEPS,
    STEP_INSTRUCTIONS,
    check,
)
from asterism.languages.gremlin.text.parser import parse
from asterism.languages.gremlin.tree import Instruction, Lambda, Predicate, Token, Traversal, Variable
from tests.unit.gremlin.script_trees import child

ACCEPTED = """
g.V().has('name', 'x').has('person', 'age', gt(1)).has(T.id, within(1, 2)).has('name')
g.V().has(null, 'x').hasLabel(null, 'a').hasId(1, 2).hasKey('a').hasValue(1).hasNot('b')
g.V(['p', 'id'], 'id').out('a', 'b').inE().otherV().bothV()
g.addV('a').property('id', 1).property(single, 'a', 1, 'meta', 2).property([a: 1]).property(list, [a: 1])
g.addV('label', 'person', 'id', 's', 'name', 'n')
g.addV().addV(values('label')).addE('x').from('a').to(__.V('b'))
g.V().addE('x').to(OUT, 'x')
g.V().order().by('a', desc).by(values('b')).by(T.id, asc).by().by(shuffle).by(keys).by(values, desc)
g.V().order(local).limit(local, 2).tail().tail(local).tail(2).tail(local, 2).range(1, 2).skip(1).sample(local, 1)
g.V().select('a').select('a', 'b').select(all, 'a').select(keys).select(first, 'a', 'b').select(select('x'))
g.V().choose(label()).option('a', out()).option(none, in()).option(gt(1), both()).option(out())
g.V().choose(is(1), out()).choose(gt(1), out(), in()).choose(T.label)
g.V().repeat(out()).times(2).emit().until(has('a')).repeat('x', out()).emit(gt(1)).until(loops('x').is(2))
g.V().aggregate('x').aggregate(local, 'x').store('x').cap('x', 'y').group('m').groupCount().tree('t')
g.V().valueMap(true, 'a').valueMap('a').elementMap().propertyMap().values().properties('a')
g.V().dedup().dedup('a', 'b').dedup(local).fold().fold(0, sum).sack(sum).barrier(10).barrier(normSack)
g.mergeV([name: 'x']).option(onCreate, [a: 1]).option(Merge.onMatch, null).option(onMatch, [a: 1], single)
g.mergeE(null).option(Merge.outV, select('v')).option(Merge.inV, [(T.id): 1])
g.inject(1, 'a', null, [1]).combine([1]).merge({1}).product([2]).difference(values('a').fold()).conjoin(',')
g.inject('a').concat('b', null).concat(values('a'), constant('b')).split(null).split(local, ',').replace('a', null)
g.inject('a').substring(1).substring(local, 1, 2).toUpper().trim(local).length().format('%{a}').reverse()
g.inject('1').asNumber().asNumber(GType.INT).asDate().dateAdd(DT.day, 1).dateDiff(datetime('2020-01-01')).asBool()
g.V().all(gt(1)).any(eq(1)).none(lt(1)).none().discard().fail('x').fail().math('_ + 1').index().element()
g.V().match(as('a').out().as('b')).where('a', neq('b')).where(out()).where(within('x')).not(out()).and().or(out())
g.withSack(1, sum).withSideEffect('x', [1], addAll).withBulk(false).withPath().with('a').with('b', 1).V()
g.withStrategies(ReadOnlyStrategy, new SeedStrategy(seed: 1)).withoutStrategies(LazyBarrierStrategy).V()
g.union(V(), E()).profile().executionProfile()
g.V().explain()
g.tx().commit()
g.V(x).limit(x).has(x, x).by(x).out(x, x).property(x, x, x)
g
"""


@pytest.mark.parametrize("text", ACCEPTED.strip().splitlines())
def test_accepted_forms(text: str) -> None:
    check(parse(text))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("g.V().limit('x')", "Unable to bind to method 'limit', with arguments of type: (String) @ line 1, column 12."),
        (
            "g.V().aggregate(local, 1)",
            "Unable to bind to method 'aggregate', with arguments of type: (Scope,Int32) @ line 1, column 16.",
        ),
        ("g.V().out(1L)", "Unable to bind to method 'out', with arguments of type: (Int64) @ line 1, column 10."),
        ("g.V().where()", "Unable to bind to method 'where', with arguments of type: () @ line 1, column 12."),
        (
            "g.V().count(true, 1.5)",
            "Unable to bind to method 'count', with arguments of type: (Boolean,Double) @ line 1, column 12.",
        ),
        (
            "g.V().map('a')",
            "Unable to bind to method 'map', with arguments of type: (String) @ line 1, column 10.",
        ),
        (
            "g.V().where(out().by(gt(1)))",
            "Unable to bind to method 'by', with arguments of type: (P) @ line 1, column 21.",
        ),
        (
            "g.V().is(within([out().times('x')]))",
            "Unable to bind to method 'times', with arguments of type: (String) @ line 1, column 29.",
        ),
        ("g.out()", "Unable to find any method 'out' @ line 1, column 6."),
        ("g.V().withBulk(true)", "Unable to find any method 'withBulk' @ line 1, column 15."),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_their_types(text: str, sentence: str) -> None:
    traversal = parse(text)
    with pytest.raises(CompileFailure) as failure:
        check(traversal)
    assert failure.value.sentence == sentence


@pytest.mark.parametrize(
    ("instruction", "sentence"),
    [
        (Instruction("foo"), "Unable to find any method 'foo'"),
        (Instruction("limit", ("x",)), "Unable to bind to method 'limit', with arguments of type: (String)"),
        (Instruction("map", (child("foo"),)), "Unable to find any method 'foo'"),
        (
            Instruction("map", (Lambda("it.get()"),)),
            "Script compile error: Unsupported groovy language rule: 'closure' text: 'it.get()'",
        ),
        (
            Instruction("inject", ({"a": [Lambda("x")]},)),
            "Script compile error: Unsupported groovy language rule: 'closure' text: 'x'",
        ),
    ],
)
def test_bytecode_is_refused_without_a_place(instruction: Instruction, sentence: str) -> None:
    with pytest.raises(CompileFailure) as failure:
        check(Traversal((Instruction("V"), instruction)))
    assert failure.value.sentence == sentence


def test_a_child_has_no_calls_on_the_source() -> None:
    nested = Traversal((Instruction("V"),), (Instruction("withBulk", (False,)),))
    with pytest.raises(CompileFailure, match="withBulk"):
        check(Traversal((Instruction("V"), Instruction("map", (nested,)))))


def test_steps_of_children_count_for_the_limit() -> None:
    traversal = parse("g.V().where(out().in())")
    check(traversal, steps_max=4)
    with pytest.raises(LimitExceeded):
        check(traversal, steps_max=3)


@pytest.mark.parametrize(
    "wrap", [lambda inner: child("map", inner), lambda inner: [inner], lambda inner: Predicate("not", inner)]
)
def test_deep_bytecode_is_a_refusal(wrap: Any) -> None:
    argument: Any = Predicate("eq", 1)
    for _ in range(300):
        argument = wrap(argument)
    with pytest.raises(CompileFailure, match="nested deeper"):
        check(Traversal((Instruction("inject", (argument,)),)))


def test_variables_fit_every_kind() -> None:
    x = Variable("x")
    check(Traversal((Instruction("V"), Instruction("limit", (x,)), Instruction("aggregate", (x, x)))))


def test_no_two_instructions_differ_only_in_case() -> None:
    names = [*STEP_INSTRUCTIONS, *(set(SOURCE_INSTRUCTIONS) - set(STEP_INSTRUCTIONS))]
    assert len({name.lower() for name in names}) == len(names)


def test_every_start_is_a_step() -> None:
    assert set(STEP_INSTRUCTIONS) >= START_STEPS


def test_tokens_of_another_enumeration_do_not_fit() -> None:
    with pytest.raises(CompileFailure, match=r"\(Order\)"):
        check(Traversal((Instruction("V"), Instruction("count", (Token("Order", "asc"),)))))

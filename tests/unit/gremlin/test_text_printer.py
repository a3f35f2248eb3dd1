"""Traversals as texts: reading the printed text gives the same traversal again."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.gremlin.graph.elements import Vertex
from asterism.languages.gremlin.text.literals import NAN
from asterism.languages.gremlin.text.parser import parse
from asterism.languages.gremlin.text.printer import print_traversal, print_value
from asterism.languages.gremlin.tokens import TOKENS
from asterism.languages.gremlin.tree import (
    CardinalityValue,
    Instruction,
    Lambda,
    Predicate,
    Strategy,
    Traversal,
    Variable,
)
from asterism.languages.gremlin.values.numbers import BigInteger, Byte, Float, Long, Short
from tests.unit.gremlin.script_trees import first_arguments, typed
from tests.unit.gremlin.test_instructions import ACCEPTED


@pytest.mark.parametrize("text", ACCEPTED.strip().splitlines())
def test_a_printed_script_is_read_as_the_same_traversal(text: str) -> None:
    traversal = parse(text)
    assert typed(parse(print_traversal(traversal))) == typed(traversal)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ('g.V("a").out ( ) ;', "g.V('a').out()"),
        ("g.V().has('a',gt(1).and(lt(9)))", "g.V().has('a', P.gt(1).and(P.lt(9)))"),
        ("g.V().order().by('a',decr)", "g.V().order().by('a', Order.desc)"),
        ("g.addE('x').To(g.V('y'))", "g.addE('x').to(__.V('y'))"),
        ("g.inject(1, 1L, 1f, 1.5m, NaN, -Infinity)", "g.inject(1, 1L, 1.0f, 1.5m, NaN, -Infinity)"),
        ("g.mergeV([name: 'x', (T.id): y])", "g.mergeV(['name': 'x', (T.id): y])"),
        ("g.withStrategies(SeedStrategy(seed: 5)).V()", "g.withStrategies(new SeedStrategy(seed: 5)).V()"),
        ("g.inject(datetime(), UUID(), 'a\\nb')", "g.inject(datetime(), UUID(), 'a\\nb')"),
        ("g.V().is(TextP.regex('x')).is(between(1, 2))", "g.V().is(TextP.regex('x')).is(P.between(1, 2))"),
        ("g.tx().rollback()", "g.tx().rollback()"),
    ],
)
def test_texts_are_printed_in_one_spelling(text: str, printed: str) -> None:
    assert print_traversal(parse(text)) == printed


def test_values_that_only_bytecode_has_are_printed_too() -> None:
    vertex = Vertex("v1", "person", None, None, key_name=None)
    assert print_value([vertex, Lambda("it"), Traversal(), b"x"]) == (
        "['v1', Lambda.function('it'), __.identity(), 'b\\'x\\'']"
    )


def _names() -> st.SearchStrategy[str]:
    return st.sampled_from(["x", "y1", "_z", "a$"])


def _numbers() -> st.SearchStrategy[Any]:
    small = st.integers(-128, 127)
    return st.one_of(
        st.integers(),
        small.map(Byte),
        small.map(Short),
        st.integers(-(2**63), 2**63 - 1).map(Long),
        st.integers().map(BigInteger),
        st.floats(allow_nan=False),
        st.just(NAN),
        st.floats(width=32, allow_nan=False, allow_infinity=False).map(Float),
        st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20),
    )


def _texts() -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=["Cs"]))


def _scalars() -> st.SearchStrategy[Any]:
    tokens = [token for names in TOKENS.values() for token in names.values()]
    return st.one_of(
        st.none(),
        st.booleans(),
        _numbers(),
        _texts(),
        st.sampled_from(tokens),
        _names().map(Variable),
        st.uuids(),
        st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(UTC)),
        st.timedeltas(min_value=timedelta(-1000), max_value=timedelta(1000)),
    )


def _values() -> st.SearchStrategy[Any]:
    return st.recursive(_scalars(), _nested, max_leaves=12)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, max_size=3)
    predicates = st.one_of(
        st.builds(Predicate, st.sampled_from(["eq", "neq", "gt"]), inner),
        st.builds(Predicate, st.sampled_from(["within", "without"]), lists),
        st.builds(Predicate, st.just("between"), st.lists(inner, min_size=2, max_size=2)),
        st.builds(Predicate, st.just("containing"), _texts()),
    )
    connected = st.builds(Predicate, st.sampled_from(["and", "or"]), st.lists(predicates, min_size=2, max_size=3))
    steps = st.builds(Instruction, st.sampled_from(["out", "has", "in", "not", "V"]), lists.map(tuple))
    return st.one_of(
        lists,
        st.dictionaries(st.one_of(_texts(), st.integers(), _names().map(Variable)), inner, max_size=3),
        st.sets(_texts(), max_size=3),
        predicates,
        connected,
        st.builds(Predicate, st.just("not"), predicates),
        st.builds(CardinalityValue, st.sampled_from(["single", "list", "set"]), inner),
        st.builds(Strategy, st.just("SeedStrategy"), st.dictionaries(st.sampled_from(["a", "b c"]), inner)),
        st.lists(steps, min_size=1, max_size=3).map(lambda chain: Traversal(tuple(chain))),
    )


@given(_values())
def test_every_value_is_read_back_as_it_was_printed(value: Any) -> None:
    assert typed(first_arguments(print_value(value))) == typed((value,))


def test_infinite_numbers_of_32_bits_are_printed_as_constants() -> None:
    assert print_value(Float(math.inf)) == "Infinity"

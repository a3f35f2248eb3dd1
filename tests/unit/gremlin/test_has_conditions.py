"""Conditions of the has-family as data."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.has_conditions import HasCondition, has_conditions
from asterism.languages.gremlin.tree import T_ID, T_KEY, T_LABEL, T_VALUE, Instruction, Predicate, Traversal

_EQ_X = Predicate("eq", "x")
_OVER_1 = Predicate("gt", 1)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("has", ("name",), [HasCondition("name", None)]),
        ("has", ("name", "x"), [HasCondition("name", _EQ_X)]),
        ("has", ("name", None), [HasCondition("name", Predicate("eq", None))]),
        ("has", ("age", _OVER_1), [HasCondition("age", _OVER_1)]),
        (
            "has",
            ("person", "age", _OVER_1),
            [HasCondition(T_LABEL, Predicate("eq", "person")), HasCondition("age", _OVER_1)],
        ),
        ("has", (T_LABEL, "x"), [HasCondition(T_LABEL, _EQ_X)]),
        ("has", (T_ID, 7), [HasCondition(T_ID, Predicate("eq", "7"))]),
        ("hasId", (1, "b"), [HasCondition(T_ID, Predicate("within", ["1", "b"]))]),
        ("hasId", ([1, 2],), [HasCondition(T_ID, Predicate("within", ["1", "2"]))]),
        ("hasId", ([],), [HasCondition(T_ID, Predicate("within", []))]),
        (
            "hasId",
            (Predicate("not", Predicate("eq", 1)),),
            [HasCondition(T_ID, Predicate("not", Predicate("eq", "1")))],
        ),
        ("hasLabel", ("x",), [HasCondition(T_LABEL, _EQ_X)]),
        ("hasLabel", ("x", None), [HasCondition(T_LABEL, Predicate("within", ["x", None]))]),
        ("hasKey", ("x",), [HasCondition(T_KEY, _EQ_X)]),
        ("hasValue", (_OVER_1,), [HasCondition(T_VALUE, _OVER_1)]),
    ],
)
def test_every_form_has_its_conditions(name: str, arguments: tuple[Any, ...], expected: list[HasCondition]) -> None:
    assert has_conditions(Instruction(name, arguments)) == tuple(expected)


@pytest.mark.parametrize("name", ["out", "hasNot", "where"])
def test_other_instructions_have_none(name: str) -> None:
    assert has_conditions(Instruction(name, ("x",))) is None


def test_a_traversal_is_no_condition() -> None:
    assert has_conditions(Instruction("has", ("age", Traversal((Instruction("is", (1,)),))))) is None


def test_the_texts_id_and_label_are_tokens_in_the_dialect_of_the_service() -> None:
    key = Compiler({}, dialect="cosmos").key
    assert has_conditions(Instruction("has", ("id", "x")), key) == (HasCondition(T_ID, _EQ_X),)
    assert has_conditions(Instruction("has", ("label", "x")), key) == (HasCondition(T_LABEL, _EQ_X),)
    assert has_conditions(Instruction("has", ("id", "x"))) == (HasCondition("id", _EQ_X),)


@pytest.mark.parametrize(("name", "arguments"), [("has", ()), ("has", (1, 2)), ("hasLabel", ()), ("hasId", ())])
def test_arguments_that_do_not_fit_are_refused(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(CompileFailure, match=f"Unable to bind to method '{name}'"):
        has_conditions(Instruction(name, arguments))

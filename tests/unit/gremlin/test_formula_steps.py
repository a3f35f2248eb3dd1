"""math() and format()."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.languages.gremlin.failure import CompileFailure, ExecutionFailure
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.table import STEPS
from asterism.languages.gremlin.tree import Instruction, Traversal
from tests.unit.gremlin.memory_graph import modern, results


def call(name: str, *arguments: Any) -> Instruction:
    return Instruction(name, arguments)


def child(*instructions: Instruction) -> Traversal:
    return Traversal(instructions)


async def found(*instructions: Instruction) -> list[Any]:
    return sorted(await results(modern(), call("V"), *instructions))


async def test_an_expression_reads_the_traverser_by_its_modulator_and_filters() -> None:
    assert await found(call("math", "_ + _"), call("by", "age")) == [54.0, 58.0, 64.0, 70.0]


async def test_an_expression_without_a_modulator_reads_the_value() -> None:
    assert await found(call("values", "age"), call("math", "_ / 2")) == [13.5, 14.5, 16.0, 17.5]


async def test_an_expression_reads_labels_each_by_the_next_modulator() -> None:
    assert await found(
        call("as", "a"),
        call("out", "created"),
        call("as", "b"),
        call("math", "b + a"),
        call("by", child(call("values", "name"), call("length"))),
        call("by", "age"),
    ) == [32.0, 35.0, 38.0, 38.0]


async def test_an_expression_reads_keys_of_maps() -> None:
    assert await found(call("constant", {"a": 6, "b": 4}), call("math", "a / b")) == [1.5] * 6


@pytest.mark.parametrize(("text", "value"), [("_ + 1", "x"), ("unknown + 1", 5)])
async def test_a_variable_that_is_no_number_is_refused(text: str, value: Any) -> None:
    with pytest.raises(ExecutionFailure, match=r"for math\(\) step must resolve to a Number"):
        await found(call("constant", value), call("math", text))


async def test_a_template_reads_properties_and_filters() -> None:
    expected = ["josh is 32", "marko is 29", "peter is 35", "vadas is 27"]
    assert await found(call("format", "%{name} is %{age}")) == expected


async def test_a_template_reads_modulators_in_turn() -> None:
    by = (call("by", child(call("constant", "hello"))), call("by", "name"))
    text = call("format", "%{_} %{_} %{_}")
    assert await found(call("out", "knows"), text, *by) == ["hello josh hello", "hello vadas hello"]


async def test_a_template_reads_labels_and_keys_of_maps() -> None:
    knows = (call("values", "name"), call("as", "n"), call("constant", {"count": 3}))
    assert await found(call("out", "knows"), *knows, call("format", "%{n}: %{count}")) == ["josh: 3", "vadas: 3"]


async def test_a_template_reads_the_value_without_a_modulator() -> None:
    assert await found(call("out", "knows"), call("values", "age"), call("format", "<%{_}>")) == ["<27>", "<32>"]


async def test_a_name_that_is_not_in_scope_filters() -> None:
    assert await found(call("format", "%{nothing}")) == []


@pytest.mark.parametrize("name", ["math", "format"])
def test_arguments_that_fit_no_form_are_refused(name: str) -> None:
    for arguments in ((), (5,), ("a", "b")):
        with pytest.raises(CompileFailure, match="Unable to bind to method"):
            Compiler(STEPS).pipeline(child(Instruction(name, arguments)))


def test_a_template_or_an_expression_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ExecutionFailure, match="Format string for Format step can't be null"):
        Compiler(STEPS).pipeline(child(call("format", None)))
    with pytest.raises(ExecutionFailure, match="a value is missing"):
        Compiler(STEPS).pipeline(child(call("math", "1 +")))

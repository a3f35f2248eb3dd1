"""Steps that are functions of one value: texts, lists, dates, numbers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.step import only
from asterism.languages.gremlin.engine.traverser import ROOT, Traverser
from asterism.languages.gremlin.failure import CompileFailure, ExecutionFailure
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.table import STEPS
from asterism.languages.gremlin.tree import Instruction, Predicate, Token, Traversal
from tests.unit.gremlin.memory_graph import modern, results

LOCAL, GLOBAL = Token("Scope", "local"), Token("Scope", "global")
AUGUST = datetime(2023, 8, 2, tzinfo=UTC)


def child(name: str, *arguments: Any) -> Traversal:
    return Traversal((Instruction(name, arguments),))


async def run(values: list[Any], *instructions: Instruction, bulk: int = 1) -> list[Any]:
    """Run instructions over values and return the values that come out, each as often as its bulk says."""
    compiler = Compiler(STEPS)
    pipeline = compiler.pipeline(Traversal(instructions))
    batch = [Traverser(value, bulk, ROOT) for value in values]
    frame = Frame(Run(modern(), monotonic=lambda: 0.0, tracks_path=compiler.needs_path))
    flowed = [traverser async for part in pipeline.flow(only(batch), frame) for traverser in part]
    whole = await pipeline.whole(batch, frame)
    assert [traverser.value for traverser in flowed] == [traverser.value for traverser in whole]
    return [traverser.value for traverser in flowed for _ in range(traverser.bulk)]


async def step(values: list[Any], name: str, *arguments: Any, bulk: int = 1) -> list[Any]:
    return await run(values, Instruction(name, arguments), bulk=bulk)


@pytest.mark.parametrize(
    ("value", "name", "arguments", "expected"),
    [
        ("aB", "toUpper", (), "AB"),
        (["aB", None], "toLower", (LOCAL,), ["ab", None]),
        ("aB", "toLower", (GLOBAL,), "ab"),
        (" a ", "trim", (), "a"),
        ([" a "], "lTrim", (LOCAL,), ["a "]),
        (" a ", "rTrim", (), " a"),
        ("abc", "length", (), 3),
        (["abc", "d"], "length", (LOCAL,), [3, 1]),
        ("a-b", "split", ("-",), ["a", "b"]),
        (["a b"], "split", (LOCAL, None), [["a", "b"]]),
        ("hello", "substring", (1, 3), "el"),
        (["hello"], "substring", (LOCAL, -2), ["lo"]),
        ("banana", "replace", ("an", "x"), "bxxa"),
        (["ab"], "replace", (LOCAL, "a", None), ["ab"]),
        ("abc", "reverse", (), "cba"),
        ([1, "a"], "reverse", (), ["a", 1]),
        (5, "asString", (), "5"),
        ([5, 6.0], "asString", (LOCAL,), ["5", "6.0"]),
        ("a", "concat", ("b", None, "c"), "abc"),
        ("a", "concat", (child("toUpper"), child("constant", "x")), "aAx"),
        (None, "concat", (child("constant", None),), None),
        ([1, 2], "combine", ([3],), [1, 2, 3]),
        ([1, 2], "difference", ([2],), {1}),
        ([1, 2], "intersect", (child("constant", [2, 3]),), {2}),
        ([1, 2], "disjunct", ([2, 3],), {1, 3}),
        ([1, 2], "merge", ({2, 3},), {1, 2, 3}),
        ({"a": 1}, "merge", ({"b": 2},), {"a": 1, "b": 2}),
        ([1], "product", (["a"],), [[1, "a"]]),
        ([1, 2], "conjoin", ("+",), "1+2"),
        (["a"], "index", (), [["a", 0]]),
        ("a", "concat", (child("inject", "x"),), "aa"),
        ("5", "asNumber", (), 5),
        (5.7, "asNumber", (Token("GType", "INT"),), 5),
        ("true", "asBool", (), True),
        ("2023-08-02", "asDate", (), AUGUST),
        (AUGUST, "dateAdd", (Token("DT", "day"), 1), datetime(2023, 8, 3, tzinfo=UTC)),
        (AUGUST, "dateDiff", (datetime(2023, 8, 1, tzinfo=UTC),), 86400000),
        (AUGUST, "dateDiff", (child("constant", None),), 1690934400000),
        ([1, 2, 3], "sum", (LOCAL,), 6),
        ([3, None, 2], "min", (LOCAL,), 2),
        ([3, None, 2], "max", (LOCAL,), 3),
        ([1, 2], "mean", (LOCAL,), 1.5),
        (7, "sum", (LOCAL,), 7),
    ],
)
async def test_a_step_maps_a_value(value: Any, name: str, arguments: tuple[Any, ...], expected: Any) -> None:
    assert await step([value], name, *arguments) == [expected]


async def test_a_stream_is_reduced_with_the_bulk_of_its_traversers() -> None:
    assert await step([1, 2, None], "sum", bulk=3) == [9]
    assert await step([1, 2, 3], "mean", bulk=2) == [2.0]
    assert await step(["b", "a"], "min") == ["a"]
    assert await step([1, 2.5], "max", GLOBAL) == [2.5]
    assert await step([None], "sum") == [None]
    assert await step([], "sum") == []
    assert await step([[]], "max", LOCAL) == []


async def test_a_child_reduces_each_parent_apart() -> None:
    compiler = Compiler(STEPS)
    pipeline = compiler.pipeline(Traversal((Instruction("sum"),)))
    parents = [Traverser(1), Traverser(5, 2), Traverser(None)]
    found = await pipeline.each(parents, Run(modern(), monotonic=lambda: 0.0))
    assert [[traverser.value for traverser in results] for results in found] == [[1], [10], [None]]


async def test_lists_are_filtered_by_their_members() -> None:
    values = [[1, 5], [6], [], 7]
    over_four = Predicate("gt", 4)
    assert await step(values, "all", over_four) == [[6], []]
    assert await step(values, "any", over_four) == [[1, 5], [6]]
    assert await step(values, "none", over_four) == [[]]
    assert await step(values, "none") == []


async def test_members_are_numbered_as_the_option_says() -> None:
    option = "~tinkerpop.index.indexer"
    assert await run([["a"]], Instruction("index"), Instruction("with", (option, 1))) == [{0: "a"}]
    assert await run([["a"]], Instruction("index"), Instruction("with", (option, 0))) == [[["a", 0]]]
    with pytest.raises(CompileFailure, match="requires a single Integer argument"):
        await run([["a"]], Instruction("index"), Instruction("with", (option, 2)))


@pytest.mark.parametrize(
    ("value", "name", "arguments", "sentence"),
    [
        (5, "toUpper", (), "The toUpper() step can only take string as argument"),
        ([5], "trim", (LOCAL,), "The trim(local) step can only take string or list of strings"),
        (5, "concat", ("a",), "String concat() can only take string as argument"),
        ("a", "concat", (child("none"),), "The provided traverser does not map to a value: a"),
        (None, "combine", ([1],), "Incoming traverser for combine step can't be null"),
        ([1], "combine", (None,), "Argument provided for combine step can't be null"),
        ([1], "product", (child("constant", None),), "must yield an iterable type, not null"),
        ([1], "merge", ({"a": 1},), "expected argument to be Iterable but got Map"),
        ([1], "merge", (child("constant", {"a": 1}),), "must yield an iterable type, encountered"),
        ({"a": 1}, "merge", ([1],), "expected provided argument to evaluate to a Map"),
        ([1], "all", (None,), "Input predicate to all step can't be null."),
        ([1], "conjoin", (None,), "Input delimiter to conjoin step can't be null."),
        ("x", "asNumber", (), "Can't parse string 'x' as number."),
        (None, "asBool", (), "Can't parse null as Boolean."),
        (1.5, "asDate", (), "Can't parse"),
        (5, "dateDiff", (AUGUST,), "DateDiff can only take"),
        (AUGUST, "dateAdd", (Token("DT", "year"), 1), "DT tokens should only be"),
        (["a", 1], "min", (LOCAL,), "cannot be compared"),
    ],
)
async def test_a_value_that_a_step_cannot_use_is_refused(
    value: Any, name: str, arguments: tuple[Any, ...], sentence: str
) -> None:
    with pytest.raises(ExecutionFailure) as failure:
        await step([value], name, *arguments)
    assert sentence in failure.value.sentence


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("toUpper", ("a",)),
        ("substring", ()),
        ("substring", ("a",)),
        ("substring", (True,)),
        ("split", ()),
        ("replace", ("a",)),
        ("concat", (5,)),
        ("reverse", (1,)),
        ("asString", (1,)),
        ("combine", ()),
        ("all", (5,)),
        ("any", ()),
        ("conjoin", (5,)),
        ("sum", (5,)),
        ("asNumber", (5,)),
        ("asBool", (5,)),
        ("asDate", (5,)),
        ("dateAdd", (Token("DT", "day"),)),
        ("dateAdd", (Token("DT", "day"), "x")),
        ("dateDiff", (5,)),
    ],
)
async def test_arguments_that_fit_no_form_of_a_step_are_refused(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(CompileFailure, match=f"Unable to bind to method '{name}'"):
        await step([], name, *arguments)


async def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    steps = [Instruction("V"), *[Instruction("fold")] * 390, Instruction("asString")]
    with pytest.raises(ExecutionFailure, match="nested too deeply"):
        await results(modern(), *steps)

"""`math()` and `format()`: formulas over names in scope and `by` modulators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING, Modulator, property_reader
from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.scope import scope_value
from asterism.languages.gremlin.engine.step import AsyncStep, Step
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.elements import Edge, Vertex, VertexProperty
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.arguments import refuse_arguments
from asterism.languages.gremlin.values.math_expression import MathExpression
from asterism.languages.gremlin.values.numbers import is_number
from asterism.languages.gremlin.values.printing import text_of
from asterism.languages.gremlin.values.templates import CURRENT, Template, parse_template
from asterism.languages.gremlin.values.types import class_name


class MathStep(AsyncStep):
    """The value of an expression. Each variable is read by the next modulator, in turn: `_` from the traverser, any
    other from its value in scope. A traverser for which a modulator yields nothing is left out."""

    def __init__(self, expression: MathExpression, modulators: Sequence[Modulator]) -> None:
        self.expression = expression
        self.modulators = tuple(modulators)

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        rows: list[tuple[Traverser, dict[str, float]]] = [(traverser, {}) for traverser in batch]
        for place, name in enumerate(self.expression.variables):
            values = await self._values(place, name, [traverser for traverser, _ in rows], frame.run)
            kept = []
            for row, value in zip(rows, values, strict=True):
                if value is not MISSING:
                    row[1][name] = _number(name, value)
                    kept.append(row)
            rows = kept
        evaluate = self.expression.evaluate
        return [traverser.to(evaluate(values)) for traverser, values in rows]

    async def _values(self, place: int, name: str, batch: Batch, run: Run) -> list[Any]:
        if name != CURRENT:
            batch = [Traverser(_in_scope(name, traverser, run)) for traverser in batch]
        if not self.modulators:
            return [traverser.value for traverser in batch]
        return await self.modulators[place % len(self.modulators)].values(batch, run)


def _number(name: str, value: Any) -> float:
    if not is_number(value):
        raise ExecutionFailure(
            f"The variable {name} for math() step must resolve to a Number - "
            f"it is instead of type {class_name(value)} with value {text_of(value)[:200]}"
        )
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _in_scope(name: str, traverser: Traverser, run: Run) -> Any:
    found = scope_value(traverser, name, run)
    return None if found is MISSING else found


class FormatStep(AsyncStep):
    """The text of a template. `%{_}` is the next modulator's value, any other variable a property of the element, or
    a name in scope. A traverser without a value for one of them is left out."""

    def __init__(self, template: Template, modulators: Sequence[Modulator]) -> None:
        self.template = template
        # Without a modulator `%{_}` is the value itself.
        self.modulators = tuple(modulators)
        self._readers = {name: property_reader(name, default=MISSING) for name in template.variables}

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        columns = [await self._values(turn, name, batch, frame.run) for turn, name in self._turns()]
        found: Batch = []
        for place, traverser in enumerate(batch):
            text = self._fill(place, columns)
            if text is not None:
                found.append(traverser.to(text))
        return found

    def _turns(self) -> list[tuple[int, str]]:
        """Return the variables, each with the number of `%{_}` before it."""
        turns, turn = [], 0
        for name in self.template.variables:
            turns.append((turn, name))
            turn += name == CURRENT
        return turns

    async def _values(self, turn: int, name: str, batch: Batch, run: Run) -> list[Any]:
        if name != CURRENT:
            return [self._named(name, traverser, run) for traverser in batch]
        if not self.modulators:
            return [traverser.value for traverser in batch]
        values = await self.modulators[turn % len(self.modulators)].values(batch, run)
        return [None if value is MISSING else value for value in values]

    def _named(self, name: str, traverser: Traverser, run: Run) -> Any:
        if isinstance(traverser.value, Vertex | Edge | VertexProperty):
            found = self._readers[name](traverser.value)
            if found is not MISSING:
                return found
        return _in_scope(name, traverser, run)

    def _fill(self, place: int, columns: list[list[Any]]) -> str | None:
        return self.template.fill(lambda variable, _: columns[variable][place])


def _make_math(call: StepCall, compiler: Compiler) -> Step:
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], str):
        raise refuse_arguments(call)
    return MathStep(MathExpression(call.arguments[0]), compiler.modulators(call))


def _make_format(call: StepCall, compiler: Compiler) -> Step:
    if call.arguments == (None,):
        raise ExecutionFailure("Format string for Format step can't be null.")
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], str):
        raise refuse_arguments(call)
    return FormatStep(parse_template(call.arguments[0]), compiler.modulators(call))


STEPS: Mapping[str, Maker] = {
    "format": _make_format,
    "math": _make_math,
}

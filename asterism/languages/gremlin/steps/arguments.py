"""Arguments of steps that are functions of one value: scopes, constants, and traversals that yield an argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING, ChildModulator, Modulator
from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.step import AsyncStep, Step
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.plan.calls import StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.scopes import is_local, without_scope
from asterism.languages.gremlin.steps.basic import MapStep
from asterism.languages.gremlin.tree import Traversal
from asterism.languages.gremlin.values.printing import text_of


def scoped(call: StepCall) -> tuple[bool, tuple[Any, ...]]:
    """Return whether a call is for the members of each value (`Scope.local`), and its arguments without the scope."""
    return is_local(call), without_scope(call)


def refuse_arguments(call: StepCall) -> Exception:
    """Return the refusal of a call whose arguments fit no form of its step."""
    kinds = ",".join(type(argument).__name__ for argument in call.arguments)
    return call.refused(f"Unable to bind to method '{call.name}', with arguments of type: ({kinds})")


class YieldedArgumentsStep(AsyncStep):
    """A function of the value and of arguments, some of which are the first results of children."""

    def __init__(self, arguments: Sequence[Any], function: Callable[[Any, list[Any]], Any]) -> None:
        self.arguments = tuple(arguments)
        self.function = function

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        columns: list[list[Any]] = []
        for argument in self.arguments:
            if isinstance(argument, Modulator):
                columns.append(await argument.values(batch, frame.run))
            else:
                columns.append([argument] * len(batch))
        function = self.function
        return [
            traverser.to(function(traverser.value, _present(traverser.value, row)))
            for traverser, row in zip(batch, zip(*columns, strict=True), strict=True)
        ]


def _present(value: Any, row: tuple[Any, ...]) -> list[Any]:
    if any(argument is MISSING for argument in row):
        raise ExecutionFailure(f"The provided traverser does not map to a value: {text_of(value)[:200]}")
    return list(row)


def step_of_arguments(compiler: Compiler, arguments: Sequence[Any], function: Callable[[Any, list[Any]], Any]) -> Step:
    """Return the step of a function of the value and of arguments, which may be traversals."""
    if any(isinstance(argument, Traversal) for argument in arguments):
        return YieldedArgumentsStep(
            [
                ChildModulator(compiler.child(argument), is_productive=False)
                if isinstance(argument, Traversal)
                else argument
                for argument in arguments
            ],
            function,
        )
    constants = list(arguments)
    return MapStep(lambda value: function(value, constants))

"""Templates: plans of texts with variables, of which only the steps that depend on their values are made anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.step import Step
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.connectives import with_connectives
from asterism.languages.gremlin.plan.instructions import check_instruction
from asterism.languages.gremlin.plan.variables import instructions_with_values
from asterism.languages.gremlin.tree import Instruction

# Names of variables with the types of their values, for values of these types; and the most of them that are kept.
_Shape = tuple[tuple[str, type], ...]
_PLAIN = frozenset({str, int, float, bool})
_SHAPES_MAX = 16


@dataclass(frozen=True, slots=True)
class _Part:
    """The steps of one call, and the instructions that it took, from `start` up to `end`."""

    start: int
    end: int
    steps: Sequence[Step]
    # True if a variable is in the instructions of the call, or behind them: calls look ahead, as `V()` does at `has`.
    depends_on_values: bool


class Template:
    """The parts of a compiled traversal. A call gives the same kind of steps whatever the values of its variables are;
    where it does not, `pipeline` returns None and the traversal is compiled as a whole."""

    __slots__ = ("_checked", "_instructions", "_parts")

    def __init__(self, instructions: tuple[Instruction, ...], parts: Sequence[_Part]) -> None:
        self._instructions = instructions
        self._parts = parts
        # Names and types of values whose instructions were checked: others of the same types fit as well.
        self._checked: set[_Shape] = set()

    def pipeline(self, values: Mapping[str, Any], compiler: Compiler) -> Pipeline | None:
        """Return the pipeline for some values."""
        steps: list[Step] = []
        bound = instructions_with_values(self._instructions, values)
        shape = _shape(values)
        is_checked = shape in self._checked
        for part in self._parts:
            if not part.depends_on_values:
                steps += part.steps
                continue
            if not is_checked:
                for instruction in bound[part.start : part.end]:
                    check_instruction(instruction)
            made, left = compiler.next_steps(bound[part.start :], is_start=part.start == 0)
            if len(left) != len(bound) - part.end:
                return None
            steps += made
        if shape is not None and not is_checked and len(self._checked) < _SHAPES_MAX:
            self._checked.add(shape)
        return Pipeline(steps)


def _shape(values: Mapping[str, Any]) -> _Shape | None:
    """Return the types of values by their names; None if some are not plain: types of their members would count too."""
    shape = tuple([(name, type(value)) for name, value in values.items()])
    return shape if all(kind in _PLAIN for _, kind in shape) else None


def make_template(
    instructions: tuple[Instruction, ...], values: Mapping[str, Any], compiler: Compiler
) -> tuple[Template | None, Pipeline]:
    """Compile a traversal for some values; return its template too, if it can have one."""
    bound = instructions_with_values(instructions, values)
    if with_connectives(bound, is_start=True) != bound:
        return None, Pipeline(compiler.steps(bound, is_start=True))
    parts: list[_Part] = []
    steps: list[Step] = []
    rest = bound
    while rest:
        made, left = compiler.next_steps(rest, is_start=not steps)
        start, end = len(bound) - len(rest), len(bound) - len(left)
        parts.append(_Part(start, end, made, bound[start:] != instructions[start:]))
        steps += made
        rest = left
    return Template(instructions, parts), Pipeline(steps)

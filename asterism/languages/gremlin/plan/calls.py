"""Calls of steps: an instruction with the modulators that follow it, as the makers of steps get them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.tree import Instruction

if TYPE_CHECKING:
    from asterism.languages.gremlin.engine.step import Step
    from asterism.languages.gremlin.plan.compiler import Compiler

# Instructions that change the step before them instead of being one.
MODULATORS = frozenset({"by", "option", "from", "to", "with", "emit", "until", "times", "read", "write"})
# `to` with a direction is a step of its own.
_DIRECTION = "Direction"


@dataclass(slots=True)
class StepCall:
    """A step to be made: its instruction, its modulators in their order, and the rest of the chain behind them.

    A maker that takes further instructions into its step, as `V()` does with `has` behind it, says so in `consumed`.
    """

    instruction: Instruction
    modulators: tuple[Instruction, ...] = ()
    following: tuple[Instruction, ...] = ()
    consumed: int = field(default=0)
    # The first step of the whole traversal: it gets one traverser without a value.
    is_start: bool = False
    # The first step of a child: it gets the traversers of the child's parent.
    is_first_of_child: bool = False

    @property
    def name(self) -> str:
        return self.instruction.name

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.instruction.arguments

    def modulators_named(self, name: str) -> list[Instruction]:
        return [modulator for modulator in self.modulators if modulator.name == name]

    def refused(self, sentence: str) -> CompileFailure:
        """Return a refusal of this call, for the maker to raise."""
        return CompileFailure(sentence, line=self.instruction.line, column=self.instruction.column)


Maker = Callable[[StepCall, "Compiler"], "Step | Sequence[Step]"]


def next_call(instructions: Sequence[Instruction]) -> StepCall:
    """Return the first call of a chain. `emit`, `until` and `times` before a `repeat` modulate it too, as `emit-first`
    and so on."""
    place = 0
    while place < len(instructions) and instructions[place].name in ("emit", "until", "times"):
        place += 1
    before: tuple[Instruction, ...] = ()
    if place and place < len(instructions) and instructions[place].name == "repeat":
        before = tuple(
            Instruction(f"{modulator.name}-first", modulator.arguments, modulator.line, modulator.column)
            for modulator in instructions[:place]
        )
    else:
        place = 0
    end = place + 1
    while end < len(instructions) and is_modulator(instructions[end], instructions[place].name):
        # `emit().repeat()` behind a repeat belongs to the repeat that follows.
        is_of_next = instructions[end].name in ("emit", "until", "times") and _leads_to_repeat(instructions, end)
        if is_of_next and _has_end(instructions[place + 1 : end], before):
            break
        end += 1
    return StepCall(instructions[place], before + tuple(instructions[place + 1 : end]), tuple(instructions[end:]))


def is_modulator(instruction: Instruction, step_name: str) -> bool:
    """Return whether an instruction modulates the step before it."""
    if instruction.name not in MODULATORS:
        return False
    if instruction.name == "to" and instruction.arguments:
        return getattr(instruction.arguments[0], "kind", None) != _DIRECTION
    return instruction.name not in ("emit", "until", "times") or step_name == "repeat"


def _leads_to_repeat(instructions: Sequence[Instruction], place: int) -> bool:
    while place < len(instructions) and instructions[place].name in ("emit", "until", "times"):
        place += 1
    return place < len(instructions) and instructions[place].name == "repeat"


def _has_end(modulators: Sequence[Instruction], before: Sequence[Instruction]) -> bool:
    ends = {"until", "times", "until-first", "times-first"}
    return any(modulator.name in ends for modulator in (*before, *modulators))

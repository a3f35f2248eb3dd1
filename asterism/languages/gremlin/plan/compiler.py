"""The compiler: a traversal becomes a pipeline of steps, its children with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from asterism.languages.gremlin.engine.modulators import Modulator, modulator_of
from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.step import Step
from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.plan.calls import Maker, StepCall, next_call
from asterism.languages.gremlin.plan.connectives import with_connectives
from asterism.languages.gremlin.plan.settings import SourceSettings
from asterism.languages.gremlin.tree import T_ID, T_LABEL, Instruction, Lambda, Traversal

Dialect = Literal["cosmos", "tinkerpop"]


class Compiler:
    """Makes the steps of one traversal. `table` has a maker for every step name."""

    def __init__(
        self,
        table: Mapping[str, Maker],
        *,
        dialect: Dialect = "tinkerpop",
        key_name: str | None = None,
        settings: SourceSettings | None = None,
    ) -> None:
        self._table = table
        # In the service's dialect the texts 'id' and 'label' stand for T.id and T.label.
        self.dialect: Dialect = dialect
        # The partition key of the graph; None for a graph without partitions.
        self.key_name = key_name
        self.settings = settings or SourceSettings()
        # False: elements among the results need not have their properties.
        self.materializes_properties = True
        # Set by makers of steps that need labels on the path of traversers, but not all of its places.
        self.needs_labels = self.settings.tracks_path
        # Set by makers of steps that change the graph.
        self.writes = False
        # The calls whose makers are at work, the nearest last: those that a child is compiled for.
        self.parents: list[StepCall] = []

    @property
    def needs_path(self) -> bool:
        """The need of traversers to have a path. Makers of steps that need every place of it set this."""
        return self.needs_labels or self.settings.needs_every_place

    @needs_path.setter
    def needs_path(self, is_needed: bool) -> None:
        self.settings.needs_every_place = is_needed

    def pipeline(self, traversal: Traversal) -> Pipeline:
        """Compile a child traversal."""
        return Pipeline(self.steps(traversal.steps))

    def root(self, traversal: Traversal) -> Pipeline:
        """Compile the traversal of a request; its source was read already (`plan/source.py`)."""
        return Pipeline(self.steps(traversal.steps, is_start=True))

    def named_steps(self, traversal: Traversal) -> list[tuple[str, Step]]:
        """Compile the traversal of a request; return its steps with the names of their calls."""
        found: list[tuple[str, Step]] = []
        rest = with_connectives(traversal.steps, is_start=True)
        while rest:
            name = next_call(rest).name
            made, rest = self.next_steps(rest, is_start=not found)
            found += [(name, step) for step in made]
        return found

    def steps(self, instructions: Sequence[Instruction], *, is_start: bool = False) -> list[Step]:
        """Compile a chain of instructions."""
        steps: list[Step] = []
        rest = tuple(instructions)
        if self.settings.joins_connectives:
            rest = with_connectives(rest, is_start=is_start)
        while rest:
            made, rest = self.next_steps(rest, is_start=is_start and not steps, is_first=not steps)
            steps += made
        return steps

    def next_steps(
        self, instructions: tuple[Instruction, ...], *, is_start: bool, is_first: bool = False
    ) -> tuple[Sequence[Step], tuple[Instruction, ...]]:
        """Compile the first call of a chain; return its steps and the instructions behind those that it took."""
        call = next_call(instructions)
        call.is_start = is_start
        call.is_first_of_child = is_first and not is_start
        maker = self._table.get(call.name)
        if maker is None:
            raise call.refused(f"Unable to find any method '{call.name}'")
        self.parents.append(call)
        made = maker(call, self)
        self.parents.pop()
        return (made,) if isinstance(made, Step) else made, call.following[call.consumed :]

    def child(self, argument: Any) -> Pipeline:
        """Compile an argument that must be a traversal."""
        if isinstance(argument, Lambda):
            raise CompileFailure(f"Unsupported groovy language rule: 'closure' text: '{argument.text}'")
        if not isinstance(argument, Traversal):
            raise CompileFailure(f"A traversal is expected here, not {argument!r}.")
        return self.pipeline(argument)

    def key(self, argument: Any) -> Any:
        """Return the name of a property, or the token that it stands for in this dialect."""
        if self.dialect == "cosmos" and type(argument) is str:
            if argument == "id":
                return T_ID
            if argument == "label":
                return T_LABEL
        return argument

    def modulators(self, call: StepCall) -> list[Modulator]:
        """Compile the `by` modulators of a call, in their order."""
        return [self.modulator(instruction) for instruction in call.modulators_named("by")]

    def modulator(self, instruction: Instruction) -> Modulator:
        """Compile one `by`; a comparator behind its first argument is the business of `order`."""
        argument = self.key(instruction.arguments[0]) if instruction.arguments else None
        settings = self.settings
        is_known = isinstance(argument, str) and argument in settings.productive_keys
        return modulator_of(argument, child=self.child, is_productive=settings.is_productive_by and not is_known)

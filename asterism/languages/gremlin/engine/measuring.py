"""A run in which the work of each step is measured: its time without that of the steps before it, its results, and the
operations on the store that were its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.step import Step, only
from asterism.languages.gremlin.engine.traverser import ROOT, Batch, Traverser

Operation = TypeVar("Operation")


@dataclass(slots=True)
class StepWork(Generic[Operation]):
    """The work of one step. Traversers count once, elements as often as their bulk says."""

    name: str
    seconds: float = 0.0
    traversers: int = 0
    elements: int = 0
    operations: list[Operation] = field(default_factory=list)


class _Watch(Generic[Operation]):
    """Knows the step that is at work, and gives it the time and the operations since it began."""

    def __init__(self, monotonic: Callable[[], float], operations: Sequence[Operation]) -> None:
        self._monotonic = monotonic
        self._operations = operations
        self._given = 0
        self._since = monotonic()
        self.current: StepWork[Operation] | None = None

    def switch(self, work: StepWork[Operation] | None) -> None:
        now = self._monotonic()
        if self.current is not None:
            self.current.seconds += now - self._since
            self.current.operations += self._operations[self._given :]
        self._given = len(self._operations)
        self._since = now
        self.current = work


async def measure(
    steps: Sequence[tuple[str, Step]],
    run: Run,
    *,
    monotonic: Callable[[], float],
    operations: Sequence[Operation],
) -> list[StepWork[Operation]]:
    """Run steps with their names to the end and commit; `operations` grows while they run. The commit counts as a step
    if it does something."""
    watch = _Watch(monotonic, operations)
    works = [StepWork[Operation](name) for name, _ in steps]
    frame = Frame(run)
    source: AsyncIterator[Batch] = only([Traverser(None, path=ROOT if run.tracks_path else None)])
    for (_, step), work in zip(steps, works, strict=True):
        source = _measured(step.flow(source, frame), work, watch)
    async for batch in source:
        run.hold(len(batch))
    commit = StepWork[Operation]("commit")
    watch.switch(commit)
    await run.graph.commit()
    watch.switch(None)
    return [*works, commit] if commit.operations else works


async def _measured(
    stream: AsyncIterator[Batch], work: StepWork[Operation], watch: _Watch[Operation]
) -> AsyncIterator[Batch]:
    while True:
        caller = watch.current
        watch.switch(work)
        try:
            batch = await anext(stream, None)
        finally:
            watch.switch(caller)
        if batch is None:
            return
        work.traversers += len(batch)
        work.elements += sum(traverser.bulk for traverser in batch)
        yield batch

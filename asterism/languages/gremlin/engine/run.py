"""A run of a traversal: everything that its steps share while it lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from asterism.languages.gremlin.engine.traverser import ROOT, SPARSE_ROOT, PathNode, Traverser
from asterism.languages.gremlin.failure import MemoryExceeded, TimeExceeded
from asterism.languages.gremlin.graph.contract import GraphSession
from asterism.languages.gremlin.values.java_random import JavaRandom

# The event loop is left to others after this much work.
_TURN_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The most that one traversal may take; the settings of the door give them."""

    seconds: float = 30.0
    # Traversers, collected values and members of results that are alive at once. At about 250 bytes each a million of
    # them are the 256 MB that a traversal may have.
    values: int = 1_000_000
    loops: int = 32


DEFAULT_LIMITS = RunLimits()


@dataclass(slots=True)
class SideEffect:
    """A value that steps share by name. `operator` merges what is added to one that `withSideEffect` declared."""

    value: Any
    operator: Callable[[Any, Any], Any] | None = None
    # Whatever a step needs to go on with a value that it filled before, by the step.
    kept: dict[Any, Any] = field(default_factory=dict)


class Run:
    """The state of one traversal in progress. Steps are shared by many runs and keep nothing themselves."""

    __slots__ = (
        "_held",
        "_now",
        "_random",
        "_seeded",
        "_turn_began",
        "deadline",
        "graph",
        "is_bulked",
        "is_path_sparse",
        "limits",
        "merge_sacks",
        "sack",
        "seed",
        "side_effects",
        "started",
        "tracks_path",
    )

    def __init__(
        self,
        graph: GraphSession,
        *,
        monotonic: Callable[[], float],
        limits: RunLimits = DEFAULT_LIMITS,
        tracks_path: bool = False,
        seed: int | None = None,
    ) -> None:
        self.graph = graph
        self.limits = limits
        self.tracks_path = tracks_path
        self.side_effects: dict[str, SideEffect] = {}
        # The sack that traversers begin with, and the operator by which those of equal traversers become one (None:
        # only traversers with equal sacks are merged).
        self.sack: Any = None
        self.merge_sacks: Callable[[Any, Any], Any] | None = None
        # Paths have only the places with labels: no step asks for the others.
        self.is_path_sparse = False
        # False: merged traversers count once (`withBulk(false)`).
        self.is_bulked = True
        self._random: Random | None = None
        self.seed = seed
        self._seeded: dict[Any, JavaRandom] = {}
        self._now = monotonic
        self.started = self._turn_began = monotonic()
        self.deadline = self.started + limits.seconds
        self._held = 0

    def seconds_since_start(self) -> float:
        return self._now() - self.started

    @property
    def random(self) -> Random:
        """The chances that a traversal takes (`coin`, `shuffle`): no secrets, and repeatable with `SeedStrategy`. Made
        when they are asked for: to seed them takes longer than a point read."""
        if self._random is None:
            self._random = Random(self.seed)
        return self._random

    def random_of(self, step: Any) -> Random | JavaRandom:
        """Return the source of a step's chances. With a seed it gives the numbers that TinkerPop's step would get."""
        if self.seed is None:
            return self.random
        source = self._seeded.get(step)
        if source is None:
            source = self._seeded[step] = JavaRandom(self.seed)
        return source

    async def breathe(self) -> None:
        """Let other requests run if this one had its turn; stop a traversal that takes too long. Steps call it between
        batches, and wherever one batch may be long work."""
        now = self._now()
        if now > self.deadline:
            raise TimeExceeded(
                f"The traversal was stopped after {self.limits.seconds:g} seconds. Narrow it, or set evaluationTimeout."
            )
        if now - self._turn_began > _TURN_SECONDS:
            await asyncio.sleep(0)
            self._turn_began = self._now()

    def hold(self, count: int) -> None:
        """Count values that stay in memory (negative: that are let go). Raises MemoryExceeded above the limit."""
        self._held += count
        # Letting go never fails: it also happens while a traversal that took too much is taken down.
        if count > 0 and self._held > self.limits.values:
            raise MemoryExceeded(
                f"The traversal keeps more than {self.limits.values} values in memory. Filter or limit it earlier."
            )


def root_of(run: Run) -> PathNode | None:
    """Return the path that traversers of a run begin with."""
    if not run.tracks_path:
        return None
    return SPARSE_ROOT if run.is_path_sparse else ROOT


def new_traverser(value: Any, run: Run, origin: int = 0) -> Traverser:
    """Return a traverser without a past, as steps make it that reduce many to one value."""
    root = root_of(run)
    path = PathNode(ROOT, value) if root is ROOT else root
    return Traverser(value, 1, path, None, run.sack, origin)


class Frame:
    """One invocation of a pipeline: its run, and the number of parents (origins 0 to `segments` - 1) it runs for."""

    __slots__ = ("_held", "_identities", "finished", "run", "segments", "state")

    def __init__(self, run: Run, segments: int = 1, *, identities: Sequence[int] | None = None) -> None:
        self.run = run
        self.segments = segments
        # State that steps keep from one batch, or one round of a loop, to the next; by the step.
        self.state: dict[Any, Any] = {}
        self._identities = identities
        self._held = 0
        # Origins that need no more results: a loop need not go on for them.
        self.finished: set[int] = set()

    def hold(self, count: int) -> None:
        """Count values that stay in memory as long as this frame does."""
        self._held += count
        self.run.hold(count)

    def release(self) -> None:
        """Let go of everything that this frame and the frames within hold."""
        self.run.hold(-self._held)
        self._held = 0
        for kept in self.state.values():
            if isinstance(kept, Frame):
                kept.release()

    def identity(self, origin: int) -> int:
        """Return a number of an origin that stays the same from one round of a loop to the next."""
        return origin if self._identities is None else self._identities[origin]

    def inner(self, key: Any, origins: Sequence[int] | None = None) -> Frame:
        """Return the frame of a child that sees the traversers of this one as a stream, by a key for the child.

        With `origins` the child runs for these origins of this frame, numbered anew. It keeps its state from call to
        call.
        """
        identities = self._identities if origins is None else [self.identity(origin) for origin in origins]
        segments = self.segments if origins is None else len(origins)
        frame = self.state.get(key)
        if frame is None:
            frame = self.state[key] = Frame(self.run, segments, identities=identities)
        else:
            frame.segments, frame._identities = segments, identities
        return frame

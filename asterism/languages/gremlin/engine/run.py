"""A run of a traversal: everything that its steps share while it lasts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from asterism.languages.gremlin.failure import MemoryExceeded, TimeExceeded
from asterism.languages.gremlin.graph.contract import GraphSession

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


class Run:
    """The state of one traversal in progress. Steps are shared by many runs and keep nothing themselves."""

    __slots__ = (
        "_held",
        "_now",
        "_turn_began",
        "deadline",
        "graph",
        "is_bulked",
        "limits",
        "merge_sacks",
        "random",
        "sack",
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
        # False: merged traversers count once (`withBulk(false)`).
        self.is_bulked = True
        # Chances that a traversal takes (`coin`, `sample`) are no secrets; `SeedStrategy` makes them repeatable.
        self.random = random.Random(seed)
        self._now = monotonic
        self.started = self._turn_began = monotonic()
        self.deadline = self.started + limits.seconds
        self._held = 0

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
        if self._held > self.limits.values:
            raise MemoryExceeded(
                f"The traversal keeps more than {self.limits.values} values in memory. Filter or limit it earlier."
            )


@dataclass(slots=True)
class Frame:
    """One invocation of a pipeline: its run, and the number of parents (origins 0 to `segments` - 1) it runs for."""

    run: Run
    segments: int = 1
    # Counts of steps that stop early or keep state between batches, by the step, where `flow` cannot keep them.
    state: dict[Any, Any] = field(default_factory=dict)

"""The conditions of one simulation, drawn from its seed: its size, its latencies, and the frequency of faults.

Each seed has conditions of its own, and many have only some kinds of faults: one that happens all the time hides the
bugs that another would show.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random


class SorePoint(Enum):
    NONE = "none"
    # Changes of fences, and the making of partitions.
    FENCES = "fences"
    # Changes of the catalog, and those among them that change a map.
    CATALOG = "catalog"
    MAPS = "maps"


@dataclass(frozen=True, slots=True)
class Weather:
    """Shares are probabilities of one call; times are virtual seconds."""

    nodes: int
    gateways: int
    clients: int
    operations_per_client: int
    logical_partitions: int
    operator_actions: int
    # True if one process has the store to itself, as a server with a data directory has.
    is_alone: bool
    # True if reads return without suspending, as those of the embedded store do.
    reads_are_inline: bool
    latency_seconds_max: float
    # The time until a process is notified of a change of the catalog.
    notice_seconds_max: float
    # A call that takes much longer than others, and by how much.
    slow_share: float
    slow_seconds_max: float
    # Calls that fail: without an effect, with one that the caller does not hear of, or with one that comes later.
    failure_share: float
    # A process dies at one of its calls.
    crash_share: float
    # The kind of calls to which both happen much more often: a job that fails at every point never gets to the last.
    sore_point: SorePoint
    # Stops of a whole process, long enough that others take it for dead, and of a node.
    pauses: int
    outages: int

    @property
    def is_fair(self) -> bool:
        """True if there are no faults, so that no request may fail."""
        return not (self.slow_share or self.failure_share or self.crash_share or self.pauses)

    @classmethod
    def draw(cls, random: Random) -> Weather:
        is_alone = random.random() < 0.15
        has_failures = not is_alone and random.random() < 0.6
        has_crashes = random.random() < 0.7
        is_slow = random.random() < 0.4
        return cls(
            nodes=1 if is_alone else random.choice((1, 2, 2, 3)),
            gateways=1 if is_alone else random.choice((2, 2, 3, 4)),
            clients=random.choice((2, 3, 5)),
            operations_per_client=random.choice((30, 60)),
            logical_partitions=random.choice((6, 12, 24)),
            operator_actions=random.choice((20, 40, 60)),
            is_alone=is_alone,
            reads_are_inline=is_alone or random.random() < 0.3,
            latency_seconds_max=random.choice((0.0005, 0.003, 0.02)),
            notice_seconds_max=random.choice((0.01, 0.5, 3.0)),
            slow_share=random.choice((0.002, 0.01)) if is_slow else 0.0,
            slow_seconds_max=random.choice((0.3, 4.0)),
            failure_share=random.choice((0.002, 0.005)) if has_failures else 0.0,
            crash_share=random.choice((0.0002, 0.001)) if has_crashes else 0.0,
            sore_point=random.choice(list(SorePoint)),
            pauses=0 if is_alone else random.choice((0, 1, 3, 5)),
            outages=random.choice((0, 1, 2)) if has_failures else 0,
        )

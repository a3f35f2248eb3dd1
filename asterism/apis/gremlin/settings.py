"""The settings of the door."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.limits import KIB, MIB, limit


@dataclass(frozen=True, slots=True)
class GremlinSettings:
    # Room for a binding as large as an item can be.
    gremlin_message_bytes_max: int = limit(4 * MIB, "The largest message of a Gremlin client.")
    # Clients in Python close the connection above it.
    gremlin_result_bytes_max: int = limit(10_000_000, "The largest single result that is sent to a Gremlin client.")
    gremlin_idle_seconds_max: int = limit(3600, "Between two messages of a Gremlin connection, as in the service.")
    gremlin_evaluation_seconds_max: int = limit(30, "The time of one traversal, as in the service.")
    gremlin_script_bytes_max: int = limit(64 * KIB, "The largest text of a traversal, as in the service.")
    gremlin_steps_max: int = limit(400, "Steps of one traversal, as in the service.")
    gremlin_loops_max: int = limit(32, "Loops of `repeat()`, as in the service.")
    gremlin_values_max: int = limit(
        1_000_000, "Traversers and collected values that one traversal keeps in memory at a time."
    )

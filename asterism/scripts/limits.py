"""What a script may use, and where each number comes from."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    # The service stops a run after five seconds; operations queued in the last of them are not accepted, so that a
    # script can answer with where to go on.
    run_seconds: float = 5.0
    accept_seconds: float = 4.0
    # A built-in that runs longer than its turn is allowed cannot be interrupted; after this its process ends.
    overrun_grace_seconds: float = 0.25
    # The event loop stands still for an answer at most this long before it turns to other work: most turns are
    # shorter, and waiting by the event loop would take several times as long as the turn.
    inline_wait_seconds: float = 0.001
    # One call of a user-defined function; a query makes many, and the event loop stands still for each.
    udf_call_seconds: float = 0.05
    memory_bytes_max: int = 64 * MIB
    # Far below the 8 MiB of a main thread, for the engine's own calls come on top.
    stack_bytes_max: int = 512 * KIB
    # The service's message limit, counted in characters as the service counts it.
    result_characters_max: int = 2 * MIB
    # One script may have this much text of operations waiting; further operations are not accepted in that turn.
    queued_characters_max: int = 8 * MIB
    # A batch holds all that one script writes. Writes beyond this are not accepted, as if they had come too late.
    # What a document's text is in bytes only the store knows: it refuses what passes its own limit all the same.
    writes_max: int = 50_000
    written_characters_max: int = 60 * MIB
    # The log travels in a response header.
    log_characters_max: int = 8 * KIB
    # Processes for stored procedures and triggers, of about 20 MB each; further runs wait this long for one.
    hosts_max: int = 4
    host_wait_seconds: float = 5.0


DEFAULT_SCRIPT_LIMITS = ScriptLimits()

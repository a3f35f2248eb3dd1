"""Limits of scripts, and the source of each number."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    # The service stops a run after five seconds; operations queued in the last of them are not accepted, so that a
    # script can answer with the point to resume from.
    run_seconds: float = 5.0
    accept_seconds: float = 4.0
    # A built-in cannot be interrupted at the end of its turn; after this much longer its process ends.
    overrun_grace_seconds: float = 0.25
    # The event loop blocks for an answer at most this long before it awaits it: most turns are shorter, and awaiting
    # would take several times as long as the turn.
    inline_wait_seconds: float = 0.001
    # One call of a user-defined function; a query makes many, and each blocks the event loop.
    udf_call_seconds: float = 0.05
    memory_bytes_max: int = 64 * MIB
    # Far below the 8 MiB of a main thread, because the engine's own calls come on top.
    stack_bytes_max: int = 512 * KIB
    # The service's message limit, counted in characters as in the service.
    result_characters_max: int = 2 * MIB
    # Text of a script's queued operations; further operations are not accepted in that turn.
    queued_characters_max: int = 8 * MIB
    # A batch holds all writes of a script. Writes beyond this are not accepted, as if they had come too late. Only the
    # store knows the size of a document in bytes, and also refuses documents above its own limit.
    writes_max: int = 50_000
    written_characters_max: int = 60 * MIB
    # The log is sent in a response header.
    log_characters_max: int = 8 * KIB
    # Processes for stored procedures and triggers, of about 20 MB each; further runs wait this long for one.
    hosts_max: int = 4
    host_wait_seconds: float = 5.0


DEFAULT_SCRIPT_LIMITS = ScriptLimits()

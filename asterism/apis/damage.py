"""How every door answers for stored data that it cannot read: 500, and a line in the log that names it."""

from __future__ import annotations

import logging

from asterism.apis.http import Request
from asterism.errors import StoredDamage

_log = logging.getLogger("asterism.damage")

_WORDS = "Stored data is damaged; the server's log names it. Restore it from a copy."


def report_damage(damage: StoredDamage) -> str:
    """Writes where the damage is, and nothing of the data, into the log; returns the sentence for the client."""
    _log.error("stored data is damaged: %s, key %s", damage.what, damage.key or "unknown")
    return _WORDS


def name_damage(damage: StoredDamage, request: Request) -> None:
    """Names the damage by the request that met it, if nothing closer to it is known."""
    # The path is the client's text: repr keeps line breaks in it from forging lines of the log.
    damage.key = damage.key or f"unknown, met by {request.method} {request.path[:512]!r}"

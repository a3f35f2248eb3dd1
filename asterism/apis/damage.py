"""The answer of every door for stored data that it cannot read: its words for 500, and a line in the log."""

from __future__ import annotations

import logging

from asterism.errors import StoredDamage

_log = logging.getLogger("asterism.damage")

_WORDS = "Stored data is damaged; the server's log names it. Restore it from a copy."


def report_damage(damage: StoredDamage) -> str:
    """Write the place of the damage, and nothing of the data, into the log; return the sentence for the client."""
    _log.error("stored data is damaged: %s, key %s", damage.what, damage.key or "unknown")
    return _WORDS


def name_damage(damage: StoredDamage, met_by: str) -> None:
    """Name the damage by the request that met it, if nothing closer to it is known."""
    damage.key = damage.key or f"unknown, met by {met_by}"

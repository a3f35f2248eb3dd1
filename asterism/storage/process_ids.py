"""Processes of this machine by their ids."""

from __future__ import annotations

import os
from typing import Final

# The workers of a server that was killed have its locks until they have answered their requests, for at most so long.
ENDING_SECONDS_MAX: Final = 20.0


def has_ended(process: str) -> bool:
    """Return True if no process has this id, written in digits. Those of other containers are not seen."""
    if not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        # It is another user's.
        return False
    return False

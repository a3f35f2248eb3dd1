"""Locks of the operating system on whole files, which it releases when their process ends."""

from __future__ import annotations

import fcntl


def try_lock(handle: int, kind: int) -> bool:
    """Take a lock (`fcntl.LOCK_EX` or `LOCK_SH`), or change the held one; False if another process forbids it."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""The C library's allocator, set for buffers of some megabytes that come and go.

By default it returns the end of its heap to the system whenever 128 KiB are free there, and asks for large blocks one
by one: buffers of uploads, and the pages of a transaction of LMDB, are then given back and faulted in again many times
a second. An upload of 1 GB took 2.5 s on the development machine before, and 1.8 s with these settings.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

from asterism.limits import MIB

# Numbers of <malloc.h>.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3

# Of free memory at the end of the heap; what eight uploads have at once, and a transaction with their parts.
_KEPT_BYTES: Final = 32 * MIB
# Larger blocks are the system's own, and go back to it when they are freed.
_BLOCK_BYTES: Final = 4 * MIB


def keep_freed_memory() -> None:
    """Keep memory that was freed for the next buffers, where the C library is the one of GNU."""
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    mallopt(_M_MMAP_THRESHOLD, _BLOCK_BYTES)

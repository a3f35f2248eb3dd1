"""Bulk reads without a growing process: pages of the data file that were read are given back to the page cache.

LMDB maps its file, so every page that is read counts as memory of the process until the system is short of it: after a
download of a gigabyte the process seems to hold a gigabyte. The pages stay in the system's cache, from where they are
mapped again, without the disk, when they are next read.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from asterism.limits import KIB, MIB

# Smaller values are those of ordinary reads, which are worth keeping mapped.
BULK_VALUE_BYTES_MIN: Final = 64 * KIB
# Mapping the pages again costs some hundred nanoseconds for 64 KiB, so this may happen often.
MAPPED_BYTES_MAX: Final = 64 * MIB

# Of Linux: the pages of a shared mapping of a file are unmapped, and nothing of the file is lost.
_MADV_DONTNEED: Final = 4
_MAPS: Final = Path("/proc/self/maps")


class ResidentPages:
    """Count bulk reads of a mapped file, and unmap its pages after every `mapped_bytes_max` of them."""

    def __init__(self, file: Path, *, mapped_bytes_max: int = MAPPED_BYTES_MAX) -> None:
        self._file = file
        self._mapped_bytes_max = mapped_bytes_max
        self._read_bytes = 0
        self._advise = _find_madvise()

    def count(self, size_bytes: int) -> None:
        """Count the bytes of a bulk value that was read."""
        self._read_bytes += size_bytes
        if self._read_bytes >= self._mapped_bytes_max:
            self._read_bytes = 0
            self.release()

    def release(self) -> None:
        """Unmap the pages of the file, where the system allows it; callers may be reading it."""
        if self._advise is None:
            return
        size_bytes = self._file.stat().st_size
        for start, end in _mappings_of(self._file):
            self._advise(start, min(end - start, size_bytes), _MADV_DONTNEED)


def _find_madvise() -> Callable[[int, int, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        madvise = ctypes.CDLL(None, use_errno=True).madvise
    except (OSError, AttributeError):
        return None
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    madvise.restype = ctypes.c_int
    return madvise


def _mappings_of(file: Path) -> list[tuple[int, int]]:
    """Return the addresses of the process's mappings of a file: another environment may have replaced the first."""
    name = str(file.resolve())
    found = []
    for line in _MAPS.read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5] == name and "s" in fields[1]:
            start, _, end = fields[0].partition("-")
            found.append((int(start, 16), int(end, 16)))
    return found

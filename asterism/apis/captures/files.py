"""The place of captured lines: a promise that the data directory and a server in memory keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

# Of a piece of a stored capture, as it is read back.
PIECE_BYTES: int = 256 * 1024


class CaptureFiles(Protocol):
    """Lines by the id of their capture. Calls may block on a disk, and may come from any thread, one at a time for
    each capture of a process. Every process appends to a part of its own; reading joins the parts of all."""

    def append(self, capture_id: str, lines: Sequence[bytes], *, first: bytes, bytes_max: int) -> int:
        """Append as many of the lines as leave all parts of the capture together within `bytes_max`; return how many.

        `first` goes before them if they begin the part of this process. OSError says that they cannot be written; the
        last of them may then be cut off."""
        ...

    def size_bytes(self, capture_id: str) -> int: ...

    def pieces(self, capture_id: str) -> Iterator[bytes]:
        """Yield the content of all parts, one after the other; the last line of each may be cut off, and has an end."""
        ...

    def remove(self, capture_id: str) -> None: ...

    def capture_ids(self) -> list[str]: ...


def fitting(lines: Sequence[bytes], *, bytes_left: int) -> int:
    """Return how many of the lines have room."""
    for count, line in enumerate(lines):
        bytes_left -= len(line)
        if bytes_left < 0:
            return count
    return len(lines)


class MemoryFiles:
    """Captures of a server that keeps nothing: they end with it."""

    def __init__(self) -> None:
        self._parts: dict[str, bytearray] = {}

    def append(self, capture_id: str, lines: Sequence[bytes], *, first: bytes, bytes_max: int) -> int:
        part = self._parts.setdefault(capture_id, bytearray())
        if not part:
            part += first
        count = fitting(lines, bytes_left=bytes_max - len(part))
        part += b"".join(lines[:count])
        return count

    def size_bytes(self, capture_id: str) -> int:
        return len(self._parts.get(capture_id, b""))

    def pieces(self, capture_id: str) -> Iterator[bytes]:
        whole = bytes(self._parts.get(capture_id, b""))
        for start in range(0, len(whole), PIECE_BYTES):
            yield whole[start : start + PIECE_BYTES]

    def remove(self, capture_id: str) -> None:
        self._parts.pop(capture_id, None)

    def capture_ids(self) -> list[str]:
        return list(self._parts)

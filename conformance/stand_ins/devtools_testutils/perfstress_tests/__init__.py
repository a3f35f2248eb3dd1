"""Streams of the vendor's load tests, which some functional tests use as well."""

from __future__ import annotations

import io
import os


def get_random_bytes(size: int) -> bytes:
    return os.urandom(size)


class RandomStream(io.BytesIO):
    def __init__(self, length: int, initial_buffer_length: int | None = None) -> None:
        del initial_buffer_length
        super().__init__(os.urandom(length))
        self.length = length

    def __len__(self) -> int:
        return self.length - self.tell()

    def remaining(self) -> int:
        return len(self)


AsyncRandomStream = RandomStream


class WriteStream:
    """Takes what it is given, and keeps only how much it was."""

    def __init__(self) -> None:
        self.position = 0

    def write(self, content: bytes) -> int:
        self.position += len(content)
        return len(content)

    def seek(self, position: int) -> None:
        self.position = position

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def reset(self) -> None:
        self.position = 0


class PerfStressTest:
    """Only subclassed, never run."""

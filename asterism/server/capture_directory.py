"""Captures in the data directory: a folder for each, and in it a file for each process that has captured.

Only the owner of the data directory can read them. A process begins a new file whenever it starts, so that a line that
a crash has cut off is the last of its file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from asterism.apis.captures.files import PIECE_BYTES, fitting

_SUFFIX = ".jsonl"


class CaptureDirectory:
    """An implementation of `apis.captures.files.CaptureFiles`."""

    def __init__(self, folder: Path, *, part: str) -> None:
        """`part` names the files of this process, which no other process and no other start of it may use."""
        self._folder = folder
        self._part = part

    def append(self, capture_id: str, lines: Sequence[bytes], *, first: bytes, bytes_max: int) -> int:
        folder = self._folder / capture_id
        # One by one: `parents` would let other users into the outer one.
        for made in (self._folder, folder):
            made.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(
            folder / f"{self._part}{_SUFFIX}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, mode=0o600
        )
        try:
            is_new = os.fstat(handle).st_size == 0
            head = first if is_new else b""
            count = fitting(lines, bytes_left=bytes_max - self.size_bytes(capture_id) - len(head))
            _write(handle, head + b"".join(lines[:count]))
        finally:
            os.close(handle)
        return count

    def size_bytes(self, capture_id: str) -> int:
        return sum(path.stat().st_size for path in self._files(capture_id))

    def pieces(self, capture_id: str) -> Iterator[bytes]:
        for path in self._files(capture_id):
            with path.open("rb") as file:
                piece = ending = b""
                while piece := file.read(PIECE_BYTES):
                    ending = piece[-1:]
                    yield piece
            # The next file's first line must not become a part of a line that was cut off.
            if ending not in (b"", b"\n"):
                yield b"\n"

    def remove(self, capture_id: str) -> None:
        shutil.rmtree(self._folder / capture_id, ignore_errors=True)

    def capture_ids(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        return [path.name for path in self._folder.iterdir() if path.is_dir()]

    def _files(self, capture_id: str) -> list[Path]:
        return sorted((self._folder / capture_id).glob(f"*{_SUFFIX}"))


def _write(handle: int, content: bytes) -> None:
    """Write all of it: a disk that becomes full takes a part, and refuses the rest."""
    while content:
        content = content[os.write(handle, content) :]

"""The sources of `asterism advise`: items and requests, from files or from a running server."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from asterism.advisor.captured_request import BadLine, CapturedRequest, CaptureHeader, read_capture
from asterism.advisor.keys.candidate import CandidateKey
from asterism.advisor.keys.item_lines import BadLines, read_items
from asterism.advisor.keys.item_profile import ItemProfile
from asterism.cli.failure import CommandFailed


@dataclass(slots=True)
class RequestLog:
    """Captured requests, and what is known of the capture."""

    requests: list[CapturedRequest] = field(default_factory=list)
    # The part of all requests that was captured.
    sampling: float = 1.0
    has_digests: bool = False
    bad: BadLines = field(default_factory=BadLines)
    is_torn: bool = False

    @classmethod
    def read(cls, lines: Iterable[bytes]) -> RequestLog:
        log = cls()
        for entry in read_capture(lines):
            match entry:
                case CapturedRequest():
                    log.requests.append(entry)
                case CaptureHeader():
                    log.sampling = entry.sampling
                    log.has_digests = entry.values == "digests"
                case BadLine():
                    log.bad.add(entry)
                    log.is_torn = entry.is_torn
        return log


class Source(Protocol):
    """A source of items and requests."""

    # Of the container as it is: its key, and its throughput; None where that is not known.
    present: CandidateKey | None
    ru_per_second: int | None
    is_autoscale: bool
    # Physical ones; None where that is not known.
    partitions: int | None
    # Lines of the items that were passed over.
    bad_items: BadLines

    def items(self, on_bytes: Callable[[int], None]) -> Iterator[tuple[Mapping[str, Any], int]]:
        """Yield each item with the size of its text; may be called again. `on_bytes` is told what was read."""
        ...

    @property
    def total(self) -> int | None:
        """The bytes that `on_bytes` counts up to."""
        ...

    def log(self) -> RequestLog: ...

    def salt(self) -> bytes | None:
        """Return the key of the digests in the log, if it is known."""
        ...


class FileSource:
    """Items and requests in files of JSON lines."""

    def __init__(self, items: Path, requests: Path | None, present: CandidateKey | None) -> None:
        self._items = items
        self._requests = requests
        self.present = present
        self.ru_per_second: int | None = None
        self.is_autoscale = False
        self.partitions: int | None = None
        self.bad_items = BadLines()

    @property
    def total(self) -> int | None:
        try:
            return self._items.stat().st_size
        except OSError as problem:
            raise _unreadable(self._items, problem) from None

    def items(self, on_bytes: Callable[[int], None]) -> Iterator[tuple[Mapping[str, Any], int]]:
        self.bad_items = BadLines()
        try:
            with self._items.open("rb") as lines:
                for item, size in read_items(lines, self.bad_items):
                    on_bytes(size + 1)
                    yield item, size
        except OSError as problem:
            raise _unreadable(self._items, problem) from None

    def log(self) -> RequestLog:
        if self._requests is None:
            return RequestLog()
        try:
            with self._requests.open("rb") as lines:
                return RequestLog.read(lines)
        except OSError as problem:
            raise _unreadable(self._requests, problem) from None

    def salt(self) -> bytes | None:
        return None


def profile_items(source: Source, rng: random.Random) -> ItemProfile:
    """Return the profile of all items; show how far the reading is."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn

    from asterism.cli.progress import progress_bars

    profile = ItemProfile(rng)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with progress_bars(*columns) as progress:
        bar = progress.add_task("Reading items", total=source.total)
        read = 0

        def on_bytes(count: int) -> None:
            nonlocal read
            read += count
            # Drawing costs more than reading a line.
            if read >= _BYTES_BETWEEN_DRAWINGS:
                progress.advance(bar, read)
                read = 0

        for item, size in source.items(on_bytes):
            profile.feed(item, size)
    return profile


_BYTES_BETWEEN_DRAWINGS = 4 * 1024 * 1024


def _unreadable(path: Path, problem: OSError) -> CommandFailed:
    return CommandFailed(f"{path} cannot be read: {problem.strerror or problem}")

"""The most memory that a process has while something runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.02


@dataclass
class MemoryPeak:
    """Resident memory includes pages of mapped files, which the system takes back when it needs them."""

    resident_mb: float = 0.0
    anonymous_mb: float = 0.0

    def sample(self, pid: int) -> None:
        resident, anonymous = read_memory_mb(pid)
        self.resident_mb = max(self.resident_mb, resident)
        self.anonymous_mb = max(self.anonymous_mb, anonymous)


def read_memory_mb(pid: int) -> tuple[float, float]:
    """Return resident and anonymous memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    resident, anonymous = (int(fields[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "RssAnon"))
    return resident, anonymous


@contextmanager
def watching_memory(pid: int) -> Iterator[MemoryPeak]:
    peak, ended = MemoryPeak(), threading.Event()

    def watch() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            peak.sample(pid)

    thread = threading.Thread(target=watch, daemon=True)
    peak.sample(pid)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()

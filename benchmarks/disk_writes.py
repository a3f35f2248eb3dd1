"""The bytes that a process writes to disk, counted in three places, because none of them is right everywhere."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

# A process counts as quiet after this long without a write. Engines put work off: the log of the LMDB engine is folded
# into its tree after 5 seconds at the latest.
QUIET_SECONDS = 6.0
# A process that is never quiet is read all the same: then the figure is a little too low.
QUIET_SECONDS_MAX = 20.0
POLL_SECONDS = 0.1
# The unit of the kernel's statistics of block devices, whatever the sectors of the device are.
SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class WrittenBytes:
    """Counters since the start of a process, or their growth.

    `calls`: bytes that it gave to calls that write, sockets included. A block that is written in part counts in part.
    `pages`: bytes of clean pages that it made dirty (`write_bytes`). Kernels with large pages in their cache, such as
    6.18 with ext4, count a whole large page where 4 KB of it are written: five times too many for LMDB.
    `device`: bytes that the device of the store has written, for all programs; 0 if it has no statistics.
    """

    calls: int
    pages: int
    device: int

    def since(self, before: WrittenBytes) -> WrittenBytes:
        return WrittenBytes(self.calls - before.calls, self.pages - before.pages, self.device - before.device)


def read_written(process_id: int, store: Path) -> WrittenBytes:
    calls, pages = parse_process_io(Path(f"/proc/{process_id}/io").read_text())
    return WrittenBytes(calls, pages, device_bytes(store))


def parse_process_io(text: str) -> tuple[int, int]:
    """Return the bytes given to calls that write, and those of pages made dirty."""
    counters = dict(line.split(": ") for line in text.splitlines())
    return int(counters["wchar"]), int(counters["write_bytes"])


def device_bytes(store: Path) -> int:
    device = store.stat().st_dev
    try:
        statistics = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text()
    except OSError:
        return 0
    # The seventh field.
    return int(statistics.split()[6]) * SECTOR_BYTES


async def read_written_when_quiet(process_id: int, store: Path) -> WrittenBytes:
    """Wait until the process writes nothing more, so that the work behind its answers is counted too."""
    started_at = quiet_since = time.monotonic()
    found = read_written(process_id, store)
    while True:
        await asyncio.sleep(POLL_SECONDS)
        now = time.monotonic()
        before, found = found, read_written(process_id, store)
        if found.pages != before.pages:
            quiet_since = now
        if now - quiet_since >= QUIET_SECONDS or now - started_at >= QUIET_SECONDS_MAX:
            return found

"""The counters of bytes that a process writes."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.disk_writes import WrittenBytes, parse_process_io, read_written

# Of a process on Linux 6.18.
PROCESS_IO = """rchar: 1948
wchar: 4100
syscr: 7
syscw: 3
read_bytes: 0
write_bytes: 69632
cancelled_write_bytes: 4096
"""


def test_bytes_of_calls_and_of_pages_are_found_by_name() -> None:
    assert parse_process_io(PROCESS_IO) == (4100, 69632)


def test_growth_is_counted_from_an_earlier_reading() -> None:
    assert WrittenBytes(10, 20, 30).since(WrittenBytes(1, 2, 3)) == WrittenBytes(9, 18, 27)


def test_bytes_that_this_process_writes_are_counted(tmp_path: Path) -> None:
    before = read_written(os.getpid(), tmp_path)
    (tmp_path / "file").write_bytes(bytes(100_000))
    assert read_written(os.getpid(), tmp_path).since(before).calls >= 100_000

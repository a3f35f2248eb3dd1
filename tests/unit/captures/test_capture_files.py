"""The places of captured lines keep one promise, in memory and on disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from asterism.advisor.captured_request import BadLine, CapturedRequest, CaptureHeader, read_capture
from asterism.apis.captures.files import CaptureFiles, MemoryFiles
from asterism.server.capture_directory import CaptureDirectory

FIRST = CaptureHeader().to_json()
LINES = [CapturedRequest(at=float(number), operation="read").to_json() for number in range(10)]
PLENTY = 1_000_000

Place = Callable[[Path], CaptureFiles]
PLACES = {"memory": lambda _: MemoryFiles(), "disk": lambda folder: CaptureDirectory(folder / "captures", part="p")}


@pytest.fixture(params=list(PLACES))
def files(request: pytest.FixtureRequest, tmp_path: Path) -> CaptureFiles:
    place: Place = PLACES[request.param]
    return place(tmp_path)


def content(files: CaptureFiles, capture_id: str = "c") -> bytes:
    return b"".join(files.pieces(capture_id))


def test_lines_are_appended_behind_one_first_line(files: CaptureFiles) -> None:
    assert files.append("c", LINES[:2], first=FIRST, bytes_max=PLENTY) == 2
    assert files.append("c", LINES[2:3], first=FIRST, bytes_max=PLENTY) == 1
    assert content(files) == b"".join([FIRST, *LINES[:3]])
    assert files.size_bytes("c") == len(content(files))


def test_no_more_lines_are_written_than_fit(files: CaptureFiles) -> None:
    bytes_max = len(FIRST) + sum(map(len, LINES[:4])) + 1
    assert files.append("c", LINES, first=FIRST, bytes_max=bytes_max) == 4
    assert files.append("c", LINES, first=FIRST, bytes_max=bytes_max) == 0
    assert files.size_bytes("c") <= bytes_max


def test_captures_are_apart_and_are_removed_one_by_one(files: CaptureFiles) -> None:
    for capture_id in ("c", "d"):
        files.append(capture_id, LINES[:1], first=FIRST, bytes_max=PLENTY)
    files.remove("c")
    files.remove("never there")
    assert files.capture_ids() == ["d"]
    assert (content(files, "c"), files.size_bytes("c")) == (b"", 0)
    assert content(files, "d") == FIRST + LINES[0]


def test_a_place_without_captures_has_none(files: CaptureFiles) -> None:
    assert files.capture_ids() == []


# --- on disk ----------------------------------------------------------------------------------------------------------


def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    umask = os.umask(0)
    try:
        CaptureDirectory(tmp_path / "captures", part="p").append("c", LINES, first=FIRST, bytes_max=PLENTY)
    finally:
        os.umask(umask)
    found = [tmp_path / "captures", tmp_path / "captures" / "c", tmp_path / "captures" / "c" / "p.jsonl"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in found] == [0o700, 0o700, 0o600]


def test_the_parts_of_all_processes_are_joined_and_share_the_limit(tmp_path: Path) -> None:
    parts = [CaptureDirectory(tmp_path / "captures", part=part) for part in ("a", "b")]
    bytes_max = 2 * len(FIRST) + sum(map(len, LINES[:5]))
    assert parts[0].append("c", LINES[:3], first=FIRST, bytes_max=bytes_max) == 3
    assert parts[1].append("c", LINES[3:], first=FIRST, bytes_max=bytes_max) == 2
    assert content(parts[0]) == b"".join([FIRST, *LINES[:3], FIRST, *LINES[3:5]])


def test_a_torn_part_spoils_nothing_but_its_last_line(tmp_path: Path) -> None:
    for part in ("a", "b"):
        CaptureDirectory(tmp_path / "captures", part=part).append("c", LINES[:2], first=FIRST, bytes_max=PLENTY)
    torn = tmp_path / "captures" / "c" / "a.jsonl"
    torn.write_bytes(torn.read_bytes()[:-10])
    found = list(read_capture(content(CaptureDirectory(tmp_path / "captures", part="c")).splitlines(keepends=True)))
    assert [type(entry) for entry in found] == [
        CaptureHeader,
        CapturedRequest,
        BadLine,
        CaptureHeader,
        CapturedRequest,
        CapturedRequest,
    ]


def test_a_folder_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "captures").write_text("in the way")
    with pytest.raises(OSError, match="captures"):
        CaptureDirectory(tmp_path / "captures", part="p").append("c", LINES, first=FIRST, bytes_max=PLENTY)

"""One server per data directory."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from asterism.server.config import StartRefused
from asterism.server.data_directory import claim_directory


def test_a_claimed_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    with claim_directory(tmp_path / "a" / "b") as directory:
        assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700


# S7 of asterism/server/DESIGN.md.
def test_a_second_claim_is_refused_and_names_the_holder(tmp_path: Path) -> None:
    with (
        claim_directory(tmp_path),
        pytest.raises(StartRefused, match=f"process {os.getpid()}"),
        claim_directory(tmp_path),
    ):
        pass


def test_a_directory_can_be_claimed_again_when_it_was_left(tmp_path: Path) -> None:
    with claim_directory(tmp_path):
        pass
    with claim_directory(tmp_path) as directory:
        assert directory.lock.read_text() == f"{os.getpid()}\n"


def test_a_directory_is_waited_for_that_workers_of_a_killed_server_have_for_a_moment(tmp_path: Path) -> None:
    killed = subprocess.Popen(["true"])
    killed.wait()
    lock = tmp_path / "server.lock"
    lock.write_text(f"{killed.pid}\n")
    worker = os.open(lock, os.O_RDONLY)
    fcntl.flock(worker, fcntl.LOCK_EX)
    threading.Timer(0.3, os.close, [worker]).start()
    with claim_directory(tmp_path):
        assert lock.read_text() == f"{os.getpid()}\n"


def test_a_place_that_cannot_be_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartRefused, match="cannot be used"), claim_directory(tmp_path / "file" / "below"):
        pass

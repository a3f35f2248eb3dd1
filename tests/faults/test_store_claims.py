"""One directory belongs to one server at a time, whichever option names it."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from asterism.storage.contract import EngineFailed
from asterism.storage.lmdb import LmdbEngine
from asterism.storage.lmdb.claim import DirectoryClaim
from tests.support.server import refused_start, running_server


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["one process", "workers"])
def test_a_store_option_is_refused_on_the_store_of_a_data_directory_in_use(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    with running_server(tmp_path / "a", *workers, embedded=True, alone=True) as server:
        output = refused_start(tmp_path / "b", "--store", f"lmdb:{tmp_path / 'a' / 'store'}")
        assert f"another server (process {server.process.pid}) is using {tmp_path / 'a' / 'store'}" in output


def test_two_servers_with_the_same_store_option_are_one_too_many(tmp_path: Path) -> None:
    store = f"lmdb:{tmp_path / 'store'}"
    with running_server(tmp_path / "a", "--store", store, "--workers", "2", alone=True):
        assert "is using" in refused_start(tmp_path / "b", "--store", store)
    # The remains of the killed server are not a claim.
    with running_server(tmp_path / "b", "--store", store, alone=True) as server:
        assert server.end()[0] == 0


def test_a_data_directory_is_refused_whose_store_another_server_has_by_an_option(tmp_path: Path) -> None:
    with running_server(tmp_path / "b", "--store", f"lmdb:{tmp_path / 'a' / 'store'}", alone=True):
        assert "is using" in refused_start(tmp_path / "a")


async def test_processes_of_one_server_share_a_claim_and_the_last_to_go_frees_it(tmp_path: Path) -> None:
    mine = f"{os.getpid()} mine"
    first, second = (DirectoryClaim(tmp_path, server=mine) for _ in range(2))
    for holder in (first, second):
        with pytest.raises(EngineFailed, match=rf"another server \(process {os.getpid()}\)"):
            LmdbEngine.open(tmp_path, server="8 theirs")
        holder.release()
    engine = LmdbEngine.open(tmp_path, server="8 theirs")
    await engine.close()
    DirectoryClaim(tmp_path, server=mine).release()


async def test_a_store_is_waited_for_that_workers_of_a_killed_server_have_for_a_moment(tmp_path: Path) -> None:
    killed = subprocess.Popen(["true"])
    killed.wait()
    worker = DirectoryClaim(tmp_path, server=f"{killed.pid} theirs")
    threading.Timer(0.3, worker.release).start()
    engine = LmdbEngine.open(tmp_path, server=f"{os.getpid()} mine")
    with pytest.raises(EngineFailed, match=rf"another server \(process {os.getpid()}\)"):
        DirectoryClaim(tmp_path, server="8 theirs")
    await engine.close()


def test_a_store_that_cannot_be_opened_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"something else" * 1000)
    with pytest.raises(EngineFailed, match="cannot be opened"):
        LmdbEngine.open(tmp_path, server="8 theirs")
    DirectoryClaim(tmp_path, server="7 mine").release()

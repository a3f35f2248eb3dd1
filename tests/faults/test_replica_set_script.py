"""scripts/replica-set.sh: a node with two standbys and a quorum, as an operator sets it up, and its fail-over."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from asterism.server.engines import open_engine
from asterism.storage.contract import Batch, Fence
from asterism.values.identifiers import Epoch, NodeNumber, partition_on
from tests.support.ports import free_ports
from tests.support.postgres import as_user, binaries, make_directory

SCRIPT = Path(__file__).parents[2] / "scripts" / "replica-set.sh"
PARTITION = partition_on(NodeNumber(1), 20)


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory of the unprivileged user's; servers that are left in it are stopped."""
    directory = make_directory()
    yield directory
    for data in directory.iterdir():
        if (data / "postmaster.pid").exists():
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    shutil.rmtree(directory)


def attempt(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{binaries()}:{os.environ['PATH']}", "LC_ALL": "C"}
    return subprocess.run([*as_user(), *words], cwd="/", env=environment, capture_output=True, text=True, timeout=180)


def run(*words: str) -> str:
    done = attempt(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def script(*words: str) -> str:
    # Read here: the unprivileged user may not be allowed to look into the project.
    return run("sh", "-c", SCRIPT.read_text(), "replica-set.sh", *words)


def test_a_quorum_of_a_standby_that_does_not_follow_is_told(home: Path) -> None:
    (port,) = free_ports(1)
    script("primary", str(home / "p"), str(port))
    ended = attempt(
        "env", "WAIT_SECONDS=1", "sh", "-c", SCRIPT.read_text(), "replica-set.sh", "quorum", str(port), "s9"
    )
    assert ended.returncode == 1
    assert ended.stderr == "replica-set.sh: the quorum is set, but no standby named s9 follows yet\n"


async def test_a_replica_set_loses_its_primary_and_nothing_that_was_acknowledged(home: Path) -> None:
    ports = free_ports(3)
    script("primary", str(home / "p"), str(ports[0]))
    for place, name in ((1, "s1"), (2, "s2")):
        script("standby", str(home / name), str(ports[place]), name, f"127.0.0.1:{ports[0]}")
    script("quorum", str(ports[0]), "s1", "s2")
    dsn = script("dsn", *(f"127.0.0.1:{port}" for port in ports)).strip()
    engine = await open_engine(dsn)
    try:
        status = await engine.status()
        assert sorted((standby.name, standby.state) for standby in status.standbys) == [
            ("s1", "quorum"),
            ("s2", "quorum"),
        ]
        await engine.create_partition(PARTITION, Fence(Epoch(1)))
        await engine.apply(PARTITION, Epoch(1), Batch(puts=[(b"k", b"before")]))
        run("pg_ctl", "-D", str(home / "p"), "-m", "immediate", "-w", "stop")
        furthest = script("furthest", *(f"127.0.0.1:{port}" for port in ports[1:])).strip()
        homes = {f"127.0.0.1:{ports[1]}": home / "s1", f"127.0.0.1:{ports[2]}": home / "s2"}
        script("promote", str(homes[furthest]))
        assert (await engine.read(PARTITION, Epoch(1), [b"k"]))[1] == [b"before"]
    finally:
        await engine.close()

"""The programs in Python that introduce a door run as they are, also a second time, when all exists."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, WELL_KNOWN_EMULATOR_KEY
from asterism.apis.door_spec import Endpoint, Surroundings
from asterism.server.doors import DOORS
from tests.support.server import WAIT_SECONDS_MAX, RunningServer, running_server

ACCOUNTS = {
    "nosql": ("asterism", WELL_KNOWN_EMULATOR_KEY),
    "table": (DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY),
    "blob": (DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY),
    "mongo": ("asterism", WELL_KNOWN_EMULATOR_KEY),
    "gremlin": ("asterism", WELL_KNOWN_EMULATOR_KEY),
    "amqp": ("asterism", "SAS_KEY_VALUE"),
}


@pytest.fixture(scope="module")
def encrypted_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("data") / "data", "--https", doors=list(ACCOUNTS)) as running:
        yield running


def program(server: RunningServer, door: str, *, is_encrypted: bool) -> str:
    (spec,) = (spec for spec in DOORS if spec.name == door)
    account, key = ACCOUNTS[door]
    endpoints = {
        name: Endpoint("127.0.0.1", port, "http", is_encrypted=is_encrypted) for name, port in server.ports.items()
    }
    surroundings = Surroundings(endpoints, is_local=True, account=account, key=key, key_is_public=True)
    assert spec.introduce is not None
    snippets = spec.introduce(spec.settings(), surroundings, account, key).snippets
    return next(snippet.code for snippet in snippets if snippet.language == "Python")


def output_of(code: str, directory: Path) -> str:
    file = directory / "first_steps.py"
    file.write_text(code, encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.mark.parametrize("door", list(ACCOUNTS))
def test_the_program_in_python_runs_twice(server: RunningServer, door: str, tmp_path: Path) -> None:
    code = program(server, door, is_encrypted=False)
    assert output_of(code, tmp_path) == "Hello from Python\n"
    assert output_of(code, tmp_path) == "Hello from Python\n"


@pytest.mark.parametrize("door", list(ACCOUNTS))
def test_the_program_in_python_runs_over_https(encrypted_server: RunningServer, door: str, tmp_path: Path) -> None:
    code = program(encrypted_server, door, is_encrypted=True)
    assert output_of(code, tmp_path) == "Hello from Python\n"

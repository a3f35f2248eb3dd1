"""Ports that tests choose for their servers."""

from __future__ import annotations

import random
import socket
import subprocess
import sys

import pytest

from tests.support import ports
from tests.support.server import PROJECT, WAIT_SECONDS_MAX

OTHER = "from tests.support import ports; ports._CANDIDATES = {}; print(*ports.free_ports(3))"


@pytest.fixture
def candidates(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Some ports that no other test asks for."""
    below = random.sample(range(10_000, 16_384), 60)
    chosen = [port for port in below if ports._is_free(port)][:6]
    monkeypatch.setattr(ports, "_CANDIDATES", chosen)
    return chosen


def test_a_port_is_given_once_in_a_process_and_in_another(candidates: list[int]) -> None:
    first, second = ports.free_ports(2), ports.free_port()
    other = subprocess.run(
        [sys.executable, "-c", OTHER.format(candidates)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=True,
    )
    assert sorted([*first, second, *map(int, other.stdout.split())]) == sorted(candidates)


def test_a_port_that_a_process_listens_on_is_not_given(candidates: list[int]) -> None:
    with socket.create_server(("127.0.0.1", candidates[0])):
        assert sorted(ports.free_ports(5)) == sorted(candidates[1:])


def test_ports_of_long_ago_are_given_again(candidates: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_kept", ports.deque())
    monkeypatch.setattr(ports, "_KEPT_MAX", 3)
    assert [ports.free_port() in candidates for _ in range(20)] == [True] * 20
    assert len(ports._kept) == 3
    while ports._kept:
        ports._give_up(ports._kept[0])

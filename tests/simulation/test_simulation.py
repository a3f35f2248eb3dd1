"""Splits, merges, moves, leaders and crashes from seeds. CONTRIBUTING.md says how to replay one that fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.simulation import Broken, simulate
from tests.simulation.weather import Weather

PROJECT = Path(__file__).resolve().parents[2]
# A few dozen with every run of the tests; `make test-all` asks for thousands.
SEEDS = int(os.environ.get("ASTERISM_SIMULATION_SEEDS") or 40)
TRACED_SEEDS = (1, 2, 3)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_rule_holds(seed: int) -> None:
    simulate(seed)


def test_a_seed_takes_the_same_steps_every_time() -> None:
    assert [simulate(seed).digest for seed in TRACED_SEEDS] == [simulate(seed).digest for seed in TRACED_SEEDS]
    assert len({simulate(seed).digest for seed in TRACED_SEEDS}) == len(TRACED_SEEDS)


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_a_seed_takes_the_same_steps_in_every_process(hash_seed: str) -> None:
    """In one whose sets have another order, too."""
    program = "import sys; from tests.simulation.simulation import simulate; print(simulate(int(sys.argv[1])).digest)"
    finished = subprocess.run(
        [sys.executable, "-c", program, str(TRACED_SEEDS[0])],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        check=True,
    )
    assert finished.stdout.strip() == simulate(TRACED_SEEDS[0]).digest


def test_a_failure_says_what_is_broken_and_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(_: object) -> Weather:
        raise ValueError("no weather today")

    monkeypatch.setattr(Weather, "draw", draw)
    with pytest.raises(Broken) as broken:
        simulate(123)
    lines = str(broken.value).splitlines()
    assert lines[0] == "seed 123: no weather today"
    assert lines[-1] == "See it again: make simulate SEED=123"

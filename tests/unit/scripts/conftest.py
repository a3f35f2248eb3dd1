"""Runtimes that the tests of a module share: starting a host takes longer than most tests do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from asterism.scripts.limits import ScriptLimits
from asterism.scripts.runtime import ScriptRuntime
from tests.unit.scripts.dict_operations import ScriptBench

LITTLE_MEMORY = ScriptLimits(run_seconds=60.0, accept_seconds=50.0, memory_bytes_max=8 * 1024 * 1024)


@pytest.fixture(scope="module")
def roomy_runtime() -> Iterator[ScriptRuntime]:
    with closing(ScriptRuntime()) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def hasty_runtime() -> Iterator[ScriptRuntime]:
    with closing(ScriptRuntime(replace(LITTLE_MEMORY, run_seconds=0.4, accept_seconds=0.2))) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def cramped_runtime() -> Iterator[ScriptRuntime]:
    with closing(ScriptRuntime(LITTLE_MEMORY)) as runtime:
        yield runtime


@pytest.fixture
def bench(roomy_runtime: ScriptRuntime) -> ScriptBench:
    return ScriptBench(roomy_runtime)


@pytest.fixture
def hasty_bench(hasty_runtime: ScriptRuntime) -> ScriptBench:
    """Provide little time and little memory, for scripts that exceed their time."""
    return ScriptBench(hasty_runtime)


@pytest.fixture
def cramped_bench(cramped_runtime: ScriptRuntime) -> ScriptBench:
    """Provide little memory, and time enough on the busiest machine."""
    return ScriptBench(cramped_runtime)

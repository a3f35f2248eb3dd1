"""Settings and markers of every test."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, settings

from tests.tiers import TIERS, tier_of

# The time that an example takes, or its making, depends on how busy the machine is, not on whether the code is right.
# The examples of a test are the same in every run, so that a run says something about what was changed; other ones are
# looked for by `make test-all`.
settings.register_profile(
    "asterism",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("ASTERISM_TEST_EXAMPLES") != "new",
)
settings.load_profile("asterism")


def pytest_configure(config: pytest.Config) -> None:
    for tier, meaning in TIERS.items():
        config.addinivalue_line("markers", f"{tier}: {meaning}")


def pytest_collection_modifyitems(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    for item in items:
        item.add_marker(tier_of(os.path.relpath(item.path, config.rootpath)))

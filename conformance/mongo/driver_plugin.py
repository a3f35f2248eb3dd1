"""A plugin for the driver's own tests, which writes a line for each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

_RESULTS = os.environ.get("ASTERISM_MONGO_RESULTS", "")


def pytest_configure(config: pytest.Config) -> None:
    config.option.asyncio_mode = config.option.asyncio_mode or "auto"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = (yield).get_result()
    if not _RESULTS or (report.when != "call" and not (report.when == "setup" and report.outcome != "passed")):
        return
    file, _, name = item.nodeid.partition("::")
    with Path(_RESULTS).open("a", encoding="utf-8") as output:
        print("all", file, name.replace("\t", " ").replace("\n", " "), report.outcome, sep="\t", file=output)

"""A plugin for the functional tests: knows this server, chooses tests by tier, and writes a line for each.

The tests know servers by name, with the capabilities that tests may require; ours is added to that table.
"""

from __future__ import annotations

import importlib
import os
import sys
import tomllib
import zlib
from pathlib import Path
from typing import Any

import pytest

# Without: oplog, search, queryable_encryption, cluster_admin and others that ask for a server's files or nodes.
CAPABILITIES = frozenset(
    {
        "change_streams",
        "transactions",
        "cluster_time",
        "cluster_read_concern",
        "quorum_write_concern",
        "reindex",
        "unforced_compact",
    }
)
ENGINE = "asterism"
_ROOT = "compatibility/tests/"
_MARKERS = (
    "engine_xfail", "engine_xcrash", "no_parallel", "admin", "index", "update", "delete", "slow", "ttl", "text_search",
    "validation", "geospatial", "collation", "replica_set",
)  # fmt: skip
_TIERS: dict[str, str] = tomllib.loads((Path(__file__).parent / "tiers.toml").read_text(encoding="utf-8"))["tiers"]
_SAMPLE = int(os.environ.get("ASTERISM_MONGO_SAMPLE", "1"))
_RESULTS = os.environ.get("ASTERISM_MONGO_RESULTS", "")


def tier_of(path: str) -> str:
    fitting = [prefix for prefix in _TIERS if path.startswith(prefix)]
    return _TIERS[max(fitting, key=len)] if fitting else "none"


def _path_of(item: pytest.Item) -> str:
    return item.nodeid.split("::", 1)[0].split(_ROOT, 1)[-1]


def _name_of(item: pytest.Item) -> str:
    """Return the id of a test without the name of the server, so that runs can be compared."""
    name = item.nodeid.split("::", 1)[-1]
    callspec = getattr(item, "callspec", None)
    target = None if callspec is None else callspec.params.get("engine_client")
    return name if target is None else name.replace(f"[{target.name}-", "[").replace(f"[{target.name}]", "")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    preconditions: Any = importlib.import_module("documentdb_tests.framework.preconditions")

    preconditions._CAPABILITIES_BY_PROFILE[ENGINE, "any"] = CAPABILITIES
    detect = preconditions._detect_topology
    preconditions._detect_topology = lambda engine, client: "any" if engine == ENGINE else detect(engine, client)
    for marker in _MARKERS:
        config.addinivalue_line("markers", f"{marker}: of the functional tests")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # The tests check the style of their own sources, which takes longer than to find them.
    conftest: Any = sys.modules.get("documentdb_tests.conftest")
    if conftest is not None:
        for check in ("validate_test_format", "validate_marker_reasons", "validate_python_files_in_tests"):
            setattr(conftest, check, lambda *_: [])
        conftest.validate_error_codes_sorted = list
        conftest.exceeds_size_limit = lambda _: False
    chosen = [item for item in items if tier_of(_path_of(item)) != "none" and _is_sampled(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def _is_sampled(item: pytest.Item) -> bool:
    return _SAMPLE == 1 or zlib.crc32(_name_of(item).encode()) % _SAMPLE == 0


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = (yield).get_result()
    if not _RESULTS or (report.when != "call" and not (report.when == "setup" and report.outcome != "passed")):
        return
    path = _path_of(item)
    with Path(_RESULTS).open("a", encoding="utf-8") as file:
        name = _name_of(item).replace("\t", " ").replace("\n", " ")
        print(tier_of(path), path, name, report.outcome, sep="\t", file=file)

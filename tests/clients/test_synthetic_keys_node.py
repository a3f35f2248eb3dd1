"""Containers with a synthetic partition key, as the official client for JavaScript uses them (synthetic_keys.js)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.support.server import PROJECT, WAIT_SECONDS_MAX, RunningServer, environment

SCRIPT = Path(__file__).with_name("synthetic_keys.js")
# Installed by the Makefile.
NODE_MODULES = PROJECT / ".venv" / "node" / "node_modules"

Seen = dict[str, Any]


@pytest.fixture(scope="module")
def seen(server: RunningServer) -> Seen:
    """Run the script; return the observations of its client, by section."""
    node = shutil.which("node")
    if node is None or not (NODE_MODULES / "@azure" / "cosmos").is_dir():
        pytest.skip("needs Node.js and its client, which `make test` installs")
    done = subprocess.run(
        [node, str(SCRIPT), server.endpoint, WELL_KNOWN_EMULATOR_KEY, f"synthetic-node-{uuid.uuid4()}"],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
        env={**environment(), "NODE_PATH": os.fspath(NODE_MODULES)},
    )
    assert done.returncode == 0, done.stderr
    sections: Seen = json.loads(done.stdout)
    return sections


def test_a_rule_in_the_partition_key_is_kept_and_read_back(seen: Seen) -> None:
    suffix = {"kind": "hash", "path": "/vin", "count": 50, "separator": "."}
    rule = {"parts": ["/date"], "separator": "-", "suffix": suffix, "missing": "refuse"}
    assert seen["declaration"] == {"synthetic": {"/pk": rule}, "refused": 400}


def test_plain_items_are_written_and_found_by_key_and_by_sources(seen: Seen) -> None:
    assert seen["singleItems"] == {
        "created": "abc-2018",
        "upserted": ["abc-2018", 200],
        "read": [2, 2],
        "readCharges": [1, 1],
        # The client remembers the key of the item that it sent, which had none.
        "throughAnswer": 404,
        "replaced": ["abc-2018", 3],
        "moved": 400,
        "patched": 4,
        "again": 409,
        "deleted": 204,
        "missing": 404,
    }


def test_queries_that_fix_the_sources_need_no_key(seen: Seen) -> None:
    assert seen["queries"] == {
        "fixed": ["7"],
        "ofDay": 30,
        "isOrdered": True,
        "counted": [30],
        "withSources": ["8"],
        "all": 60,
    }


def test_a_batch_names_its_key_or_the_sources_and_fills_its_items(seen: Seen) -> None:
    batches = seen["batches"]
    assert (batches["statuses"], batches["keys"], batches["later"]) == ([201, 201, 201], 1, [200, 204])
    assert "doesn't match partition key field values" in batches["foreign"]


def test_bulk_operations_reach_partitions_other_than_the_client_sends_them_to(seen: Seen) -> None:
    assert seen["bulk"] == {
        "ranges": 4,
        "created": [201],
        "upserted": [200],
        "items": 100,
        "changed": True,
        "keys": True,
        "read": [200],
        "older": [200],
        "removed": [204],
        "left": 0,
    }


def test_the_count_of_suffixes_is_raised_by_a_replaced_container_and_not_lowered(seen: Seen) -> None:
    raised = seen["moreSuffixes"]
    assert (raised["suffix"]["count"], raised["suffix"]["earlierCounts"]) == (80, [50])
    assert raised["reads"] == [200]
    status, message = raised["lowered"]
    assert status == 400
    assert message.startswith("The 'count' of a suffix cannot be lowered from 80 to 10")

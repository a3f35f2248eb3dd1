"""Queues, sessions and hubs as the official clients for JavaScript use them (messaging.js)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.clients.amqp_door import arm
from tests.clients.messaging_server import MessagingServer
from tests.support.server import PROJECT, WAIT_SECONDS_MAX, environment

SCRIPT = Path(__file__).with_name("messaging.js")
# Installed by the Makefile.
NODE_MODULES = PROJECT / ".venv" / "node" / "node_modules"

Seen = dict[str, Any]


@pytest.fixture(scope="module")
def seen(messaging: MessagingServer) -> Seen:
    """Run the script; return the observations of its clients, by section."""
    node = shutil.which("node")
    if node is None or not (NODE_MODULES / "@azure" / "service-bus").is_dir():
        pytest.skip("needs Node.js and its clients, which `make test` installs")
    hub = f"hub-{uuid.uuid4()}"
    properties = {"partitionCount": 2, "messageRetentionInDays": 1}
    assert arm(messaging.server, "PUT", "Microsoft.EventHub", f"eventhubs/{hub}", properties)[0] in (200, 201)
    names = (messaging.new_queue(), messaging.new_queue(requires_session=True), hub)
    done = subprocess.run(
        [node, str(SCRIPT), messaging.connection_string(), *names],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
        env={**environment(), "NODE_PATH": os.fspath(NODE_MODULES)},
    )
    assert done.returncode == 0, done.stderr
    sections: Seen = json.loads(done.stdout)
    return sections


def test_messages_are_settled_in_every_way(seen: Seen) -> None:
    assert seen["plain"] == {
        "first": ["complete", 8, 0],
        "again": ["abandon", 1],
        "dead": ["dead-letter", "why", "so"],
        "scheduled": [["later", "scheduled"]],
        "deferred": {"nested": ["deferred"]},
        "left": 0,
    }


def test_a_session_is_accepted_in_order_and_by_one_receiver(seen: Seen) -> None:
    assert seen["sessions"] == {
        "session": "s",
        "bodies": [1, 2, 3],
        "state": "state of s",
        "refused": "SessionCannotBeLocked",
    }


def test_events_come_from_the_partitions_that_they_were_sent_to(seen: Seen) -> None:
    events = seen["events"]
    assert events["partitions"] == ["0", "1"]
    everything = [*events["received"]["0"], *events["received"]["1"]]
    # The contract has the partition of this key.
    assert ["keyed", "abc-123"] in events["received"]["1"]
    assert [body for body, _ in everything if body != "keyed"] == [{"number": number} for number in range(10)]

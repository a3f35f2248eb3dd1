"""The guide to streams and its examples, run with the official clients."""

from __future__ import annotations

import json

import pytest

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.clients.blob_server import BlobServer
from tests.clients.messaging_programs import EXAMPLES, GUIDES, run_example, run_first_steps
from tests.clients.messaging_server import MessagingServer
from tests.support.commands import run, run_well
from tests.support.server import RunningServer

GUIDE = GUIDES / "streams.md"
# Modules that the examples share.
SHARED = {"reading"}
EXPECTED = {
    "sensors_by_key": """\
partitions: ['0', '1', '2', '3']
partition 0: busy
partition 0: sensor-11
partition 0: sensor-2
partition 0: sensor-4
partition 0: sensor-5
partition 0: sensor-6
partition 1: sensor-10
partition 1: sensor-7
partition 2: sensor-0
partition 2: sensor-1
partition 2: sensor-3
partition 3: sensor-8
partition 3: sensor-9
in order: True
events: {'0': 125, '1': 10, '2': 15, '3': 10}
""",
    "shared_work": """\
alone: 4 partitions
together: 2 and 2 partitions
handled: 200
after the restart: 40 from 200
""",
    "positions": """\
sequence numbers: [0, 1, 2, 3, 4]
from the beginning: ['entry 0', 'entry 1', 'entry 2', 'entry 3', 'entry 4']
after an offset: ['entry 4']
from a number on: ['entry 3', 'entry 4']
from a time on: ['entry 3', 'entry 4']
the reader of the lower epoch: taken over
""",
    "outbox": """\
sent before it was stopped: 4
sent by the next one: 6
sent in all: 13
read: 13 handled: 9
of order-0: ['order-0 placed', 'order-0 shipped']
""",
    "rebuild": """\
new: 4 {'ada': 600, 'bob': 1000, 'eve': 1000}
new: 1 {'ada': 600, 'bob': 1250, 'eve': 1000}
rebuilt: 5 {'ada': 1000, 'bob': 1250, 'eve': 1000}
""",
}


def arguments_of(name: str, server: RunningServer, blobs: BlobServer) -> list[str]:
    """Return the addresses that an example would otherwise expect at the usual ports."""
    places = {
        "shared_work": [blobs.connection_string],
        "outbox": [server.endpoint, WELL_KNOWN_EMULATOR_KEY],
        "rebuild": [server.endpoint, WELL_KNOWN_EMULATOR_KEY],
    }
    return [MessagingServer(server).connection_string(), *places.get(name, [])]


@pytest.mark.parametrize("name", list(EXPECTED))
def test_an_example_does_what_it_says(name: str, server: RunningServer, blobs: BlobServer) -> None:
    arguments = arguments_of(name, server, blobs)
    assert run_example(server, EXAMPLES / "streams" / f"{name}.py", *arguments) == EXPECTED[name]


def test_the_first_steps_of_the_guide_run(messaging: MessagingServer) -> None:
    assert run_first_steps(messaging, GUIDE) == "4\n"


def test_a_hot_partition_is_seen_in_the_numbers_of_its_events(server: RunningServer) -> None:
    run_well(server, "hubs", "create", "hot", "--partitions", "4")
    assert run(server, "hubs", "send", "hot", *map(str, range(90)), "--partition-key", "busy").returncode == 0
    assert run(server, "hubs", "send", "hot", "1", "--partition-key", "sensor-0").returncode == 0
    shown = json.loads(run_well(server, "hubs", "show", "hot", "--format", "json"))
    assert [partition["events"] for partition in shown["partitions"]] == [90, 0, 1, 0]


def test_the_guide_names_every_example() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    examples = {path.stem for path in (EXAMPLES / "streams").glob("*.py")} - SHARED
    assert examples == set(EXPECTED)
    assert all(f"(../../examples/streams/{name}.py)" in guide for name in examples)

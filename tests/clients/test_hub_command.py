"""`asterism hubs`, as its user runs it, with the official clients beside it."""

from __future__ import annotations

import json
import subprocess
import uuid
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, PartitionContext
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore

from tests.clients.blob_server import BlobServer
from tests.support.commands import failure_of, run_well
from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment

HOST = "asterism.servicebus.windows.net"


@pytest.fixture
def hub(server: RunningServer) -> str:
    name = f"hub-{uuid.uuid4()}"
    run_well(server, "hubs", "create", name, "--partitions", "2")
    return name


def events(server: RunningServer, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run_well(server, "hubs", "read", *arguments, "--format", "json"))["events"]
    return found


def show(server: RunningServer, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run_well(server, "hubs", "show", *arguments, "--format", "json"))
    return found


def test_a_hub_is_made_filled_read_and_deleted(server: RunningServer) -> None:
    name = f"hub-{uuid.uuid4()}"
    made = run_well(server, "hubs", "create", name, "--partitions", "2", "--retention", "2", "--group", "audit")
    assert made == f"The hub {name} is created.\n"
    assert name in run_well(server, "hubs", "list", "--search", name)
    assert run_well(server, "hubs", "send", name, "a", "b", "--partition", "1") == f"2 events sent to {name}.\n"
    run_well(server, "hubs", "send", name, "c", "--partition", "0", "--property", "n=1")
    found = [(event["partition"], event["body"]["text"]) for event in events(server, name)]
    assert found == [(0, "c"), (1, "a"), (1, "b")]
    shown = run_well(server, "hubs", "read", name, "--partition", "1", "--from", "1")
    assert ("b" in shown, "n=1" in shown) == (True, False)
    assert [partition["events"] for partition in show(server, name)["partitions"]] == [1, 2]
    assert "audit" in run_well(server, "hubs", "show", name)
    assert run_well(server, "hubs", "delete", name) == f"The hub {name} is deleted.\n"
    assert failure_of(server, "hubs", "show", name) == f"asterism: There is no hub '{name}'."


def test_the_lines_of_the_input_are_events(server: RunningServer, hub: str) -> None:
    finished = subprocess.run(
        [*PROGRAM, "hubs", "send", hub, "-", "--partition-key", "k", "--endpoint", server.endpoint],
        input="".join(f"{number}\n" for number in range(250)).encode(),
        capture_output=True,
        env=environment(),
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    assert (finished.returncode, finished.stdout.decode()) == (0, f"250 events sent to {hub}.\n")
    found = events(server, hub, "--count", "999")
    assert [event["body"]["text"] for event in found] == [str(number) for number in range(250)]
    assert {event["partition_key"] for event in found} == {"k"}


def test_consumer_groups_are_listed_created_and_deleted(server: RunningServer, hub: str) -> None:
    assert "audit" in run_well(server, "hubs", "groups", hub, "--add", "audit")
    listed = json.loads(run_well(server, "hubs", "groups", hub, "--remove", "audit", "--format", "json"))
    assert [group["name"] for group in listed["groups"]] == ["$Default"]


def test_the_lag_of_a_group_is_shown_by_its_checkpoints(server: RunningServer, hub: str, blobs: BlobServer) -> None:
    container = f"checkpoints-{uuid.uuid4()}"
    with blobs.service() as service:
        metadata = {"sequencenumber": "1", "offset": "1"}
        client = service.create_container(container)
        client.upload_blob(f"{HOST}/{hub}/$default/checkpoint/0", b"", metadata=metadata)
    run_well(server, "hubs", "send", hub, *"abcde", "--partition", "0")
    (group,) = show(server, hub, "--checkpoints", container)["lag"]
    assert (group["group"], group["lag"], group["partitions"][0]["sequence"]) == ("$Default", 3, 1)
    assert "3 events behind" in run_well(server, "hubs", "show", hub, "--checkpoints", container)
    assert "There is no container of blobs" in failure_of(server, "hubs", "show", hub, "--checkpoints", "none")


def test_the_lag_is_that_of_the_official_client(server: RunningServer, hub: str, blobs: BlobServer) -> None:
    """Read the events with the client for Python, which keeps its places in a container of the same server."""
    container = f"checkpoints-{uuid.uuid4()}"
    run_well(server, "hubs", "send", hub, *"abcde", "--partition", "0")
    with blobs.service() as service:
        service.create_container(container)
    store = BlobCheckpointStore.from_connection_string(blobs.connection_string, container)
    consumer = EventHubConsumerClient.from_connection_string(
        f"Endpoint=sb://localhost:{server.ports['amqp']};SharedAccessKeyName=RootManageSharedAccessKey;"
        f"SharedAccessKey=SAS_KEY_VALUE;EntityPath={hub};UseDevelopmentEmulator=true",
        "$Default",
        checkpoint_store=store,
    )
    found: list[str] = []

    def on_event(context: PartitionContext, event: EventData | None) -> None:
        assert event is not None
        found.append(event.body_as_str())
        context.update_checkpoint(event)
        consumer.close()

    with consumer, store:
        consumer.receive(on_event, partition_id="0", starting_position="-1", prefetch=1)
    (group,) = show(server, hub, "--checkpoints", container)["lag"]
    assert (found[0], group["partitions"][0]["lag"]) == ("a", 5 - len(found))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("create", "?"), "The name of a hub has"),
        (("create", "x", "--partitions", "5000"), "'partitions' must be a whole number"),
        (("send", "none", "x"), "There is no hub 'none'."),
        (("send", "none", "x", "--partition-key", "k", "--partition", "1"), "give --partition-key or --partition"),
        (("groups", "none", "--add", "g"), "There is no hub 'none'."),
        (("read", "none"), "There is no hub 'none'."),
        (("delete", "none"), "There is no hub 'none'."),
    ],
)
def test_a_command_that_cannot_be_done_says_why(
    server: RunningServer, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in failure_of(server, "hubs", *arguments)

"""`asterism queues`, as its user runs it."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.clients.queue_server import QueueServer, new_name
from tests.support.commands import failure_of, run_well
from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, environment


def messages(queues: QueueServer, *arguments: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(run_well(queues.running, "queues", *arguments, "--format", "json"))[
        "messages"
    ]
    return found


def test_a_queue_is_made_filled_seen_and_emptied(queues: QueueServer) -> None:
    server, name = queues.running, new_name()
    assert run_well(server, "queues", "create", name, "--metadata", "color=blue") == f"The queue {name} is created.\n"
    assert "exists" in run_well(server, "queues", "create", name, "--metadata", "color=blue")
    assert run_well(server, "queues", "put", name, "one <1>", "two", "three") == f"3 messages put into {name}.\n"
    listed = json.loads(run_well(server, "queues", "list", "--prefix", name, "--format", "json"))
    assert listed == {"queues": [{"name": name, "messages": 3}]}
    assert name in run_well(server, "queues", "list", "--prefix", name)
    assert [found["text"] for found in messages(queues, "peek", name, "--count", "2")] == ["one <1>", "two"]
    assert "one <1>" in run_well(server, "queues", "peek", name)
    taken = messages(queues, "get", name, "--count", "2", "--for", "3600")
    assert [(found["text"], found["dequeue_count"]) for found in taken] == [("one <1>", 1), ("two", 1)]
    deleted = messages(queues, "get", name, "--count", "9", "--delete")
    assert [found["text"] for found in deleted] == ["three"]
    assert run_well(server, "queues", "get", name) == f"No message of {name} is visible.\n"
    assert run_well(server, "queues", "purge", name) == f"2 messages removed from {name}.\n"
    assert run_well(server, "queues", "delete", name) == f"The queue {name} is deleted.\n"
    assert failure_of(server, "queues", "delete", name) == "asterism: The specified queue does not exist."


def test_the_lines_of_the_input_are_messages(queues: QueueServer) -> None:
    name = queues.new_queue().queue_name
    lines = "".join(f"line {number}\n" for number in range(40))
    finished = subprocess.run(
        [*PROGRAM, "queues", "put", name, "-", "--ttl", "-1", "--endpoint", queues.running.endpoint],
        input=lines,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    assert (finished.returncode, finished.stdout) == (0, f"40 messages put into {name}.\n")
    taken = messages(queues, "get", name, "--count", "100", "--delete")
    assert "".join(f"{found['text']}\n" for found in taken) == lines
    assert taken[0]["expires"] == "Fri, 31 Dec 9999 23:59:59 GMT"


@pytest.mark.parametrize("command", ["create", "delete", "purge", "peek", "get"])
def test_a_name_with_a_slash_is_not_the_messages_of_a_queue(queues: QueueServer, command: str) -> None:
    queue = queues.new_queue()
    queue.send_message("kept")
    for name in (f"{queue.queue_name}/messages", f"{queue.queue_name}/", ""):
        failure = failure_of(queues.running, "queues", command, name)
        assert failure == f"asterism: {name!r} cannot be a name: it is empty or has a /"
    assert [found.content for found in queue.peek_messages()] == ["kept"]


def test_the_queues_of_another_account_are_reached_by_its_key(queues: QueueServer) -> None:
    other, name = queues.of_new_account(), new_name()
    account = ("--account", other.account)
    run_well(queues.running, "queues", "create", name, *account)
    assert [found.name for found in other.service().list_queues()] == [name]
    listed = run_well(queues.running, "queues", "list", *account, "--account-key", other.key)
    assert name in listed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("list", "--account", "nosuch"), "the key of the account nosuch is unknown"),
        (("list", "--account-key", "d3Jvbmc="), "does not accept the key of the storage account"),
        (("list", "--account-key", "?"), "is not base64"),
        (("create", "Bad_Name"), "invalid characters"),
        (("create", "good", "--metadata", "x"), "write NAME=VALUE"),
        (("list", "--account", "a/b"), "'a/b' cannot be a name"),
        (("put", "none-such", "x"), "The specified queue does not exist."),
    ],
)
def test_a_command_that_cannot_be_done_says_why(queues: QueueServer, arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in failure_of(queues.running, "queues", *arguments)

"""`asterism queues`, as its user runs it."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.clients.queue_server import QueueServer, new_name
from tests.support.commands import failure_of, run, run_well
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


def put_input(queues: QueueServer, name: str, given: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, "queues", "put", name, "-", *options, "--endpoint", queues.running.endpoint],
        input=given,
        capture_output=True,
        env=environment(),
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )


def test_the_lines_of_the_input_are_messages(queues: QueueServer) -> None:
    name = queues.new_queue().queue_name
    lines = "".join(f"line {number} ü\n" for number in range(40))
    finished = put_input(queues, name, lines.encode(), "--ttl", "-1")
    assert (finished.returncode, finished.stdout.decode()) == (0, f"40 messages put into {name}.\n")
    taken = messages(queues, "get", name, "--count", "100", "--delete")
    assert "".join(f"{found['text']}\n" for found in taken) == lines
    assert taken[0]["expires"] == "Fri, 31 Dec 9999 23:59:59 GMT"
    assert messages(queues, "peek", name) == []


def test_lines_may_end_as_on_windows(queues: QueueServer) -> None:
    name = queues.new_queue().queue_name
    assert put_input(queues, name, b"one\r\ntw\ro\r\n\r\nthree\r").returncode == 0
    assert [found["text"] for found in messages(queues, "peek", name, "--count", "9")] == [
        "one",
        "tw\ro",
        "",
        "three\r",
    ]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (b"good\n\xff bad\n", "asterism: line 2 of the input is not UTF-8; no message was put"),
        (b"good\n\ngot \x01\n", "asterism: line 3 of the input has a character that no message can have"),
    ],
)
def test_input_that_cannot_be_messages_is_refused_as_a_whole(queues: QueueServer, given: bytes, sentence: str) -> None:
    name = queues.new_queue().queue_name
    finished = put_input(queues, name, given)
    (line,) = finished.stderr.decode().splitlines()
    assert (finished.returncode, line.startswith(sentence)) == (1, True)
    assert messages(queues, "peek", name) == []


def test_a_message_that_is_refused_is_named_with_the_number_before_it(queues: QueueServer) -> None:
    name = queues.new_queue().queue_name
    finished = put_input(queues, name, b"one\ntwo\n" + b"x" * 65537 + b"\nfour\n")
    (line,) = finished.stderr.decode().splitlines()
    assert (finished.returncode, line.endswith("(line 3 of the input; 2 messages put before it)")) == (1, True)
    assert [found["text"] for found in messages(queues, "peek", name, "--count", "9")] == ["one", "two"]
    failure = failure_of(queues.running, "queues", "put", "none-such", "x", "y")
    assert failure == "asterism: The specified queue does not exist. (message 1; 0 messages put before it)"


@pytest.mark.parametrize("command", ["create", "delete", "purge", "peek", "get"])
def test_a_name_with_a_slash_is_not_the_messages_of_a_queue(queues: QueueServer, command: str) -> None:
    queue = queues.new_queue()
    queue.send_message("kept")
    for name in (f"{queue.queue_name}/messages", f"{queue.queue_name}/", ""):
        failure = failure_of(queues.running, "queues", command, name)
        assert failure == f"asterism: {name!r} cannot be a name: it is empty or has a /"
    assert [found.content for found in queue.peek_messages()] == ["kept"]


def test_limits_of_seconds_are_said(queues: QueueServer) -> None:
    name = queues.new_queue().queue_name
    finished = run(queues.running, "queues", "put", name, "x", "--delay", "700000")
    assert (finished.returncode, "604800" in finished.stderr) == (2, True)
    assert "--ttl is a number of seconds" in failure_of(queues.running, "queues", "put", name, "x", "--ttl", "0")
    failure = failure_of(queues.running, "queues", "put", name, "x", "--ttl", "10", "--delay", "10")
    assert failure.endswith("outside the permissible range. (visibilitytimeout is from 0 to 9)")


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
        (("create", "good", "--metadata", "a=ü"), "'ü' cannot be the value of x-ms-meta-a: use printable ASCII"),
        (("create", "good", "--metadata", "a=1\n2"), "cannot be the value of x-ms-meta-a"),
        (("create", "good", "--metadata", "ü=1"), "'x-ms-meta-ü' cannot be the name of a header"),
        (("delete", "\udcff"), "bytes that are not UTF-8"),
        (("put", "none-such", "\udcff"), "message 1 is not UTF-8; no message was put"),
        (("list", "--account", "a/b"), "'a/b' cannot be a name"),
        (("put", "none-such", "x"), "The specified queue does not exist."),
    ],
)
def test_a_command_that_cannot_be_done_says_why(queues: QueueServer, arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in failure_of(queues.running, "queues", *arguments)

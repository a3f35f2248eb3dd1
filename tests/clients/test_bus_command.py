"""`asterism bus`, as its user runs it."""

from __future__ import annotations

import json
import subprocess
import uuid
from typing import Any

import pytest

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.cli.client import AdminClient
from tests.support.commands import failure_of, run_well
from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment


def new_name() -> str:
    return f"queue-{uuid.uuid4()}"


@pytest.fixture
def queue(server: RunningServer) -> str:
    name = new_name()
    run_well(server, "bus", "create", name)
    return name


def messages(server: RunningServer, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run_well(server, "bus", *arguments, "--format", "json"))["messages"]
    return found


def bodies(server: RunningServer, *arguments: str) -> list[str]:
    return [message["body"]["text"] for message in messages(server, *arguments)]


def counts_of(server: RunningServer, path: str) -> dict[str, int]:
    counts: dict[str, int] = json.loads(run_well(server, "bus", "show", path, "--format", "json"))["counts"]
    return counts


def dead_letter(server: RunningServer, queue: str, *texts: str) -> None:
    """Send messages and make dead letters of them, as a receiver that rejects them does."""
    run_well(server, "bus", "send", queue, *texts)
    client = AdminClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=True)
    named = {"namespace": "asterism", "entity": queue}
    taken = client.post("messaging/receive", {**named, "count": len(texts)})["messages"]
    tokens = [message["lock_token"] for message in taken]
    rejected = {"action": "dead-letter", "lock_tokens": tokens, "reason": "broken", "description": "no such part"}
    assert client.post("messaging/settle", {**named, **rejected})["settled"] == len(texts)


def test_a_queue_is_made_filled_seen_and_emptied(server: RunningServer) -> None:
    name = new_name()
    assert run_well(server, "bus", "create", name) == f"The queue {name} is created.\n"
    sent = run_well(server, "bus", "send", name, '{"id": 1}', "two", "--property", "n=1", "--subject", "s")
    assert sent == f"2 messages sent to {name}.\n"
    assert bodies(server, "peek", name) == ['{"id": 1}', "two"]
    shown = run_well(server, "bus", "peek", name, "--count", "1")
    assert ('{"id": 1}' in shown, "two" in shown, "n=1" in shown) == (True, False, True)
    assert name in run_well(server, "bus", "list", "--search", name)
    assert bodies(server, "receive", name, "--count", "9") == ['{"id": 1}', "two"]
    assert run_well(server, "bus", "receive", name) == "There are no messages.\n"
    run_well(server, "bus", "send", name, "three", "four")
    assert run_well(server, "bus", "purge", name) == f"2 messages removed from {name}.\n"
    assert run_well(server, "bus", "delete", name) == f"The queue {name} is deleted.\n"
    assert failure_of(server, "bus", "peek", name) == f"asterism: There is no queue, topic or subscription '{name}'."


def test_the_lines_of_the_input_are_messages(server: RunningServer, queue: str) -> None:
    lines = "".join(f"line {number} ü\n" for number in range(250))
    finished = subprocess.run(
        [*PROGRAM, "bus", "send", queue, "-", "--endpoint", server.endpoint],
        input=lines.encode(),
        capture_output=True,
        env=environment(),
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    assert (finished.returncode, finished.stdout.decode()) == (0, f"250 messages sent to {queue}.\n")
    taken = bodies(server, "receive", queue, "--count", "999", "--delete")
    assert "".join(f"{text}\n" for text in taken) == lines


def test_dead_letters_are_shown_with_reasons_and_sent_again(server: RunningServer, queue: str) -> None:
    dead_letter(server, queue, *map(str, range(5)))
    shown = run_well(server, "bus", "peek", queue, "--dead-letter")
    assert (shown.count("broken"), shown.count("no such part")) == (5, 5)
    chosen = [str(message["sequence_number"]) for message in messages(server, "peek", queue, "--dead-letter")[1:3]]
    assert run_well(server, "bus", "resubmit", queue, *chosen) == f"2 dead letters of {queue} sent again.\n"
    assert bodies(server, "peek", queue) == ["1", "2"]
    assert run_well(server, "bus", "resubmit", queue, "--all") == f"3 dead letters of {queue} sent again.\n"
    assert bodies(server, "peek", queue) == ["1", "2", "0", "3", "4"]
    assert counts_of(server, queue)["dead_letters"] == 0
    assert run_well(server, "bus", "resubmit", queue, "--all") == f"0 dead letters of {queue} sent again.\n"
    assert failure_of(server, "bus", "resubmit", queue, "99") == "asterism: 1 number of no free dead letter: 99"


def test_messages_that_expire_are_dead_letters_with_that_reason(server: RunningServer) -> None:
    name = new_name()
    run_well(server, "bus", "create", name, "--ttl", "1", "--dead-letter-expired")
    run_well(server, "bus", "send", name, "old")
    (dead,) = messages(server, "receive", name, "--dead-letter", "--wait", "20")
    assert (dead["body"]["text"], dead["dead_letter"]["reason"]) == ("old", "TTLExpiredException")


def test_a_topic_gives_messages_to_the_subscriptions_whose_rules_match(server: RunningServer) -> None:
    topic = new_name()
    assert run_well(server, "bus", "create", topic, "--topic") == f"The topic {topic} is created.\n"
    path = f"{topic}/subscriptions/eu"
    assert run_well(server, "bus", "create", path, "--filter", "region = 'eu'").endswith("is created.\n")
    run_well(server, "bus", "create", topic, "--subscription", "all")
    run_well(server, "bus", "send", topic, "hello", "--property", "region=eu")
    run_well(server, "bus", "send", topic, "howdy", "--property", "region=us")
    assert bodies(server, "peek", path) == ["hello"]
    assert bodies(server, "receive", topic, "--subscription", "all", "--count", "5") == ["hello", "howdy"]
    shown = run_well(server, "bus", "show", path)
    assert "region = 'eu'" in shown
    assert "all" in run_well(server, "bus", "show", topic)


def test_sessions_and_moments_are_given_with_messages(server: RunningServer) -> None:
    name = new_name()
    run_well(server, "bus", "create", name, "--sessions")
    run_well(server, "bus", "send", name, "a1", "a2", "--session", "a")
    run_well(server, "bus", "send", name, "later", "--session", "a", "--at", "2099-01-01T00:00:00Z")
    assert bodies(server, "peek", name, "--session", "a") == ["a1", "a2", "later"]
    assert "session" in failure_of(server, "bus", "send", name, "x").lower()
    assert "sessions" in failure_of(server, "bus", "receive", name)
    assert bodies(server, "receive", name, "--delete", "--count", "9") == ["a1", "a2"]
    assert counts_of(server, name)["scheduled"] == 1


def test_a_fragment_is_closed_and_opened(server: RunningServer) -> None:
    name = new_name()
    run_well(server, "bus", "create", name, "--partitioned")
    assert "closed" in run_well(server, "bus", "fragment", name, "2", "close")
    run_well(server, "bus", "send", name, *map(str, range(20)))
    assert 2 not in {message["sequence_number"] >> 48 for message in messages(server, "peek", name, "--count", "20")}
    assert "closed" not in run_well(server, "bus", "fragment", name, "2", "open")
    assert "say `close` or `open`" in failure_of(server, "bus", "fragment", name, "2", "break")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("create", "?"), "The name of a queue or topic has"),
        (("create", "none/subscriptions/s"), "There is no topic 'none'"),
        (("send", "none", "x"), "There is no queue, topic or subscription 'none'."),
        (("send", "none", "x", "--property", "x"), "write NAME=VALUE"),
        (("send", "none", "x", "y", "--message-id", "1"), "--message-id is for a single message"),
        (("send", "none", "x", "--at", "tomorrow"), "is no time"),
        (("send", "none", "x", "--at", "2099-01-01T00:00:00"), "has no time zone"),
        (("send", "none", "\udcff"), "text 1 is not UTF-8; nothing was sent"),
        (("resubmit", "none"), "or say --all"),
        (("resubmit", "none", "1", "--all"), "or say --all"),
        (("purge", "none"), "There is no queue, topic or subscription 'none'."),
        (("list", "--key", "d3Jvbmc="), "the server does not accept the key"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(
    server: RunningServer, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in failure_of(server, "bus", *arguments)

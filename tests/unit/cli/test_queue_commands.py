"""Commands of queues against a server that changes, or fails, between two requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from unittest.mock import Mock

import pytest

from asterism.cli import queues
from asterism.cli.failure import CommandFailed
from asterism.cli.options import Format
from asterism.cli.storage_client import StorageRefused, StorageReply

NAMES = b"<R><Queues><Queue><Name>one</Name></Queue><Queue><Name>two</Name></Queue></Queues><NextMarker/></R>"


def page(*texts: str) -> StorageReply:
    shown = "".join(
        f"<QueueMessage><MessageId>{text}</MessageId><MessageText>{text}</MessageText></QueueMessage>" for text in texts
    )
    return StorageReply(200, {}, f"<QueueMessagesList>{shown}</QueueMessagesList>".encode())


class ScriptedClient:
    """Answers requests in the order of its replies, and notes what was on the terminal before each."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        # A failure among the replies is raised.
        self.answer = Mock()
        self.asked: list[tuple[str, str]] = []
        self.shown_before: list[str] = []
        self._capsys = capsys
        self._shown = ""

    def ask(self, method: str, path: str = "", *, query: Mapping[str, str]) -> StorageReply:
        self.asked.append((method, path))
        self.shown_before.append(self.shown())
        reply: StorageReply = self.answer(query)
        return reply

    def shown(self) -> str:
        self._shown += self._capsys.readouterr().out
        return self._shown


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> ScriptedClient:
    client = ScriptedClient(capsys)
    monkeypatch.setattr(queues, "_client", lambda *_, **__: nullcontext(client))
    return client


def test_a_queue_that_is_deleted_while_queues_are_listed_is_left_out(scripted: ScriptedClient) -> None:
    count = StorageReply(200, {"x-ms-approximate-messages-count": "3"}, b"")
    scripted.answer.side_effect = [StorageReply(200, {}, NAMES), StorageRefused(404, "QueueNotFound", "gone"), count]
    queues.list_(output_format=Format.JSON)
    assert json.loads(scripted.shown()) == {"queues": [{"name": "two", "messages": 3}]}


def test_messages_are_deleted_page_by_page_once_they_are_shown(scripted: ScriptedClient) -> None:
    done = StorageReply(204, {}, b"")
    scripted.answer.side_effect = [page("a", "b"), done, done, page("c"), done, page()]
    queues.get("jobs", count=9, with_delete=True, output_format=Format.JSON)
    taken, deleted = ("GET", "jobs/messages"), [("DELETE", f"jobs/messages/{text}") for text in "abc"]
    assert scripted.asked == [taken, *deleted[:2], taken, deleted[2], taken]
    assert ['"text": "c"' in shown for shown in scripted.shown_before] == [False] * 4 + [True] * 2
    assert ['"text": "b"' in shown for shown in scripted.shown_before] == [False] + [True] * 5
    assert [message["text"] for message in json.loads(scripted.shown())["messages"]] == ["a", "b", "c"]


def test_json_is_whole_after_a_failure_between_two_pages(scripted: ScriptedClient) -> None:
    scripted.answer.side_effect = [page("a"), CommandFailed("the server does not answer")]
    with pytest.raises(CommandFailed):
        queues.get("jobs", count=9, output_format=Format.JSON)
    assert [message["text"] for message in json.loads(scripted.shown())["messages"]] == ["a"]


def test_a_failure_before_the_first_page_is_all_that_is_shown(scripted: ScriptedClient) -> None:
    scripted.answer.side_effect = [CommandFailed("the server does not answer")]
    with pytest.raises(CommandFailed):
        queues.get("jobs", output_format=Format.JSON)
    assert scripted.shown() == ""

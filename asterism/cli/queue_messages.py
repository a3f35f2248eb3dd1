"""Messages of `asterism queues`: their texts on the way in, and pages of them on the way out."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from textwrap import indent
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape

import typer

from asterism.apis.storage.xml_text import has_impossible_characters
from asterism.cli.failure import CommandFailed
from asterism.cli.options import Format
from asterism.cli.storage_client import StorageReply, text_in
from asterism.cli.tables import print_table

_STANDARD: Final = "-"
_LINE_END: Final = re.compile(rb"\r?\n\Z")

# A message, with its texts by the names that JSON output has.
Shown = dict[str, Any]


class MessageText(NamedTuple):
    text: str
    # The argument or the line of the input that has it, for failures.
    place: str

    @property
    def body(self) -> bytes:
        escaped = escape(self.text, {"\r": "&#13;"})
        return f"<QueueMessage><MessageText>{escaped}</MessageText></QueueMessage>".encode()


def read_texts(arguments: Iterable[str]) -> list[MessageText]:
    """Return the messages that arguments stand for. All of them are checked before one is sent: CommandFailed for a
    text that no message can have."""
    return [text for number, argument in enumerate(arguments, 1) for text in _texts_of(argument, number)]


def _texts_of(argument: str, number: int) -> Iterator[MessageText]:
    if argument != _STANDARD:
        yield _checked(argument, f"message {number}")
        return
    for line_number, line in enumerate(sys.stdin.buffer, 1):
        place = f"line {line_number} of the input"
        # Bytes that are not UTF-8 become lone surrogates, as in arguments.
        yield _checked(_LINE_END.sub(b"", line).decode("utf-8", "surrogateescape"), place)


def _checked(text: str, place: str) -> MessageText:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CommandFailed(f"{place} is not UTF-8; no message was put") from None
    if has_impossible_characters(text):
        raise CommandFailed(f"{place} has a character that no message can have, as XML cannot; no message was put")
    return MessageText(text, place)


def read_page(reply: StorageReply) -> list[Shown]:
    return [
        {
            "id": text_in(element, "MessageId"),
            "inserted": text_in(element, "InsertionTime"),
            "expires": text_in(element, "ExpirationTime"),
            "dequeue_count": int(text_in(element, "DequeueCount") or 0),
            "receipt": text_in(element, "PopReceipt") or None,
            "text": text_in(element, "MessageText"),
        }
        for element in reply.xml.iter("QueueMessage")
    ]


@contextmanager
def message_output(name: str, output_format: Format) -> Iterator[Callable[[list[Shown]], None]]:
    """Yield a function that shows a page of messages at once, so that they can be deleted behind it."""
    with _json_output() if output_format is Format.JSON else _table_output(name) as show:
        yield show


@contextmanager
def _table_output(name: str) -> Iterator[Callable[[list[Shown]], None]]:
    shown = 0

    def show(page: list[Shown]) -> None:
        nonlocal shown
        shown += len(page)
        rows = [[each["id"], each["inserted"], str(each["dequeue_count"]), each["text"]] for each in page]
        print_table(f"Messages of {name}", ["id", "inserted", "taken", "text"], rows)

    yield show
    if not shown:
        typer.echo(f"No message of {name} is visible.")


@contextmanager
def _json_output() -> Iterator[Callable[[list[Shown]], None]]:
    """Yield a function that writes pages into one JSON text, which is whole after a failure too."""
    is_begun = has_messages = False

    def show(page: list[Shown]) -> None:
        nonlocal is_begun, has_messages
        if not is_begun:
            typer.echo('{\n  "messages": [', nl=False)
            is_begun = True
        for message in page:
            text = indent(json.dumps(message, indent=2, ensure_ascii=False), "    ")
            typer.echo((",\n" if has_messages else "\n") + text, nl=False)
            has_messages = True

    try:
        yield show
    finally:
        if is_begun:
            typer.echo("\n  ]\n}")

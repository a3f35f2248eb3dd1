"""Messages and events on the terminal: a page at a time, as tables or as a single JSON text."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import indent
from typing import Any, Final

import typer

from asterism.cli.options import Format
from asterism.cli.tables import print_table

# A message or an event, as the server describes it.
Shown = dict[str, Any]
Show = Callable[[list[Shown]], None]
# Longer bodies are cut in tables; JSON output has all that the server shows.
_BODY_CHARACTERS_MAX: Final = 400


@contextmanager
def shown_pages(
    title: str, property_name: str, rows_of: Callable[[Shown], list[str]], columns: Sequence[str], format_: Format
) -> Iterator[Show]:
    """Yield a function that shows a page at once, so that its messages can be settled behind it."""
    if format_ is Format.JSON:
        with _json_pages(property_name) as show:
            yield show
        return
    shown = 0

    def show_table(page: list[Shown]) -> None:
        nonlocal shown
        shown += len(page)
        print_table(title, columns, [rows_of(each) for each in page])

    yield show_table
    if not shown:
        typer.echo(f"There are no {property_name}.")


@contextmanager
def _json_pages(name: str) -> Iterator[Show]:
    """Yield a function that writes pages into one JSON text, which is whole after a failure too."""
    has_entries = False
    typer.echo(f'{{\n  "{name}": [', nl=False)

    def show(page: list[Shown]) -> None:
        nonlocal has_entries
        for entry in page:
            text = indent(json.dumps(entry, indent=2, ensure_ascii=False), "    ")
            typer.echo((",\n" if has_entries else "\n") + text, nl=False)
            has_entries = True

    try:
        yield show
    finally:
        typer.echo("\n  ]\n}")


MESSAGE_COLUMNS: Final = ("number", "enqueued", "state", "taken", "session", "id", "subject", "properties", "body")
DEAD_LETTER_COLUMNS: Final = ("number", "enqueued", "taken", "id", "reason", "description", "properties", "body")
EVENT_COLUMNS: Final = ("partition", "number", "enqueued", "key", "properties", "body")
# Of the properties in a table, as columns of their own show them.
_REASONS: Final = ("DeadLetterReason", "DeadLetterErrorDescription")


def message_row(message: Shown) -> list[str]:
    properties = message["properties"]
    return [
        str(message["sequence_number"]),
        moment(message["enqueued_ms"]),
        message["state"],
        str(message["delivery_count"]),
        text_or_dash(message["session_id"]),
        text_or_dash(properties.get("message_id")),
        text_or_dash(properties.get("subject")),
        _pairs(message["application_properties"]),
        body_text(message["body"]),
    ]


def dead_letter_row(message: Shown) -> list[str]:
    shown = {name: value for name, value in message["application_properties"].items() if name not in _REASONS}
    return [
        str(message["sequence_number"]),
        moment(message["enqueued_ms"]),
        str(message["delivery_count"]),
        text_or_dash(message["properties"].get("message_id")),
        text_or_dash(message["dead_letter"]["reason"]),
        text_or_dash(message["dead_letter"]["description"]),
        _pairs(shown),
        body_text(message["body"]),
    ]


def event_row(event: Shown) -> list[str]:
    return [
        str(event["partition"]),
        str(event["sequence_number"]),
        moment(event["enqueued_ms"]),
        text_or_dash(event["partition_key"]),
        _pairs(event["application_properties"]),
        body_text(event["body"]),
    ]


def moment(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    try:
        found = datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return found.strftime("%Y-%m-%d %H:%M:%S")


def text_or_dash(value: object) -> str:
    if value is None or value == "":
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _pairs(properties: dict[str, Any]) -> str:
    return ", ".join(f"{name}={text_or_dash(value)}" for name, value in properties.items()) or "-"


def body_text(body: Shown) -> str:
    text = f"0x{body['text']}" if body["kind"] == "hex" else str(body["text"])
    if len(text) > _BODY_CHARACTERS_MAX or body["is_cut"]:
        return f"{text[:_BODY_CHARACTERS_MAX]} … ({body['bytes']:,} bytes)"
    return text or "-"

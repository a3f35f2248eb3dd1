"""Texts that become messages or events: arguments, or the lines of the input."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Final

from asterism.cli.failure import CommandFailed

_STANDARD: Final = "-"
_LINE_END: Final = re.compile(rb"\r?\n\Z")


def read_texts(arguments: Iterable[str]) -> list[str]:
    """Return the texts that arguments stand for; `-` is the lines of the input. All are checked before one is sent."""
    return [text for number, argument in enumerate(arguments, 1) for text in _texts_of(argument, number)]


def _texts_of(argument: str, number: int) -> Iterator[str]:
    if argument != _STANDARD:
        yield _checked(argument, f"text {number}")
        return
    for line_number, line in enumerate(sys.stdin.buffer, 1):
        # Bytes that are not UTF-8 become lone surrogates, as in arguments.
        yield _checked(_LINE_END.sub(b"", line).decode("utf-8", "surrogateescape"), f"line {line_number} of the input")


def _checked(text: str, place: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CommandFailed(f"{place} is not UTF-8; nothing was sent") from None
    return text


def counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"

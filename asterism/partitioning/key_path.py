"""The text of a path to a key: `/tenant/id`, or with quotes around names that hold slashes, `/"a/b"/c`."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from asterism.errors import MalformedRequest

_QUOTES = ('"', "'")
# A name without quotes. The service refuses spaces, dots and wildcards; its rule for hyphens is not known, so they are
# accepted.
_PLAIN_NAME = re.compile(r"[\w-]+")


def check_key_path(path: str) -> None:
    """Raise MalformedRequest with the service's message if a new container cannot have this path."""
    position = 0
    while position < len(path):
        if path[position] != "/":
            _refuse(path, position)
        position += 1
        if path[position : position + 1] in _QUOTES:
            try:
                name, position = _quoted_name(path, position)
            except MalformedRequest:
                _refuse(path, position)
            if not name:
                _refuse(path, position - 1)
        else:
            plain = _PLAIN_NAME.match(path, position)
            if plain is None:
                _refuse(path, position)
            position = plain.end()
    if not path:
        _refuse(path, 0)


def _refuse(path: str, position: int) -> NoReturn:
    # Within its list of errors the service writes slashes as JSON may, with a backslash.
    shown = json.dumps(path[:256], ensure_ascii=False)[1:-1].replace("/", "\\/")
    raise MalformedRequest(
        reason='Message: {"Errors":["The partition key component definition path '
        f"'{shown}' could not be accepted, failed near position '{position}'. Partition key paths must contain only "
        'valid characters and not contain a trailing slash or wildcard character."]}'
    )


def parse_key_path(path: str) -> tuple[str, ...]:
    """Return the names along the path, outermost first."""
    if not path.startswith("/"):
        raise MalformedRequest(reason=f"The path {path!r} must begin with '/'.")
    names: list[str] = []
    position = 0
    while position < len(path):
        if path[position] != "/":
            raise MalformedRequest(reason=f"The path {path!r} needs a '/' at character {position}.")
        position += 1
        if path[position : position + 1] in _QUOTES:
            name, position = _quoted_name(path, position)
        else:
            name, position = _plain_name(path, position)
        if not name:
            raise MalformedRequest(reason=f"The path {path!r} has an empty name.")
        names.append(name)
    return tuple(names)


def _plain_name(path: str, start: int) -> tuple[str, int]:
    end = path.find("/", start)
    if end < 0:
        end = len(path)
    return path[start:end].strip(), end


def _quoted_name(path: str, start: int) -> tuple[str, int]:
    """Read a name between quotes; inside it a backslash escapes a quote or a backslash."""
    quote = path[start]
    characters: list[str] = []
    position = start + 1
    while position < len(path):
        character = path[position]
        if character == quote:
            return "".join(characters), position + 1
        if character == "\\" and path[position + 1 : position + 2] in (quote, "\\"):
            position += 1
            character = path[position]
        characters.append(character)
        position += 1
    raise MalformedRequest(reason=f"The path {path!r} has an unterminated quote.")

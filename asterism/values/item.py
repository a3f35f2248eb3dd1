"""Items of requests: JSON objects of bounded size and depth, with names that fit in a path."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from asterism.errors import MalformedRequest, TooLarge
from asterism.limits import ITEM_ID_CHARACTERS_MAX, ITEM_NESTING_LEVELS_MAX, RESOURCE_NAME_CHARACTERS_MAX
from asterism.values.json import text as json_text

Item = dict[str, object]

# Names are segments of a URL path. The service accepts every other character in the id of an item, encoded in the path,
# and is stricter with the names of databases, containers, users and scripts.
_FORBIDDEN_IN_ITEM_IDS = re.compile(r"[/\\#]")
_FORBIDDEN_IN_NAMES = re.compile(r"[/\\#?\x00-\x1f\x7f]")
# HTTP clients resolve these segments before they send a path, so such a resource could not be read or deleted by name.
_PATH_STEPS = frozenset({".", ".."})
_NESTED = (dict, list)


def parse_item(body: bytes, *, bytes_max: int) -> Item:
    """Parse the JSON object in `body`. Raises TooLarge, or MalformedRequest with a message for the client."""
    if len(body) > bytes_max:
        raise TooLarge(what="item", bytes_max=bytes_max)
    value = json_text.loads(body)
    if type(value) is not dict:
        raise MalformedRequest(reason="The body must be a JSON object.")
    # Most items have fewer brackets than the limit has levels, and need no walk.
    if body.count(b"{") + body.count(b"[") > ITEM_NESTING_LEVELS_MAX:
        check_nesting(value, levels_max=ITEM_NESTING_LEVELS_MAX)
    return value


def check_nesting(value: object, *, levels_max: int) -> None:
    """Raise MalformedRequest if `value` has objects or arrays nested deeper than `levels_max`."""
    level: list[Any] = [value] if type(value) in _NESTED else []
    for _ in range(levels_max):
        # Written out for speed: this runs for every operation of every batch.
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return
    raise MalformedRequest(reason=f"The item is nested deeper than {levels_max} levels.")


def validate_item_id(value: object) -> str:
    """Return `value` as the id of an item, or raise MalformedRequest."""
    text = _checked_length(value, characters_max=ITEM_ID_CHARACTERS_MAX, stated_limit=ITEM_ID_CHARACTERS_MAX + 1)
    if _FORBIDDEN_IN_ITEM_IDS.search(text):
        raise MalformedRequest(reason=f"The input name '{text[:64]}' is invalid: an id cannot contain / \\ or #.")
    return text if text not in _PATH_STEPS else _refuse_path_step(text)


def validate_resource_name(value: object) -> str:
    """Return `value` as the name of a database, container, user or script, or raise MalformedRequest."""
    # The service names 255 in its refusal and yet accepts 255 characters.
    text = _checked_length(
        value, characters_max=RESOURCE_NAME_CHARACTERS_MAX, stated_limit=RESOURCE_NAME_CHARACTERS_MAX
    )
    if _FORBIDDEN_IN_NAMES.search(text):
        raise MalformedRequest(
            reason=f"The input name '{text[:64]}' is invalid: a name cannot contain / \\ # ? or control characters."
        )
    if text[-1] == " ":
        raise MalformedRequest(reason=f"The input name '{text[:64]}' is invalid: a name cannot end with a space.")
    return text if text not in _PATH_STEPS else _refuse_path_step(text)


def _checked_length(value: object, *, characters_max: int, stated_limit: int) -> str:
    if type(value) is not str:
        raise MalformedRequest(
            reason="The input content is invalid because the required property 'id' is missing or not a string."
        )
    if not value or len(value) > characters_max:
        raise MalformedRequest(
            reason=f"The input name '{value[:64]}' is invalid. "
            f"Ensure to provide a unique non-empty string less than '{stated_limit}' characters."
        )
    return value


def _refuse_path_step(name: str) -> NoReturn:
    raise MalformedRequest(
        reason=f"The input name '{name}' is invalid: clients resolve it as a step of the path in a URL."
    )

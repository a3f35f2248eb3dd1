"""Reading the JSON of a container's policies, which may be anything: the value that was asked for, or a refusal."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NoReturn

from asterism.errors import MalformedRequest
from asterism.models.documents.indexes.paths import parse_property_path


def refuse(reason: str) -> NoReturn:
    raise MalformedRequest(reason=reason)


def as_object(value: Any, *, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        refuse(f"One of the specified inputs is invalid: {what} must be an object.")
    return dict(value)


def as_list(value: Any, *, what: str) -> list[Any]:
    if not isinstance(value, list):
        refuse(f"One of the specified inputs is invalid: {what} must be an array.")
    return list(value)


def as_text(value: Any, *, what: str) -> str:
    if not isinstance(value, str) or not value:
        refuse(f"One of the specified inputs is invalid: {what} must be a non-empty string.")
    return value


def as_integer(value: Any, *, what: str) -> int:
    if type(value) is not int:
        refuse(f"One of the specified inputs is invalid: {what} must be a whole number.")
    return value


def one_of(value: Any, allowed: Collection[str], *, refusal: str) -> str:
    """Return the allowed spelling of `value`, whatever its case."""
    spelled = {text.lower(): text for text in allowed}.get(value.lower()) if isinstance(value, str) else None
    if spelled is None:
        refuse(refusal)
    return spelled


def as_property_path(value: Any, *, refusal: str) -> str:
    if not isinstance(value, str) or not value.startswith("/") or value == "/":
        refuse(refusal)
    parse_property_path(value)
    return value

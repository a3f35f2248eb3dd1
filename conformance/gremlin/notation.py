"""The notation of values in .feature files (`d[29].i`, `v[marko].id`, `m[{"t[id]": …}]` …), as Python values."""

from __future__ import annotations

import datetime
import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gremlin_python.process.traversal import Direction, Merge, T
from gremlin_python.statics import bigdecimal, long


@dataclass(frozen=True, slots=True)
class Element:
    """A vertex or an edge, known by its id. `kind` is "v" or "e"."""

    kind: str
    id: Any
    label: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class OfVertex:
    """A property of a vertex, known by its key and value (its own id is the server's business)."""

    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class PathOf:
    objects: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """A set: its members in any order."""

    members: tuple[Any, ...]


# Finds the element that a scenario calls "marko" or "marko-knows->josh".
Find = Callable[[str, str], Element]

_FORM = re.compile(r"(l|s|str|dt|uuid|d|vp|v|e|m|p|t|D|M|c)\[(.*)\](\.\w+)?", re.DOTALL)
_NAMES = {"from": "from_", "to": "to", "inV": "in_v", "outV": "out_v", "onCreate": "on_create", "onMatch": "on_match"}


class NoSuchValue(Exception):
    """The notation is of a kind that no client can send (a lambda, say)."""


def read(text: Any, find: Find) -> Any:
    if isinstance(text, dict):
        return {_hashable(read(key, find)): read(value, find) for key, value in text.items()}
    if isinstance(text, list):
        return [read(item, find) for item in text]
    if not isinstance(text, str):
        return text
    if text in {"null", "true", "false"}:
        return {"null": None, "true": True, "false": False}[text]
    match = _FORM.fullmatch(text)
    return text if match is None else _typed(match[1], match[2], match[3] or "", find)


def _typed(form: str, inner: str, suffix: str, find: Find) -> Any:
    match form:
        case "d":
            return _number(inner, suffix)
        case "v" | "e":
            element = find(form, inner)
            return element if not suffix else str(element.id) if suffix == ".sid" else element.id
        case "vp":
            owner_and_key, _, value = inner.partition("->")
            return OfVertex(owner_and_key.rpartition("-")[2], read(value, find))
        case "l":
            return [read(item, find) for item in _split(inner)]
        case "s":
            return AnyOrder(tuple(_hashable(read(item, find)) for item in _split(inner)))
        case "p":
            return PathOf(tuple(read(item, find) for item in _split(inner)))
        case "m":
            return read(json.loads(inner), find)
        case "t":
            return T[_NAMES.get(inner, inner)]
        case "D":
            return Direction[_NAMES.get(inner, inner)]
        case "M":
            return Merge[_NAMES.get(inner, inner)]
        case "str":
            return inner
        case "uuid":
            return uuid.UUID(inner)
        case "dt":
            return datetime.datetime.fromisoformat(inner.replace("Z", "+00:00"))
    raise NoSuchValue(form)


def _number(inner: str, suffix: str) -> Any:
    if suffix == ".m":
        return bigdecimal(inner)
    if inner in {"NaN", "Infinity", "-Infinity"} or suffix in {".f", ".d"} or "." in inner or "E" in inner:
        return float(inner.replace("Infinity", "inf"))
    return long(inner) if suffix == ".l" else int(inner)


def _split(inner: str) -> list[str]:
    """Cuts at commas that are in no bracket."""
    parts: list[str] = [""]
    depth = 0
    for character in inner:
        depth += character in "[{"
        depth -= character in "]}"
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts] if inner else []


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value

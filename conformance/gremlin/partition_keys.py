"""Scenarios that make their own vertices, on a partitioned graph: each vertex that they add gets a partition key.

Vertices of one traversal get different keys, so that edges lead from partition to partition."""

from __future__ import annotations

from conformance.gremlin.scenarios import Scenario

_ADD_VERTEX = "addV("
# Would show the key among the properties, or need it where no text can be put.
_IN_THE_WAY = ("mergeV(", "valueMap()", "elementMap()", "properties()", "propertyMap()", "values()")


def reason_to_skip(scenario: Scenario) -> str | None:
    text = " ".join(
        (*scenario.initializers, scenario.traversal, *(" ".join(item.arguments) for item in scenario.checks))
    )
    found = next((part for part in _IN_THE_WAY if part in text), None)
    return None if found is None else f"{found} and a partition key"


def with_keys(text: str, key: str) -> str:
    pieces: list[str] = []
    rest = text
    while (place := rest.find(_ADD_VERTEX)) >= 0:
        end = _closing(rest, place + len(_ADD_VERTEX))
        pieces.append(f'{rest[:end]}.property("{key}", "p{len(pieces)}")')
        rest = rest[end:]
    return "".join(pieces) + rest


def _closing(text: str, place: int) -> int:
    """The place behind the bracket that closes the one before `place`; strings may hold brackets."""
    depth, quote = 1, ""
    while depth:
        character = text[place]
        if quote:
            place += character == "\\"
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character == "(") - (character == ")")
        place += 1
    return place

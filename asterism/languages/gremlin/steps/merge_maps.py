"""The maps of `mergeV` and `mergeE`: what may stand in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.contract import Cardinality
from asterism.languages.gremlin.steps.operands import PropertyValue, cardinality_named, checked_label
from asterism.languages.gremlin.tree import T_ID, T_LABEL, CardinalityValue, Token
from asterism.languages.gremlin.values.comparison import are_equal

MergeMap = dict[Any, Any]

OUT = Token("Direction", "OUT")
IN = Token("Direction", "IN")

_ALLOWED = {"mergeV": (T_ID, T_LABEL), "mergeE": (T_ID, T_LABEL, IN, OUT)}
# Other names of directions, for maps that read like sentences.
_DIRECTIONS = {Token("Direction", "from"): OUT, Token("Direction", "to"): IN}


def with_tokens(given: MergeMap, key: Callable[[Any], Any]) -> MergeMap:
    """Return a map with the tokens that its keys stand for in the dialect."""
    found = {}
    for name, value in given.items():
        name = key(name)
        found[_DIRECTIONS.get(name, name) if isinstance(name, Token) else name] = value
    return found


def check_map(given: MergeMap, step_name: str) -> None:
    """Refuse keys and values that neither a search nor a new element can have."""
    allowed = _ALLOWED[step_name]
    for key, value in given.items():
        if isinstance(key, Token) and value is None:
            raise ExecutionFailure(f"{step_name}() does not allow null Map values - check: {key.name}")
        if isinstance(key, str):
            _check_property_key(key)
            continue
        if key not in allowed:
            shown = ", ".join(token.name for token in allowed)
            raise ExecutionFailure(
                f"{step_name}() and option(onCreate) args expect keys in Map to be either String or [{shown}] - "
                f"check: {getattr(key, 'name', key)}"
            )
        if key == T_LABEL:
            if not isinstance(value, str):
                raise ExecutionFailure(
                    f"{step_name}() and option(onCreate) args expect T.label value to be of String - "
                    f"found: {type(value).__name__}"
                )
            checked_label(value, "")
        for direction, name in ((OUT, "outV"), (IN, "inV")):
            if key == direction and isinstance(value, Token) and value != Token("Merge", name):
                raise ExecutionFailure(
                    f"Only Merge.{name} token may be used for Direction.{direction.name}, found: {value.name}"
                )


def check_match_map(given: MergeMap) -> None:
    """Refuse keys that an element which exists cannot change."""
    for key in given:
        if not isinstance(key, str):
            shown = getattr(key, "name", key)
            raise ExecutionFailure(f"option(onMatch) expects keys in Map to be of String - check: {shown}")
        _check_property_key(key)


def _check_property_key(key: str) -> None:
    if key.startswith("~"):
        raise ExecutionFailure(f"Property key can not be a hidden key: {key}")


def check_no_overrides(sought: MergeMap, created: MergeMap) -> None:
    """Refuse a new element that the search would not find."""
    for key, value in created.items():
        if key in sought and not are_equal(value, sought[key]):
            shown = getattr(key, "name", key)
            raise ExecutionFailure(f"option(onCreate) cannot override values from merge() argument: ({shown}, {value})")


def property_entries(
    given: MergeMap, default: Cardinality | None = None, *, removes_null: bool = False
) -> list[PropertyValue]:
    """Return the properties of a map, T.id and T.label among them. `default` is the cardinality of values that come
    without one."""
    found: list[PropertyValue] = []
    for key, value in given.items():
        cardinality = default
        if isinstance(value, CardinalityValue):
            cardinality, value = cardinality_named(value.cardinality), value.value
        found.append(PropertyValue(key, value, cardinality, {}, value is None and removes_null))
    return found


def merged_by(sought: MergeMap, *ends: tuple[Any, str]) -> str:
    """Return a text for all that an element is sought by: the same for maps that find the same elements."""
    members = []
    for key, value in sought.items():
        if key in (IN, OUT):
            # The vertices that they stand for are given as `ends`.
            continue
        name = f"T.{key.name}" if isinstance(key, Token) else f"'{key}"
        value = value.value if isinstance(value, CardinalityValue) else value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        members.append([name, str(value)])
    return json.dumps([sorted(members), [[str(key), name] for key, name in ends]])

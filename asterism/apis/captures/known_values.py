"""The values at paths that a request names: those that its filter fixes or bounds, and those of an item it carries."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, cast

from asterism.advisor.captured_request import Bounds
from asterism.advisor.value_digests import Scalar
from asterism.reading.conditions import AllOf, AnyOf, Comparison, Condition, OneOf, Prefix, PropertyPath

# Of one query: values in all its lists together, and paths. Lists beyond it are left out, as if the filter did not fix
# their paths.
VALUES_MAX: Final = 1000
PATHS_MAX: Final = 64
PATH_CHARACTERS_MAX: Final = 256
# Above every string with the same beginning, as long as it goes on with an ordinary character.
_ABOVE: Final = "\uffff"
_PLAIN_NAME: Final = re.compile(r"[\w-]+")


def path_text(path: PropertyPath) -> str | None:
    """Return a path as a partition key definition names it; None for one that is too long."""
    text = "".join(map(_step, path))
    return text if len(text) <= PATH_CHARACTERS_MAX else None


# Programs have some hundred names of properties.
@lru_cache(maxsize=4096)
def _step(name: str) -> str:
    return f"/{name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)}"


def equalities(condition: Condition) -> dict[PropertyPath, tuple[Scalar, ...]]:
    """Return the paths that have one of a few values in every item that meets the condition."""
    match condition:
        case Comparison(path, "=", value):
            return {path: (cast(Scalar, value),)}
        case OneOf(path, values):
            return {path: cast("tuple[Scalar, ...]", values)}
        case AllOf(conditions):
            found: dict[PropertyPath, tuple[Scalar, ...]] = {}
            for part in conditions:
                for path, values in equalities(part).items():
                    # Of two lists for a path both hold; the shorter one says more.
                    found[path] = min(values, found.get(path, values), key=len)
            return found
        case AnyOf(conditions):
            return _of_any([equalities(part) for part in conditions])
        case _:
            return {}


def _of_any(found: Sequence[Mapping[PropertyPath, tuple[Scalar, ...]]]) -> dict[PropertyPath, tuple[Scalar, ...]]:
    common = set(found[0]).intersection(*found[1:])
    return {path: _without_repeats([value for part in found for value in part[path]]) for path in common}


def _without_repeats(values: Iterable[Scalar]) -> tuple[Scalar, ...]:
    # With the type: true is not 1.
    return tuple({(type(value), value): value for value in values}.values())


def bounds(condition: Condition) -> dict[PropertyPath, Bounds]:
    """Return the paths whose values lie between two bounds, or on one side of one, inclusive or not."""
    parts = condition.conditions if isinstance(condition, AllOf) else (condition,)
    found: dict[PropertyPath, Bounds] = {}
    for part in parts:
        match part:
            case Comparison(path, ">" | ">=", value):
                found[path] = (cast(Scalar, value), found.get(path, (None, None))[1])
            case Comparison(path, "<" | "<=", value):
                found[path] = (found.get(path, (None, None))[0], cast(Scalar, value))
            case Prefix(path, prefix):
                found[path] = (prefix, prefix + _ABOVE)
            case _:
                continue
    return found


def shown_lists(found: Mapping[PropertyPath, Sequence[Scalar]]) -> dict[str, tuple[Scalar, ...]]:
    """Return lists by the texts of their paths, no more than a record holds."""
    shown: dict[str, tuple[Scalar, ...]] = {}
    left = VALUES_MAX
    for path, values in sorted(found.items(), key=lambda entry: len(entry[1])):
        text = path_text(path)
        if text is not None and len(values) <= left and len(shown) < PATHS_MAX:
            shown[text] = tuple(values)
            left -= len(values)
    return shown


def scalars_of(item: Mapping[str, object], *, is_hidden: Callable[[str], bool]) -> dict[str, Scalar]:
    """Return the scalars of an item by path, those near its top first, no more than a record holds. Elements of arrays
    have no path; `is_hidden` tells the names of properties of the system."""
    found: dict[str, Scalar] = {}
    level: list[tuple[str, Mapping[str, object]]] = [("", item)]
    while level and len(found) < PATHS_MAX:
        below: list[tuple[str, Mapping[str, object]]] = []
        for place, held in level:
            for name, value in held.items():
                if len(found) == PATHS_MAX or (not place and is_hidden(name)) or isinstance(value, list):
                    continue
                path = place + _step(name)
                if len(path) > PATH_CHARACTERS_MAX:
                    continue
                if isinstance(value, dict):
                    below.append((path, value))
                else:
                    found[path] = cast(Scalar, value)
        level = below[:PATHS_MAX]
    return found

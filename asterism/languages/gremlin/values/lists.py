"""The functions behind the steps of lists. Members are the same if their identity is: 1 and 1L are two members."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from asterism.languages.gremlin.failure import ExecutionFailure, MemoryExceeded
from asterism.languages.gremlin.values.identity import identity_key
from asterism.languages.gremlin.values.predicates import Test
from asterism.languages.gremlin.values.printing import bounded, text_of
from asterism.languages.gremlin.values.results import Path
from asterism.languages.gremlin.values.structures import MapEntry, freeze
from asterism.languages.gremlin.values.types import class_name


def members_of(value: Any) -> list[Any] | None:
    """Return the members of a list, a set or a path; None for any other value, maps included."""
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, Path):
        return list(value.objects)
    return None


def items_of(value: Any) -> list[Any]:
    """Return the members of a value that has some, the entries of a map, or the value alone."""
    if isinstance(value, dict):
        return [MapEntry(key, entry) for key, entry in value.items()]
    members = members_of(value)
    return [value] if members is None else members


def incoming_members(step: str, value: Any) -> list[Any]:
    """Return the members of a traverser's value. Raises ExecutionFailure for one without members."""
    if value is None:
        raise ExecutionFailure(f"Incoming traverser for {step} step can't be null.")
    members = members_of(value)
    if members is None:
        raise ExecutionFailure(
            f"{step} step can only take an array or an Iterable type for incoming traversers, "
            f"encountered {class_name(value)}"
        )
    return members


def argument_members(step: str, value: Any) -> list[Any]:
    """Return the members of an argument of a step."""
    if value is None:
        raise ExecutionFailure(f"Argument provided for {step} step can't be null.")
    members = members_of(value)
    if members is None:
        raise ExecutionFailure(
            f"{step} step can only take an array or an Iterable as an argument, encountered {class_name(value)}"
        )
    return members


def yielded_members(step: str, value: Any) -> list[Any]:
    """Return the members of the first result of an argument that is a traversal."""
    sentence = f"Provided traversal argument for {step} step must yield an iterable type, "
    if value is None:
        raise ExecutionFailure(f"{sentence}not null")
    members = members_of(value)
    if members is None:
        raise ExecutionFailure(f"{sentence}encountered {class_name(value)}")
    return members


def conjoin(delimiter: str) -> Callable[[Any], str]:
    """Return the function that joins the members of a list to a text; null is passed over."""

    def join(value: Any) -> str:
        members = incoming_members("conjoin", value)
        parts = [text_of(member) for member in members if member is not None]
        bounded(sum(map(len, parts)) + len(delimiter) * len(parts))
        return delimiter.join(parts)

    return join


# Members that two lists together may have.
MEMBERS_MAX = 1_000_000


def combine(left: list[Any], right: list[Any]) -> list[Any]:
    if len(left) + len(right) > MEMBERS_MAX:
        raise MemoryExceeded(f"A list of {len(left) + len(right)} members is longer than the {MEMBERS_MAX} allowed.")
    return left + right


def difference(left: list[Any], right: list[Any]) -> set[Any]:
    keys = set(map(identity_key, right))
    return _set(member for member in left if identity_key(member) not in keys)


def intersect(left: list[Any], right: list[Any]) -> set[Any]:
    keys = set(map(identity_key, left))
    return _set(member for member in right if identity_key(member) in keys)


def disjunct(left: list[Any], right: list[Any]) -> set[Any]:
    return difference(left, right) | difference(right, left)


def unite(left: list[Any], right: list[Any]) -> set[Any]:
    return _set(left + right)


# Pairs that a product may have: about a hundred bytes each.
PRODUCT_MAX = 1_000_000


def product(left: list[Any], right: list[Any]) -> list[list[Any]]:
    if len(left) * len(right) > PRODUCT_MAX:
        raise ExecutionFailure(f"product step makes at most {PRODUCT_MAX} pairs, not {len(left)} times {len(right)}.")
    return [[first, second] for first in left for second in right]


def merge_maps(left: dict[Any, Any], right: Any) -> dict[Any, Any]:
    """Return a map with the entries of both; those of the right one count where both have a key."""
    if not isinstance(right, dict):
        raise ExecutionFailure(
            f"merge step expected provided argument to evaluate to a Map, encountered {class_name(right)}"
        )
    return {**left, **right}


def _set(members: Iterable[Any]) -> set[Any]:
    return {freeze(member) for member in members}


def all_match(test: Test) -> Test:
    """Return whether a list has no member that fails a test; other values are no lists."""
    return lambda value: (members := members_of(value)) is not None and all(map(test, members))


def any_matches(test: Test) -> Test:
    return lambda value: (members := members_of(value)) is not None and any(map(test, members))


def none_matches(test: Test) -> Test:
    return lambda value: (members := members_of(value)) is not None and not any(map(test, members))

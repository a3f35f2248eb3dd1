"""The body of a patch, in both of its forms: an object with a condition, or the bare list of operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from asterism.documents.container import Container
from asterism.documents.patch import Patch, parse_operations
from asterism.errors import MalformedRequest
from asterism.query import compile_query, parse_condition
from asterism.values.item import Item

# Around the value of an operation: the operation, the list of them, and the object with the condition.
PATCH_NESTING_LEVELS: Final = 3

# A condition is looked at between reading an item and writing it, where nothing else has its turn: a fraction of a
# second, which no condition of a patch needs.
_CONDITION_STEPS_MAX = 100_000


def patch_of(container: Container, told: object) -> Patch:
    """What a client sends as `{"operations": […], "condition": "from c where …"}`, or as the list alone."""
    operations, condition = (
        (told.get("operations"), told.get("condition")) if isinstance(told, Mapping) else (told, None)
    )
    definition = container.record.definition
    # A container without a partition key shows a path that is not a property of its items.
    key_paths = () if definition.system_key else definition.segments
    return Patch(parse_operations(operations, key_paths=key_paths), _condition_of(condition))


def _condition_of(told: object) -> Callable[[Item], bool] | None:
    if told is None or told == "":
        return None
    if not isinstance(told, str):
        raise MalformedRequest(reason="The condition of a patch must be a text such as 'from c where c.n > 1'.")
    condition = compile_query(parse_condition(told), {})
    condition.meter.allow(_CONDITION_STEPS_MAX)
    return condition.matches

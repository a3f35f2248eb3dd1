"""The body of a patch, in both of its forms: an object with a condition, or the bare list of operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql import compile_query, parse_condition
from asterism.models.documents.container import Container
from asterism.models.documents.cosmos.patch import Patch, parse_operations
from asterism.values.item import Item

# Around the value of an operation: the operation, the list of them, and the object with the condition.
PATCH_NESTING_LEVELS: Final = 3

# A condition is evaluated between reading an item and writing it, without yielding to other requests: a fraction of a
# second, which no condition of a patch needs.
_CONDITION_STEPS_MAX = 100_000


def patch_of(container: Container, body: object) -> Patch:
    """Parse a patch, sent as `{"operations": […], "condition": "from c where …"}`, or as the list alone."""
    operations, condition = (
        (body.get("operations"), body.get("condition")) if isinstance(body, Mapping) else (body, None)
    )
    definition = container.record.definition
    # A container without a partition key shows a path that is not a property of its items.
    key_paths = () if definition.system_key else definition.segments
    return Patch(parse_operations(operations, key_paths=key_paths), _condition_of(condition))


def _condition_of(text: object) -> Callable[[Item], bool] | None:
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise MalformedRequest(reason="The condition of a patch must be a text such as 'from c where c.n > 1'.")
    condition = compile_query(parse_condition(text), {})
    condition.meter.allow(_CONDITION_STEPS_MAX)
    return condition.matches

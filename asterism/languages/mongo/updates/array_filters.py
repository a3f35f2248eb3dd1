"""`arrayFilters`: the conditions behind the identifiers of `$[identifier]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from asterism.languages.mongo.expressions.operator import CompileContext
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Matches
from asterism.languages.mongo.updates.paths import is_identifier
from asterism.values.bson.types import Document


def compile_array_filters(array_filters: Sequence[Document], context: CompileContext) -> dict[str, Matches]:
    """Return the condition of every identifier, over a document that has the element under the identifier's name."""
    if not array_filters:
        return {}
    from asterism.languages.mongo.filters.compile import ELEMENT_FEATURES, compile_filter

    conditions: dict[str, Matches] = {}
    for array_filter in array_filters:
        if type(array_filter) is not dict:
            raise MongoFailure(14, "Each element of arrayFilters must be an object")
        match = compile_filter(array_filter, context, features=ELEMENT_FEATURES)
        names = list(dict.fromkeys(_field_names(array_filter)))
        if not names:
            raise MongoFailure(9, "Cannot use an expression without a top-level field name in arrayFilters")
        if len(names) > 1:
            raise MongoFailure(
                9,
                "Error parsing array filter :: caused by :: Expected a single top-level field name, found "
                f"'{names[0]}' and '{names[1]}'",
            )
        identifier = names[0]
        if not is_identifier(identifier):
            raise MongoFailure(
                2,
                "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string "
                f"beginning with a lowercase letter, found '{identifier}'",
            )
        if identifier in conditions:
            raise MongoFailure(9, f"Found multiple array filters with the same top-level field name {identifier}")
        conditions[identifier] = match.matches
    return conditions


def _field_names(array_filter: Document) -> Iterator[str]:
    """Yield the first components of the paths in a filter, also below $and, $or and $nor."""
    for name, operand in array_filter.items():
        if not name.startswith("$"):
            yield name.split(".")[0]
        elif type(operand) is list:
            for part in operand:
                if type(part) is dict:
                    yield from _field_names(part)


def check_identifier(identifier: str, conditions: dict[str, Any], path: str) -> None:
    if identifier and identifier not in conditions:
        raise MongoFailure(2, f"No array filter found for identifier '{identifier}' in path '{path}'")

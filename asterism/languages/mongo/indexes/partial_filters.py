"""Partial filters: the operators that the condition of a partial index may have, and its comparable form."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Matches
from asterism.languages.mongo.indexes.refusals import cannot_create
from asterism.values.bson.kinds import is_number
from asterism.values.bson.order import compare, sort_key
from asterism.values.bson.types import DatetimeMS, Document, Regex, Timestamp

_FIELD_OPERATORS = frozenset(
    ("$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$type", "$all", "$geoWithin", "$within", "$geoIntersects", "$comment")
)


def compile_partial_filter(specification: Document, collate: Any) -> Matches:
    """Check the condition of a partial index and compile it."""
    from asterism.languages.mongo.expressions.compile import new_context
    from asterism.languages.mongo.filters.compile import ELEMENT_FEATURES, compile_filter

    if "$where" in specification:
        raise MongoFailure(2, "$where is not allowed in this context")
    # First what no filter may be: an unknown operator is another mistake than one that partial indexes do not have.
    context = new_context(DatetimeMS(0), Timestamp(0, 0), collate)
    matches = compile_filter(specification, context, features=ELEMENT_FEATURES).matches
    _check(specification)
    return matches


def _check(filter: Document) -> None:
    for name, operand in filter.items():
        if name in ("$and", "$or"):
            for part in operand:
                _check(part)
        elif name.startswith("$") and name != "$comment":
            raise _unsupported(name)
        else:
            _check_operand(operand)


def _check_operand(operand: Any) -> None:
    if type(operand) is Regex:
        raise _unsupported("$regex")
    if type(operand) is not dict or not next(iter(operand), "").startswith("$"):
        return
    for name, value in operand.items():
        if name == "$exists":
            if value is None or value is False or (is_number(value) and compare(value, 0) == 0):
                raise _unsupported("$exists: false")
        elif name not in _FIELD_OPERATORS:
            raise _unsupported(name)
        elif name in ("$in", "$all") and any(_is_condition(element) for element in value):
            raise _unsupported(f"{name} with conditions")


def _is_condition(element: Any) -> bool:
    return type(element) is Regex or (type(element) is dict and next(iter(element), "").startswith("$"))


def _unsupported(name: str) -> MongoFailure:
    return cannot_create(f"Expression not supported in partial index: {name}")


def comparable(filter: Document) -> Any:
    """Return a key that is equal for conditions that mean the same, whatever the order of their parts."""
    return sort_key(sorted(_parts(filter), key=sort_key))


def _parts(filter: Document) -> list[Any]:
    """Return the parts of a conjunction, those of `$and` among them."""
    parts: list[Any] = []
    for name, operand in filter.items():
        if name == "$and":
            for part in operand:
                parts += _parts(part)
        elif name == "$or":
            parts.append(["$or", sorted((_parts(part) for part in operand), key=sort_key)])
        elif type(operand) is dict and next(iter(operand), "").startswith("$"):
            parts += [[name, operator, value] for operator, value in operand.items()]
        else:
            parts.append([name, "$eq", operand])
    return parts

"""Partial indexes that a query may use: those whose filter holds for every document that the query wants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from asterism.languages.mongo.expressions.operator import CompileContext
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.filters.match import Condition, Match, Node
from asterism.models.collections.records import CollectionRecord
from asterism.values.bson.order import compare, rank


def implied_indexes(record: CollectionRecord, match: Match, context: CompileContext) -> frozenset[str]:
    """Return the names of the partial indexes that hold every document of the query."""
    partial = [index for index in record.indexes if "partialFilterExpression" in index.options]
    if not partial:
        return frozenset()
    found = []
    for index in partial:
        needed = compile_filter(index.options["partialFilterExpression"], context).node
        if _implies(match.conditions, needed):
            found.append(index.name)
    return frozenset(found)


def _implies(conditions: Sequence[Condition], needed: Node) -> bool:
    if needed.kind == "and":
        return all(_implies(conditions, child) for child in needed.children)
    if needed.kind == "or":
        return any(_implies(conditions, child) for child in needed.children)
    test = _TESTS.get(needed.kind)
    if test is None:
        return False
    return any(_fact_implies(fact, needed, test) for fact in conditions if fact.path == needed.path)


def _fact_implies(fact: Condition, needed: Node, test: Callable[[str, Any, Any], bool]) -> bool:
    if fact.operator == "in":
        return bool(fact.value) and all(test("eq", value, needed.value) for value in fact.value)
    return test(fact.operator, fact.value, needed.value)


def _same_type(left: Any, right: Any) -> bool:
    return rank(left) == rank(right) and not isinstance(left, (list, dict))


def _is_equal(operator: str, known: Any, needed: Any) -> bool:
    return operator == "eq" and _same_type(known, needed) and compare(known, needed) == 0


def _is_in(operator: str, known: Any, needed: Any) -> bool:
    return any(_is_equal(operator, known, value) for value in needed)


def _above(*, or_equal: bool) -> Callable[[str, Any, Any], bool]:
    def test(operator: str, known: Any, needed: Any) -> bool:
        if operator not in ("eq", "gt", "gte") or not _same_type(known, needed):
            return False
        order = compare(known, needed)
        return order > 0 or (order == 0 and (or_equal or operator == "gt"))

    return test


def _below(*, or_equal: bool) -> Callable[[str, Any, Any], bool]:
    def test(operator: str, known: Any, needed: Any) -> bool:
        if operator not in ("eq", "lt", "lte") or not _same_type(known, needed):
            return False
        order = compare(known, needed)
        return order < 0 or (order == 0 and (or_equal or operator == "lt"))

    return test


def _exists(operator: str, known: Any, needed: Any) -> bool:
    if not needed:
        return operator == "exists" and not known
    if operator == "exists":
        return bool(known)
    # `{a: null}` and `{a: {$gte: null}}` hold for documents without the field.
    return operator in ("eq", "gt", "gte", "lt", "lte", "size", "regex_prefix", "elemMatch") and known is not None


_TESTS: dict[str, Callable[[str, Any, Any], bool]] = {
    "eq": _is_equal,
    "in": _is_in,
    "gt": _above(or_equal=False),
    "gte": _above(or_equal=True),
    "lt": _below(or_equal=False),
    "lte": _below(or_equal=True),
    "exists": _exists,
}

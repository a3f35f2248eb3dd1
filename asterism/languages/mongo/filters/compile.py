"""Filters, compiled: `{a: 1, b: {$gt: 2}, $or: [...]}` into a function over documents and the facts for the planner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.operator import CompileContext
from asterism.languages.mongo.filters import arrays, bitwise, comparison, elements, evaluation, geo, logical, text
from asterism.languages.mongo.filters.match import (
    Match,
    Matches,
    Node,
    VariablesCell,
    alternatives_of,
    conjunction,
    facts_of,
)
from asterism.languages.mongo.filters.predicate import Predicate, Scope, all_hold, at_path, bad_value
from asterism.values.bson.types import Regex

# The operators that a filter may contain where it stands: in `find`, in the stage `$match`, in a validator, in a
# projection and in `arrayFilters`. The planner of `find` orders by distance, which a stage cannot do.
FIND_FEATURES = frozenset({"text", "near", "where", "expr", "jsonSchema"})
MATCH_FEATURES = frozenset({"text", "expr", "jsonSchema"})
VALIDATOR_FEATURES = frozenset({"expr", "jsonSchema"})
ELEMENT_FEATURES: frozenset[str] = frozenset()


def compile_filter(
    filter: dict[str, Any],
    context: CompileContext,
    *,
    features: frozenset[str] = FIND_FEATURES,
    where: Callable[[Any], Matches] | None = None,
) -> Match:
    """Compile a filter over documents. `where` compiles the JavaScript of $where, which is refused without it."""
    cell = VariablesCell()
    return match_of(compile_node(filter, Scope(context, features, cell, where=where)), cell)


def match_of(node: Node, cell: VariablesCell) -> Match:
    """Return the match of a compiled part of a filter."""
    parts = _parts(node)
    kinds = {part.kind: part for part in parts}
    _check_searches(node, parts)
    return Match(
        node=node,
        cell=cell,
        matches=node.matches,
        conditions=facts_of(node),
        alternatives=tuple(match_of(child, cell) for child in alternatives_of(node)),
        text=kinds["text"].value if "text" in kinds else None,
        geo=kinds["near"].value if "near" in kinds else None,
        uses_expr="expr" in kinds,
        uses_where="where" in kinds,
    )


def _check_searches(node: Node, parts: list[Node]) -> None:
    """Check that searches, which give the results their order or their score, stand where they can do so."""
    near = sum(part.kind == "near" for part in parts)
    texts = sum(part.kind == "text" for part in parts)
    if not near and not texts:
        return
    if near > 1:
        raise bad_value("Too many geoNear expressions")
    if texts > 1:
        raise bad_value("Too many text expressions")
    if any(part.kind == "text" for nor in parts if nor.kind in ("nor", "not") for part in _parts(nor)):
        raise bad_value("text expression not allowed in nor")
    if near and texts:
        raise bad_value("text and geoNear not allowed in same query")
    if near and not any(part.kind == "near" for part in (node.children if node.kind == "and" else (node,))):
        raise bad_value("geoNear must be top-level expr")


def _parts(node: Node) -> list[Node]:
    return [node, *(part for child in node.children for part in _parts(child))]


def compile_node(filter: dict[str, Any], scope: Scope) -> Node:
    """Compile a filter, at the top or below $and, $or, $nor and $elemMatch."""
    parts: list[Node] = []
    for name, operand in filter.items():
        if not name.startswith("$") or (name in _REFERENCE_NAMES and not scope.is_top_level):
            parts.append(_compile_field(name, operand, scope))
        elif name != "$comment":
            compile_operator = TOP_LEVEL_OPERATORS.get(name)
            if compile_operator is None:
                raise bad_value(f"unknown top level operator: {name}")
            parts.append(compile_operator(operand, scope))
    return conjunction(tuple(parts))


def _compile_field(path: str, operand: Any, scope: Scope) -> Node:
    if type(operand) is dict and is_operators(operand):
        first = next(iter(operand))
        if first in geo.NEAR_OPERATORS and type(operand[first]) in (dict, list):
            return geo.compile_near(path, operand, scope)
        return at_path(all_hold(compile_operators(operand, scope)), path)
    if type(operand) is Regex:
        return at_path(evaluation.compile_regex_value(operand, scope), path)
    return at_path(comparison.compile_eq(operand, scope), path)


def is_operators(operand: dict[str, Any]) -> bool:
    """Return whether a document holds operators rather than being a value to compare with."""
    return next(iter(operand), "").startswith("$") and not comparison.is_reference(operand)


def compile_operators(operand: dict[str, Any], scope: Scope) -> tuple[Predicate, ...]:
    """Compile the operators behind a field, such as `{$gt: 1, $lt: 5}`."""
    found: list[Predicate] = []
    if len(operand) > 1 and any(name in _GEO_OPERATORS for name in operand):
        raise bad_value(f"can't parse extra field beside a geo predicate: {', '.join(operand)}")
    for name, value in operand.items():
        compile_operator = FIELD_OPERATORS.get(name)
        if compile_operator is not None:
            found.append(compile_operator(value, scope))
        elif name == "$regex":
            found.append(_compile_regex(operand))
        elif name == "$options":
            if "$regex" not in operand:
                raise bad_value("$options needs a $regex")
        elif name == "$not":
            found.append(logical.compile_not(value, scope, compile_operators))
        elif name != "$comment":
            raise bad_value(f"unknown operator: {name}")
    return tuple(found)


def _compile_regex(operand: dict[str, Any]) -> Predicate:
    options = operand.get("$options")
    if "$options" in operand and type(options) is not str:
        raise bad_value("$options has to be a string")
    names = list(operand)
    first = "$options" in operand and names.index("$options") < names.index("$regex")
    return evaluation.compile_regex_operator(operand["$regex"], options, options_first=first)


def holds_for_documents(operand: dict[str, Any]) -> bool:
    """Return whether the operand of $elemMatch is a filter over documents, not operators over values."""
    return not is_operators(operand) or next(iter(operand)) in TOP_LEVEL_OPERATORS


def compile_elem_match(operand: Any, scope: Scope) -> Predicate:
    return arrays.compile_elem_match(operand, scope, compile_operators, compile_node, holds_for_documents)


def _compile_all(operand: Any, scope: Scope) -> Predicate:
    return arrays.compile_all(operand, scope, compile_elem_match)


def _combination(
    compile_with: Callable[[Any, Scope, Callable[[dict[str, Any], Scope], Node]], Node],
) -> Callable[[Any, Scope], Node]:
    return lambda operand, scope: compile_with(operand, scope, compile_node)


_REFERENCE_NAMES = ("$ref", "$id", "$db")
_GEO_OPERATORS = ("$geoWithin", "$within", "$geoIntersects")

TOP_LEVEL_OPERATORS: dict[str, Callable[[Any, Scope], Node]] = {
    "$and": _combination(logical.compile_and),
    "$or": _combination(logical.compile_or),
    "$nor": _combination(logical.compile_nor),
    "$alwaysTrue": _combination(logical.compile_always(holds=True)),
    "$alwaysFalse": _combination(logical.compile_always(holds=False)),
    "$expr": evaluation.compile_expr,
    "$jsonSchema": evaluation.compile_json_schema,
    "$sampleRate": evaluation.compile_sample_rate,
    "$where": evaluation.compile_where,
    "$text": text.compile_text,
}

FIELD_OPERATORS: dict[str, Callable[[Any, Scope], Predicate]] = {
    "$eq": comparison.compile_eq,
    "$ne": comparison.compile_ne,
    "$gt": comparison.compile_gt,
    "$gte": comparison.compile_gte,
    "$lt": comparison.compile_lt,
    "$lte": comparison.compile_lte,
    "$in": comparison.compile_in,
    "$nin": comparison.compile_nin,
    "$exists": elements.compile_exists,
    "$type": elements.compile_type,
    "$mod": evaluation.compile_mod,
    "$size": arrays.compile_size,
    "$elemMatch": compile_elem_match,
    "$all": _compile_all,
    "$bitsAllSet": bitwise.compile_bits_all_set,
    "$bitsAllClear": bitwise.compile_bits_all_clear,
    "$bitsAnySet": bitwise.compile_bits_any_set,
    "$bitsAnyClear": bitwise.compile_bits_any_clear,
    "$geoWithin": geo.compile_geo_within,
    "$within": geo.compile_geo_within,
    "$geoIntersects": geo.compile_geo_intersects,
}

"""Shapes of queries: a query without its values. Queries of one shape have one plan.

There are two. The shape of the *plan* has everything that the choice of an index depends on, which the order of
conditions does not belong to. The shape of the *query* is the command as it was written, with types instead of values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.types import Document, Regex

_LOGICAL: Final = frozenset({"$and", "$or", "$nor"})
# Stages that the choice of a plan takes into account if they follow the filter.
_PLANNED_STAGES: Final = frozenset(
    {"$group", "$lookup", "$bucket", "$replaceRoot", "$replaceWith", "$project", "$sort", "$count", "$sortByCount",
     "$densify", "$setWindowFields", "$match"}
)  # fmt: skip
# Operands that say which query it is, rather than for which values.
_KEPT_OPERANDS: Final = frozenset({"$type", "$exists", "$options", "$jsonSchema", "$comment"})
_PLAN_HASH_LENGTH = 8


def plan_shape(
    filter: Mapping[str, Any],
    sort: Mapping[str, Any] | None = None,
    projection: Mapping[str, Any] | None = None,
    collation: Mapping[str, Any] | None = None,
    stages: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the shape of a plan as a text. `stages` are those behind the filter."""
    planned: list[Any] = []
    for stage in stages:
        name = next(iter(stage), "")
        if name not in _PLANNED_STAGES:
            break
        planned.append((name, _abstract(stage[name])))
    fields = sorted((path, repr(_kept(value))) for path, value in (projection or {}).items())
    order = [(path, repr(_kept(direction))) for path, direction in (sort or {}).items()]
    spoken = sorted((name, repr(value)) for name, value in (collation or {}).items())
    return repr((_plan_filter(filter), order, fields, spoken, planned))


def plan_hash(shape: str) -> str:
    """Return the hash that `explain` shows of the shape of a plan."""
    return hashlib.sha256(shape.encode("utf-8", "surrogatepass")).hexdigest().upper()[:_PLAN_HASH_LENGTH]


def query_hash(command: Document) -> str:
    """Return the hash of the shape of a whole command."""
    shown: dict[str, Any] = {}
    for name, value in command.items():
        if name in ("filter", "query"):
            shown[name] = _query_filter(value)
        elif name == "pipeline":
            shown[name] = [
                {"$match": _query_filter(stage["$match"])} if "$match" in stage else _abstract(stage)
                for stage in value
                if isinstance(stage, dict)
            ]
        elif name in ("sort", "projection", "hint", "collation") or not shown:
            shown[name] = _kept(value)
        elif name not in ("comment", "cursor", "batchSize", "maxTimeMS", "readConcern"):
            shown[name] = _abstract(value)
    return hashlib.sha256(repr(shown).encode("utf-8", "surrogatepass")).hexdigest().upper()


# --- the shape of a plan --------------------------------------------------------------------------------------------


def _plan_filter(filter: Mapping[str, Any]) -> Any:
    """Return the conditions of a filter, sorted, a conjunction of one as itself."""
    parts: list[Any] = []
    for name, operand in filter.items():
        if name in _LOGICAL and isinstance(operand, list):
            inner = sorted((_plan_filter(part) for part in operand if isinstance(part, dict)), key=repr)
            if name == "$and":
                parts += inner
            else:
                parts.append((name, inner))
        elif name.startswith("$"):
            parts.append((name, repr(_kept(operand)) if name in _KEPT_OPERANDS else ""))
        else:
            parts += _plan_conditions(name, operand)
    flat = [part for nested in parts for part in (nested[1] if nested[:1] == ("$and",) else [nested])]
    flat.sort(key=repr)
    return flat[0] if len(flat) == 1 else ("$and", flat)


def _plan_conditions(path: str, operand: Any) -> list[Any]:
    if not _is_condition(operand):
        return [(path, "$regex" if isinstance(operand, Regex) else "$eq")]
    found: list[Any] = []
    for operator, value in operand.items():
        if operator in ("$not", "$elemMatch") and isinstance(value, dict):
            is_condition = _is_condition(value)
            found.append((path, operator, _plan_conditions(path, value) if is_condition else _plan_filter(value)))
        elif operator == "$in" and isinstance(value, list) and len(value) == 1:
            # As fast as an equality, and planned as one.
            found.append((path, "$eq"))
        elif operator == "$all" and isinstance(value, list):
            found += [(path, "$all")] * len(value)
        elif operator == "$exists":
            found.append((path, operator, bool(value)))
        elif operator != "$options":
            found.append((path, operator))
    return found


# --- the shape of a query -------------------------------------------------------------------------------------------


def _query_filter(filter: Any) -> Any:
    if not isinstance(filter, dict):
        return _abstract(filter)
    parts: list[Any] = []
    for name, operand in filter.items():
        if name == "$and" and isinstance(operand, list):
            parts += [part for inner in operand for part in _query_parts(_query_filter(inner))]
        elif name in _LOGICAL and isinstance(operand, list):
            parts.append({name: [_query_filter(part) for part in operand]})
        elif name in _KEPT_OPERANDS:
            parts.append({name: _kept(operand)})
        elif name.startswith("$"):
            parts.append({name: _abstract(operand)})
        else:
            parts.append({name: _query_condition(operand)})
    return {"$and": parts}


def _query_parts(filter: Any) -> list[Any]:
    return list(filter["$and"]) if isinstance(filter, dict) and "$and" in filter else [filter]


def _query_condition(operand: Any) -> Any:
    if not _is_condition(operand):
        return {"$eq": _abstract(operand)}
    shown: dict[str, Any] = {}
    for operator, value in operand.items():
        if operator == "$not":
            shown[operator] = _query_condition(value)
        elif operator == "$elemMatch" and isinstance(value, dict):
            shown[operator] = _query_condition(value) if _is_condition(value) else _query_filter(value)
        elif operator == "$type":
            shown[operator] = _kept(value if isinstance(value, list) else [value])
        elif operator in _KEPT_OPERANDS:
            shown[operator] = _kept(value)
        elif operator == "$all" and isinstance(value, list):
            shown[operator] = [_abstract(element) for element in value]
        else:
            shown[operator] = _abstract(value)
    return shown


def _is_condition(operand: Any) -> bool:
    return isinstance(operand, dict) and next(iter(operand), "").startswith("$")


def _abstract(value: Any) -> Any:
    """Return a value without its content: fields of documents and names of fields stay, literals become types."""
    if isinstance(value, dict):
        return {name: _abstract(inner) for name, inner in value.items()}
    if isinstance(value, list):
        kinds = sorted({repr(_abstract(element)) for element in value})
        if any("$" in kind or kind.startswith("{") for kind in kinds):
            return [_abstract(element) for element in value]
        return "?array<" + (kinds[0] if len(kinds) == 1 else "?" if kinds else "") + ">"
    if isinstance(value, str) and value.startswith("$"):
        return value
    return "?number" if is_number(value) else f"?{type_name(value)}"


def _kept(value: Any) -> Any:
    """Return a value in a form that is equal for equal numbers of several types."""
    if isinstance(value, dict):
        return {name: _kept(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_kept(element) for element in value]
    return str(value) if is_number(value) else repr(value)

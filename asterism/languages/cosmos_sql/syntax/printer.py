"""A tree back to query text, in one canonical spelling: `parse_query(to_text(query)) == query`.

Every operator has its own parentheses, as in the queries that the service rewrites, so that no text depends on
precedence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Final, cast

from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.lexer import ALIAS_WORDS, EXACT_KEYWORDS, KEYWORDS
from asterism.languages.cosmos_sql.syntax.tree import Node, SubqueryKind
from asterism.values.undefined import UNDEFINED

_NAME = re.compile(r"[^\W\d]\w*")
# Clauses of a whole query are on lines of their own.
_BETWEEN_CLAUSES = "\n"


def to_text(node: Node) -> str:
    """Return the text of a query, a clause or an expression."""
    print_node = _PRINTERS[type(node)]
    return print_node(node)


# --- expressions ----------------------------------------------------------------------------------------------------


def _value(value: object) -> str:
    if value is UNDEFINED:
        return "undefined"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "NaN" if value != value else "Infinity"
    return json.dumps(value, ensure_ascii=False)


def _steps(steps: tuple[str | int, ...]) -> str:
    return "".join(map(_step, steps))


def _step(step: str | int) -> str:
    if isinstance(step, str) and is_plain_name(step):
        return f".{step}"
    return f"[{_value(step)}]"


def is_plain_name(name: str) -> bool:
    """Return whether `name` can follow a point: it is an identifier and not a keyword."""
    upper = name.upper()
    is_reserved = name in EXACT_KEYWORDS or (upper in KEYWORDS and upper not in ALIAS_WORDS)
    return _NAME.fullmatch(name) is not None and not is_reserved


def _path(node: tree.Path) -> str:
    return node.alias + _steps(node.steps)


def _member(node: tree.Member) -> str:
    target = to_text(node.target)
    if isinstance(node.target, tree.Unary):
        target = f"({target})"
    if isinstance(node.step, tree.Literal) and isinstance(node.step.value, str):
        # A point after a number would belong to the number.
        return target + (f"[{_value(node.step.value)}]" if target[-1].isdigit() else _step(node.step.value))
    return f"{target}[{to_text(node.step)}]"


def _list(nodes: tuple[tree.Expression, ...]) -> str:
    return ", ".join(map(to_text, nodes))


def _object(node: tree.ObjectLiteral) -> str:
    return "{" + ", ".join(f"{_value(name)}: {to_text(value)}" for name, value in node.properties) + "}"


def _unary(node: tree.Unary) -> str:
    if node.operator == "NOT":
        return f"(NOT {to_text(node.operand)})"
    operand = to_text(node.operand)
    # Two signs in a row would begin a comment.
    return f"{node.operator}({operand})" if isinstance(node.operand, tree.Unary) else f"{node.operator}{operand}"


def _chain(operands: tuple[tree.Expression, ...], word: str) -> str:
    return "(" + f" {word} ".join(map(to_text, operands)) + ")"


def _conditional(node: tree.Conditional) -> str:
    return f"({to_text(node.condition)} ? {to_text(node.consequent)} : {to_text(node.alternative)})"


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _in(node: tree.In) -> str:
    return f"({to_text(node.needle)} {_not(node.negated)}IN ({_list(node.haystack)}))"


def _between(node: tree.Between) -> str:
    bounds = f"{to_text(node.low)} AND {to_text(node.high)}"
    return f"({to_text(node.value)} {_not(node.negated)}BETWEEN {bounds})"


def _like(node: tree.Like) -> str:
    escape = "" if node.escape is None else f" ESCAPE {_value(node.escape)}"
    return f"({to_text(node.value)} {_not(node.negated)}LIKE {to_text(node.pattern)}{escape})"


def _call(node: tree.Call) -> str:
    return f"{'udf.' if node.is_udf else ''}{node.name}({_list(node.arguments)})"


def _subquery(node: tree.Subquery) -> str:
    word = "" if node.kind is SubqueryKind.SCALAR else node.kind.value
    return f"{word}({_clauses(node.query, ' ')})"


# --- clauses --------------------------------------------------------------------------------------------------------


def _select_item(node: tree.SelectItem) -> str:
    return to_text(node.expression) + _as(node.alias)


def _as(alias: str | None) -> str:
    return "" if alias is None else f" AS {alias}"


def _select(node: tree.Select) -> str:
    distinct = "DISTINCT " if node.distinct else ""
    top = "" if node.top is None else f"TOP {to_text(node.top)} "
    return f"SELECT {distinct}{top}{to_text(node.selection)}"


def _source(node: tree.Source) -> str:
    collection = to_text(node.collection)
    return f"{node.alias} IN {collection}" if node.is_iterator else collection + _as(node.alias)


def _from(node: tree.From) -> str:
    return "FROM " + " JOIN ".join(map(_source, (node.source, *node.joins)))


def _order_item(node: tree.OrderItem) -> str:
    direction = (" DESC" if node.descending else " ASC") if node.is_explicit else ""
    return to_text(node.expression) + direction


def _order_by(node: tree.OrderBy) -> str:
    return f"ORDER BY {'RANK ' if node.by_rank else ''}" + ", ".join(map(_order_item, node.items))


def _clauses(query: tree.Query, between: str) -> str:
    clauses = [to_text(query.select)]
    clauses += [to_text(query.from_clause)] if query.from_clause else []
    clauses += [f"WHERE {to_text(query.where)}"] if query.where else []
    rest = (query.group_by, query.order_by, query.offset_limit)
    return between.join([*clauses, *(to_text(clause) for clause in rest if clause)])


# A line for each kind of node. The table's own type cannot express that each function takes the node of its key.
_PRINTERS: Final = cast(
    "dict[type[Node], Callable[[Node], str]]",
    {
        tree.Literal: lambda node: _value(node.value),
        tree.Parameter: lambda node: node.name,
        tree.Path: _path,
        tree.Member: _member,
        tree.ArrayLiteral: lambda node: f"[{_list(node.items)}]",
        tree.ObjectLiteral: _object,
        tree.Unary: _unary,
        tree.Binary: lambda node: f"({to_text(node.left)} {node.operator} {to_text(node.right)})",
        tree.And: lambda node: _chain(node.operands, "AND"),
        tree.Or: lambda node: _chain(node.operands, "OR"),
        tree.Conditional: _conditional,
        tree.Coalesce: lambda node: f"({to_text(node.left)} ?? {to_text(node.right)})",
        tree.In: _in,
        tree.Between: _between,
        tree.Like: _like,
        tree.Call: _call,
        tree.Subquery: _subquery,
        tree.SelectStar: lambda _node: "*",
        tree.SelectValue: lambda node: f"VALUE {to_text(node.expression)}",
        tree.SelectItem: _select_item,
        tree.SelectList: lambda node: ", ".join(map(_select_item, node.items)),
        tree.Select: _select,
        tree.SubqueryCollection: lambda node: f"({_clauses(node.query, ' ')})",
        tree.Source: _source,
        tree.From: _from,
        tree.GroupBy: lambda node: f"GROUP BY {_list(node.expressions)}",
        tree.OrderItem: _order_item,
        tree.OrderBy: _order_by,
        tree.OffsetLimit: lambda node: f"OFFSET {to_text(node.offset)} LIMIT {to_text(node.limit)}",
        tree.Query: lambda node: _clauses(node, _BETWEEN_CLAUSES),
    },
)

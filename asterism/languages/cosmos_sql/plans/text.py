"""A rewritten query as text, laid out and spelled as by the service.

Clauses and joins are on lines of their own, a subquery in FROM is indented, and functions keep the spelling of the
text that the client sent.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from textwrap import indent
from typing import TypeVar, cast

from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.printer import to_text

_NodeType = TypeVar("_NodeType", bound=tree.Node)


def with_spelling(node: _NodeType, text: str) -> _NodeType:
    """Return `node`, a tree parsed from `text` or rewritten from it, with functions spelled as in the text."""
    return cast(_NodeType, _respell(node, text))


def _respell(node: tree.Node, text: str) -> tree.Node:
    changed = tree.with_children(node, partial(_respell, text=text))
    if not isinstance(changed, tree.Call) or changed.is_udf:
        return changed
    written = text[changed.name_span.start : changed.name_span.end]
    # Calls that the plan has added are not in the text.
    return replace(changed, name=written) if written.upper() == changed.name else changed


def query_text(query: tree.Query) -> str:
    """Return the text of the whole query."""
    lines = [to_text(query.select)]
    if query.from_clause is not None:
        sources = (query.from_clause.source, *query.from_clause.joins)
        lines.append("FROM " + "\nJOIN ".join(map(_source_text, sources)))
    if query.where is not None:
        lines.append(f"WHERE {to_text(query.where)}")
    rest = (query.group_by, query.order_by, query.offset_limit)
    return "\n".join([*lines, *(to_text(clause) for clause in rest if clause is not None)])


def _source_text(source: tree.Source) -> str:
    if not isinstance(source.collection, tree.SubqueryCollection):
        return to_text(source)
    lines = f"(\n{indent(query_text(source.collection.query), '    ')}\n)"
    if source.is_iterator:
        return f"{source.alias} IN {lines}"
    return lines if source.alias is None else f"{lines} AS {source.alias}"

"""The one place that knows what this version reads but does not run: search by full text and by vectors."""

from __future__ import annotations

from typing import Final, NoReturn

from asterism.errors import MalformedQuery
from asterism.query import tree
from asterism.query.token_stream import SYNTAX_ERROR
from asterism.query.tree import Query, Span

UNKNOWN_FUNCTION: Final = "SC2005"

_FUNCTION_NAMES = """
    FULLTEXTCONTAINS FULLTEXTCONTAINSALL FULLTEXTCONTAINSANY FULLTEXTSCORE RRF VECTORDISTANCE
"""
FUNCTIONS_NOT_RUN: Final = frozenset(_FUNCTION_NAMES.split())


def refuse_clauses_not_run(query: Query) -> None:
    """Raises MalformedQuery for a clause that this version does not run."""
    if query.order_by is not None and query.order_by.by_rank:
        _refuse("ORDER BY RANK", query.order_by.span)


def refuse_call(call: tree.Call) -> NoReturn:
    """The error for a function that is not among those that run: not yet, or not known at all."""
    if call.name in FUNCTIONS_NOT_RUN:
        _refuse(f"the function {call.name}", call.name_span)
    reason = f"'{call.name}' is not a recognized built-in function name."
    raise MalformedQuery(UNKNOWN_FUNCTION, reason, call.name_span.start, call.name_span.end)


def _refuse(what: str, span: Span) -> NoReturn:
    raise MalformedQuery(SYNTAX_ERROR, f"This version does not run {what} yet.", span.start, span.end)

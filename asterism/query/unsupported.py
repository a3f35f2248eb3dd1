"""The one place that knows what this version reads but does not run: clauses, kinds of expressions, functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from asterism.errors import MalformedQuery
from asterism.query import tree
from asterism.query.token_stream import SYNTAX_ERROR
from asterism.query.tree import Node, Query, Span

_UNKNOWN_FUNCTION = "SC2005"

# Each clause with how to find it: the place where it stands in the query, or None.
_CLAUSES: Final[tuple[tuple[str, Callable[[Query], Span | None]], ...]] = (
    ("DISTINCT", lambda query: query.select.distinct),
    ("TOP", lambda query: _span(query.select.top)),
    ("a subquery in FROM", lambda query: _subquery_in_from(query)),
    ("IN in FROM", lambda query: _iterator(query)),
    (
        "JOIN",
        lambda query: _span(query.from_clause.joins[0]) if query.from_clause and query.from_clause.joins else None,
    ),
    ("GROUP BY", lambda query: _span(query.group_by)),
    ("ORDER BY", lambda query: _span(query.order_by)),
    ("OFFSET LIMIT", lambda query: _span(query.offset_limit)),
)

_FUNCTION_NAMES = """
    AVG COUNT COUNTIF MAX MIN SUM MAKELIST MAKESET
    ARRAY_AVG ARRAY_CONCAT ARRAY_CONTAINS ARRAY_CONTAINS_ALL ARRAY_CONTAINS_ANY ARRAY_LENGTH ARRAY_MAX ARRAY_MEDIAN
    ARRAY_MIN ARRAY_SLICE ARRAY_SUM CHOOSE OBJECTTOARRAY SETDIFFERENCE SETEQUAL SETINTERSECT SETUNION
    AGO NOW DATETIMEADD DATETIMEBIN DATETIMEDIFF DATETIMEFORMAT DATETIMEFROMPARTS DATETIMEPART DATETIMETOTICKS
    DATETIMETOTIMESTAMP DAY MONTH YEAR GETCURRENTDATETIME GETCURRENTTICKS GETCURRENTTIMESTAMP GETCURRENTDATETIMESTATIC
    GETCURRENTTICKSSTATIC GETCURRENTTIMESTAMPSTATIC TICKSTODATETIME TIMESTAMPTODATETIME IS_DATETIME DOCUMENTID
    ABS ACOS ASIN ATAN ATN2 CEILING COS COT DEGREES EXP FLOOR INTADD INTSUB INTMUL INTDIV INTMOD INTBITAND INTBITOR
    INTBITXOR INTBITNOT INTBITLEFTSHIFT INTBITRIGHTSHIFT LOG LOG10 NUMBERBIN PI POWER RADIANS RAND ROUND SIGN SIN SQRT
    SQUARE TAN TRUNC
    CONCAT CONTAINS CONTAINS_ALL_CI CONTAINS_ALL_CS CONTAINS_ANY_CI CONTAINS_ANY_CS ENDSWITH INDEX_OF LASTINDEXOF LEFT
    LENGTH LOWER LTRIM REGEXMATCH REGEXEXTRACT REGEXEXTRACTALL REPLACE REPLICATE REVERSE RIGHT RTRIM STARTSWITH
    STRINGEQUALS STRINGJOIN STRINGSPLIT STRINGTOARRAY STRINGTOBOOLEAN STRINGTONULL STRINGTONUMBER STRINGTOOBJECT
    SUBSTRING SUBSTRINGAFTER SUBSTRINGBEFORE LASTSUBSTRINGAFTER LASTSUBSTRINGBEFORE TOSTRING TRIM UPPER
    ST_AREA ST_DISTANCE ST_INTERSECTS ST_ISVALID ST_ISVALIDDETAILED ST_WITHIN
    FULLTEXTCONTAINS FULLTEXTCONTAINSALL FULLTEXTCONTAINSANY FULLTEXTSCORE RRF VECTORDISTANCE
"""
FUNCTIONS_NOT_RUN: Final = frozenset(_FUNCTION_NAMES.split())


def refuse_clauses_not_run(query: Query) -> None:
    """Raises MalformedQuery for the first clause that this version does not run."""
    for name, find in _CLAUSES:
        span = find(query)
        if span is not None:
            _refuse(name, span)


def refuse_subquery(subquery: tree.Subquery) -> NoReturn:
    _refuse(subquery.kind.value, subquery.span)


def refuse_call(call: tree.Call) -> NoReturn:
    """The error for a function that is not among those that run: not yet, or not known at all."""
    if call.is_udf:
        _refuse(f"udf.{call.name}", call.span)
    if call.name in FUNCTIONS_NOT_RUN:
        _refuse(f"the function {call.name}", call.name_span)
    reason = f"'{call.name}' is not a recognized built-in function name."
    raise MalformedQuery(_UNKNOWN_FUNCTION, reason, call.name_span.start, call.name_span.end)


def _refuse(what: str, span: Span) -> NoReturn:
    raise MalformedQuery(SYNTAX_ERROR, f"This version does not run {what} yet.", span.start, span.end)


def _span(node: Node | None) -> Span | None:
    return None if node is None else node.span


def _subquery_in_from(query: Query) -> Span | None:
    collection = query.from_clause.source.collection if query.from_clause else None
    return collection.span if isinstance(collection, tree.SubqueryCollection) else None


def _iterator(query: Query) -> Span | None:
    source = query.from_clause.source if query.from_clause else None
    return source.span if source and source.is_iterator else None

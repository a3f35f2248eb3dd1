"""ORDER BY RANK: the client queries each score separately and fuses the ranks.

The score of a text needs statistics over all partitions, so the client first asks each partition for its own and puts
their sums into the queries of the scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from asterism.languages.cosmos_sql.compiling.constant_steps import with_constant_steps
from asterism.languages.cosmos_sql.compiling.distance import FARTHEST, DistanceFunctionOf, is_descending
from asterism.languages.cosmos_sql.compiling.rank_clause import TEXT_SCORE, scores_and_weights, terms_of
from asterism.languages.cosmos_sql.compiling.scope import Scope
from asterism.languages.cosmos_sql.plans.info import QueryInfo
from asterism.languages.cosmos_sql.plans.rewrite import NOWHERE, call, ordered_rows, with_payload
from asterism.languages.cosmos_sql.plans.text import query_text, with_spelling
from asterism.languages.cosmos_sql.plans.window import (
    ClientWindow,
    client_window,
    with_partition_window,
    without_window,
)
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.printer import to_text
from asterism.languages.cosmos_sql.syntax.tree import Expression
from asterism.reading.limits import COUNT_MAX
from asterism.reading.window import Window

_STATISTIC: Final = "{{documentdb-formattablehybridsearchquery-{}}}"

# Rows to fetch of each score, or twice the wanted results: a row that is low in one score may be high in all.
_ROWS_MIN: Final = 120
_ROWS_PER_RESULT: Final = 2
# The worst score, for items that do not have one.
_NO_TEXT_SCORE: Final = -1
_NO_VECTOR_SCORE: Final = -FARTHEST


@dataclass(frozen=True, slots=True)
class SearchInfo:
    statistics_query: str
    components: tuple[QueryInfo, ...]
    # Empty if all scores count the same.
    weights: tuple[float, ...]
    skip: int | None
    take: int | None
    requires_statistics: bool

    def to_json(self) -> dict[str, object]:
        return {
            "globalStatisticsQuery": self.statistics_query,
            "componentQueryInfos": [component.to_json() for component in self.components],
            "componentWithoutPayloadQueryInfos": [],
            "projectionQueryInfo": None,
            "componentWeights": list(self.weights),
            "skip": self.skip,
            "take": self.take,
            "requiresGlobalStatistics": self.requires_statistics,
        }

    def features(self) -> Iterator[str]:
        yield "HybridSearch"
        if self.weights:
            yield "WeightedRankFusion"


@dataclass(frozen=True, slots=True)
class _Score:
    expression: Expression
    descends: bool
    # True if the text names the direction: that of a vector follows from its container.
    is_explicit: bool
    when_missing: Expression


def search_info(
    query: tree.Query,
    order_by: tree.OrderBy,
    *,
    text: str,
    scope: Scope,
    window: Window,
    distance_function_of: DistanceFunctionOf,
) -> SearchInfo:
    """Return the search part of a plan. Raises MalformedRequest for an order that is not a rank."""
    calls, weights = scores_and_weights(query, order_by, scope.parameters)
    texts = [score for score in calls if score.name == TEXT_SCORE]
    scores = [
        _text_score(score, texts.index(score), weight)
        if score.name == TEXT_SCORE
        else _vector_score(
            score, weight, is_descending(with_constant_steps(score, scope.parameters), scope, distance_function_of)
        )
        for score, weight in zip(calls, weights or (1.0,) * len(calls), strict=True)
    ]
    wanted = client_window(query, window)
    rows_window = _rows_window(wanted)
    rows = _rows_of_scores(without_window(query), scores)
    components = [_component(rows, score, rows_window, text) for score in scores]
    return SearchInfo(
        statistics_query=query_text(with_spelling(_statistics(query, texts), text)),
        components=tuple(components),
        weights=tuple(map(abs, weights)),
        skip=wanted.offset,
        take=wanted.top if wanted.limit is None else wanted.limit,
        requires_statistics=bool(texts),
    )


# --- the scores -----------------------------------------------------------------------------------------------------


def _text_score(score: tree.Call, index: int, weight: float) -> _Score:
    """Return the score of a text. `index` is the place of its statistics among those of all texts."""
    path, terms = score.arguments[0], tree.ArrayLiteral(terms_of(score), span=NOWHERE)
    names = ("totaldocumentcount", f"totalwordcount-{index}", f"hitcountsarray-{index}")
    statistics = [tree.Parameter(_STATISTIC.format(name), span=NOWHERE) for name in names]
    missing = _NO_TEXT_SCORE if weight >= 0 else -_NO_VECTOR_SCORE
    return _Score(call("_FullTextScore", path, terms, *statistics), weight >= 0, True, _literal(missing))


def _vector_score(score: tree.Call, weight: float, near_is_large: bool) -> _Score:
    """Return the score of a vector; a negative weight prefers the farthest."""
    descends = near_is_large if weight >= 0 else not near_is_large
    missing = _literal(_NO_VECTOR_SCORE if descends else -_NO_VECTOR_SCORE)
    return _Score(call("_VectorScore", *score.arguments), descends, weight < 0, missing)


# --- the queries ----------------------------------------------------------------------------------------------------


def _rows_window(wanted: ClientWindow) -> ClientWindow:
    """Return the window of rows that the client fetches of each score."""
    if wanted.limit is not None:
        return ClientWindow(offset=0, limit=_rows_of_each((wanted.offset or 0) + wanted.limit))
    return wanted if wanted.top is None else ClientWindow(top=_rows_of_each(wanted.top))


def _rows_of_each(results: int) -> int:
    return min(max(_ROWS_MIN, _ROWS_PER_RESULT * results), COUNT_MAX)


def _rows_of_scores(query: tree.Query, scores: list[_Score]) -> tuple[tree.Query, Expression]:
    """Return the query, and the payload of its rows: the selected value, and all scores of the row."""
    query, payload = with_payload(query)
    columns = [tree.Coalesce(score.expression, score.when_missing, span=NOWHERE) for score in scores]
    properties = (("payload", payload), ("componentScores", tree.ArrayLiteral(tuple(columns), span=NOWHERE)))
    return query, tree.ObjectLiteral(properties, span=NOWHERE)


def _component(rows: tuple[tree.Query, Expression], score: _Score, window: ClientWindow, text: str) -> QueryInfo:
    item = tree.OrderItem(score.expression, score.descends, score.is_explicit, span=NOWHERE)
    query, payload = rows
    component = ordered_rows(query, tree.OrderBy((item,), False, span=NOWHERE), payload)
    component = with_partition_window(component, window)
    if window.top is not None:
        component = replace(component, select=replace(component.select, top=_literal(window.top)))
    return QueryInfo(
        window=window,
        order_by=("Descending" if score.descends else "Ascending",),
        order_by_expressions=(to_text(with_spelling(score.expression, text)),),
        rewritten_query=query_text(with_spelling(component, text)),
        has_non_streaming_order_by=True,
    )


def _statistics(query: tree.Query, texts: list[tree.Call]) -> tree.Query:
    """Return the query for statistics, without the filter: a word is as rare as it is in the container."""
    statistics = tree.ArrayLiteral(tuple(map(_statistics_of, texts)), span=NOWHERE)
    items = (("documentCount", call("COUNT", _literal(1))), ("fullTextStatistics", statistics))
    selection = tree.SelectList(
        tuple(tree.SelectItem(expression, alias, span=NOWHERE) for alias, expression in items), span=NOWHERE
    )
    return tree.Query(tree.Select(selection, span=NOWHERE), query.from_clause, span=NOWHERE)


def _statistics_of(score: tree.Call) -> Expression:
    path = score.arguments[0]
    hits = [call("COUNTIF", call("FullTextContains", path, term)) for term in terms_of(score)]
    words = call("SUM", call("_FullTextWordCount", path))
    properties = (("totalWordCount", words), ("hitCounts", tree.ArrayLiteral(tuple(hits), span=NOWHERE)))
    return tree.ObjectLiteral(properties, span=NOWHERE)


def _literal(value: int | float) -> Expression:
    if value >= 0:
        return tree.Literal(value, span=NOWHERE)
    return tree.Unary("-", tree.Literal(-value, span=NOWHERE), span=NOWHERE)

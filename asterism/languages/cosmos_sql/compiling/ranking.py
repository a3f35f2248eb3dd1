"""ORDER BY RANK where one scope holds all rows: scores, their ranks, and the fusion of these.

A score of a text needs numbers over all rows, so a row is first measured, and scored when all are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, cast

from asterism.languages.cosmos_sql.compiling.distance import is_descending
from asterism.languages.cosmos_sql.compiling.environment import Environment
from asterism.languages.cosmos_sql.compiling.expression_compiler import ExpressionCompiler
from asterism.languages.cosmos_sql.compiling.rank_clause import TEXT_SCORE, scores_and_weights, terms_of
from asterism.languages.cosmos_sql.compiling.scope import Scope
from asterism.languages.cosmos_sql.functions.full_text import TermCounts, count_terms, relevance
from asterism.languages.cosmos_sql.syntax import tree
from asterism.reading.row_source import Row
from asterism.values.undefined import UNDEFINED

# How little the first ranks of one score stand out against those of another: what clients take as well.
_RANK_CONSTANT: Final = 60

# What a score is made of: the counts of a text, the number of a distance, None for a row that has neither.
Measure: TypeAlias = TermCounts | float | None
Measures: TypeAlias = tuple[Measure, ...]


class RankedRow(NamedTuple):
    measures: Measures
    result: object


@dataclass(slots=True)
class Statistics:
    """Over all rows: how many there are, and for each score of a text the words, and the rows with each term."""

    documents: int
    words: list[int]
    hits: list[list[int]]

    def add(self, measures: Measures) -> None:
        self.documents += 1
        for index, measure in enumerate(measures):
            if isinstance(measure, TermCounts):
                self.words[index] += measure.words
                self.hits[index] = [
                    hit + bool(count) for hit, count in zip(self.hits[index], measure.terms, strict=True)
                ]

    def merge(self, other: Statistics) -> None:
        self.documents += other.documents
        self.words = [one + more for one, more in zip(self.words, other.words, strict=True)]
        pairs = zip(self.hits, other.hits, strict=True)
        self.hits = [[one + more for one, more in zip(ours, theirs, strict=True)] for ours, theirs in pairs]


@dataclass(frozen=True, slots=True)
class Score:
    measure: Callable[[Row], Measure]
    # How many terms a text is scored by; none for a distance.
    terms: int
    # Whether the best have the largest numbers.
    descends: bool
    weight: float


@dataclass(frozen=True, slots=True)
class Ranking:
    scores: tuple[Score, ...]

    def new_statistics(self) -> Statistics:
        return Statistics(0, [0] * len(self.scores), [[0] * score.terms for score in self.scores])

    def measure(self, row: Row) -> Measures:
        return tuple(score.measure(row) for score in self.scores)

    def ranked(self, rows: Sequence[RankedRow], statistics: Statistics) -> list[RankedRow]:
        """The best first; those that are equally good in the order they came in."""
        fused = [0.0] * len(rows)
        for index, score in enumerate(self.scores):
            words, hits = statistics.words[index], statistics.hits[index]
            numbers = [_number(row.measures[index], statistics.documents, words, hits) for row in rows]
            for place, rank in enumerate(_ranks(numbers, descends=score.descends)):
                fused[place] += score.weight / (_RANK_CONSTANT + rank)
        places = sorted(range(len(rows)), key=lambda place: -fused[place])
        return [rows[place] for place in places]


def compile_ranking(
    query: tree.Query, scope: Scope, rows: ExpressionCompiler, environment: Environment
) -> Ranking | None:
    """None for a query that is no search. Raises MalformedRequest for an order that is no rank."""
    if query.order_by is None or not query.order_by.by_rank:
        return None
    calls, weights = scores_and_weights(query, query.order_by, scope.parameters)
    scores = []
    for call, weight in zip(calls, weights or (1.0,) * len(calls), strict=True):
        if call.name == TEXT_SCORE:
            scores.append(_text_score(call, weight, rows))
        else:
            near_is_large = is_descending(call, scope, environment.distance_function_of)
            # A weight below zero looks for the farthest.
            scores.append(Score(_distance(call, rows), 0, near_is_large is (weight >= 0), abs(weight)))
    return Ranking(tuple(scores))


def _text_score(call: tree.Call, weight: float, rows: ExpressionCompiler) -> Score:
    text, terms = rows.compile(call.arguments[0]), [rows.compile(term) for term in terms_of(call)]

    def measure(row: Row) -> Measure:
        return count_terms(text(row), [term(row) for term in terms])

    return Score(measure, len(terms), weight >= 0, abs(weight))


def _distance(call: tree.Call, rows: ExpressionCompiler) -> Callable[[Row], Measure]:
    distance = rows.compile(call)

    def measure(row: Row) -> Measure:
        number = distance(row)
        return None if number is UNDEFINED else cast(float, number)

    return measure


def _number(measure: Measure, documents: int, words: int, hits: Sequence[int]) -> float | None:
    return relevance(measure, documents, words, hits) if isinstance(measure, TermCounts) else measure


def _ranks(numbers: Sequence[float | None], *, descends: bool) -> list[int]:
    """From 1 for the best; equal numbers have the same rank, and what has none comes last."""
    known = sorted({number for number in numbers if number is not None}, reverse=descends)
    rank_of: dict[float | None, int] = {number: rank for rank, number in enumerate(known, 1)}
    rank_of[None] = len(known) + 1
    return [rank_of[number] for number in numbers]

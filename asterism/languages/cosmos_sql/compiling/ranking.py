"""ORDER BY RANK in a single scope with all rows: scores, their ranks, and the fusion of the ranks.

The score of a text needs statistics over all rows, so rows are measured first, and scored when all are known.
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

# Dampens the weight of the first ranks of a score (the k of reciprocal rank fusion); clients use the same value.
_RANK_CONSTANT: Final = 60

# The input of a score: the counts of a text, the number of a distance, or None for a row that has neither.
Measure: TypeAlias = TermCounts | float | None
Measures: TypeAlias = tuple[Measure, ...]


class RankedRow(NamedTuple):
    measures: Measures
    result: object


@dataclass(slots=True)
class Statistics:
    """Counts over all rows: the rows, and for each score of a text the words, and the rows with each term."""

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
        self.words = [words + more for words, more in zip(self.words, other.words, strict=True)]
        pairs = zip(self.hits, other.hits, strict=True)
        self.hits = [[hit + more for hit, more in zip(hits, others, strict=True)] for hits, others in pairs]


@dataclass(frozen=True, slots=True)
class Score:
    measure: Callable[[Row], Measure]
    # The number of terms of a text; zero for a distance.
    terms: int
    # True if the best rows have the largest numbers.
    descends: bool
    weight: float


@dataclass(frozen=True, slots=True)
class RankFusion:
    scores: tuple[Score, ...]

    def new_statistics(self) -> Statistics:
        return Statistics(0, [0] * len(self.scores), [[0] * score.terms for score in self.scores])

    def measure(self, row: Row) -> Measures:
        return tuple(score.measure(row) for score in self.scores)

    def ranked(self, rows: Sequence[RankedRow], statistics: Statistics) -> list[RankedRow]:
        """Return the rows, best first; equally good rows keep their order."""
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
) -> RankFusion | None:
    """Return the fusion of a search, None for other queries. Raises MalformedRequest if the order is not a rank."""
    if query.order_by is None or not query.order_by.by_rank:
        return None
    calls, weights = scores_and_weights(query, query.order_by, scope.parameters)
    scores = []
    for call, weight in zip(calls, weights or (1.0,) * len(calls), strict=True):
        if call.name == TEXT_SCORE:
            scores.append(_text_score(call, weight, rows))
        else:
            near_is_large = is_descending(call, scope, environment.distance_function_of)
            # A negative weight prefers the farthest.
            scores.append(Score(_distance(call, rows), 0, near_is_large is (weight >= 0), abs(weight)))
    return RankFusion(tuple(scores))


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
    """Return ranks from 1 for the best; equal numbers have the same rank, and rows without a number the last."""
    known = sorted({number for number in numbers if number is not None}, reverse=descends)
    rank_of: dict[float | None, int] = {number: rank for rank, number in enumerate(known, 1)}
    rank_of[None] = len(known) + 1
    return [rank_of[number] for number in numbers]

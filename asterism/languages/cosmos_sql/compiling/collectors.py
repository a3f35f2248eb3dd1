"""The collector of each kind of query, and that of a search, whose order is known only when all rows are."""

from __future__ import annotations

from collections.abc import Iterable

from asterism.languages.cosmos_sql.compiling.pipeline import Pipeline
from asterism.languages.cosmos_sql.compiling.ranking import RankedRow, RankFusion, Statistics
from asterism.reading.collectors import Collector, GroupCollector, OrderedCollector, ResultCollector
from asterism.reading.row_source import Row
from asterism.values.json.value_order import JSON_ORDER
from asterism.values.undefined import UNDEFINED


class RankedCollector(Collector):
    """Rows with the measures of their scores. Rows that the filter leaves out count in the statistics too."""

    def __init__(self, pipeline: Pipeline, ranking: RankFusion) -> None:
        super().__init__(pipeline, JSON_ORDER)
        self._pipeline = pipeline
        self._ranking = ranking
        self._statistics = ranking.new_statistics()
        self._rows: list[RankedRow] = []

    def take(self, around: Row, number: int = 0) -> None:  # noqa: ARG002
        pipeline, ranking, make_rows = self._pipeline, self._ranking, self._pipeline.sources.make_rows
        for row in (around,) if make_rows is None else make_rows(around):
            measures = ranking.measure(row)
            self._statistics.add(measures)
            if pipeline.matches(row) and (result := pipeline.project(row)) is not UNDEFINED:
                self._keep(RankedRow(measures, result))

    def _keep(self, row: RankedRow) -> None:
        self._memory.hold(row)
        self._rows.append(row)

    def partial_state(self) -> tuple[Statistics, list[RankedRow]]:
        return self._statistics, list(self._rows)

    def merge_state(self, state: tuple[Statistics, list[RankedRow]]) -> None:
        statistics, rows = state
        self._statistics.merge(statistics)
        for row in rows:
            self._keep(row)

    def _all_results(self) -> Iterable[object]:
        return (row.result for row in self._ranking.ranked(self._rows, self._statistics))


def new_collector(pipeline: Pipeline) -> Collector:
    """Return the collector of the query's kind."""
    if pipeline.ranking is not None:
        return RankedCollector(pipeline, pipeline.ranking)
    if pipeline.grouping is not None:
        return GroupCollector(pipeline, JSON_ORDER, pipeline.grouping, pipeline.group_order)
    return OrderedCollector(pipeline, JSON_ORDER) if pipeline.order else ResultCollector(pipeline, JSON_ORDER)

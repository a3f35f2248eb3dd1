"""FROM: the rows that a query makes of an item, or a subquery of a row around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, cast

from asterism.languages.cosmos_sql.compiling.environment import Environment
from asterism.languages.cosmos_sql.compiling.path_access import path_reader
from asterism.languages.cosmos_sql.compiling.scope import OUTER, Scope, Steps, inferred_alias
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.token_stream import SYNTAX_ERROR
from asterism.reading.limits import JOINS_MAX, QueryMeter
from asterism.reading.row_source import Row
from asterism.values.undefined import UNDEFINED

RowMaker = Callable[[Row], Iterator[Row]]
_Values = Callable[[Row], Iterable[object]]

_NO_MORE: Final = object()


@dataclass(frozen=True, slots=True)
class Sources:
    """A compiled FROM clause."""

    scope: Scope
    # None if the passed row is itself the only row: no FROM, or a plain path.
    make_rows: RowMaker | None
    # The path below the row that must be defined for the row to exist; only for a plain path.
    root: Steps = ()
    # The path of `SELECT *`; None if FROM has no or several inputs.
    star: Steps | None = None


def compile_from(from_clause: tree.From | None, scope: Scope, environment: Environment) -> Sources:
    """Compile FROM. `scope` is that of the passed row: only the container's name, or the query around a subquery."""
    if from_clause is None:
        return Sources(replace(scope, sees_container=False), None)
    source = from_clause.source
    if isinstance(source.collection, tree.Path) and not source.is_iterator and not from_clause.joins:
        return _compile_path(source, source.collection, scope)
    return _compile_sources(from_clause, scope, environment)


def _compile_path(source: tree.Source, collection: tree.Path, scope: Scope) -> Sources:
    steps = scope.steps_of_collection(collection)
    alias = source.alias or inferred_alias(collection)
    bound = _with_item_aliases(scope.binding(alias, steps), source, scope)
    return Sources(bound, None, root=steps, star=steps)


def _compile_sources(from_clause: tree.From, scope: Scope, environment: Environment) -> Sources:
    if len(from_clause.joins) > JOINS_MAX:
        span = from_clause.joins[JOINS_MAX].span
        reason = f"The query has more than {JOINS_MAX} joins."
        raise MalformedQuery(SYNTAX_ERROR, reason, span.start, span.end)
    bound = scope.inside()
    slots: list[str] = []
    values = []
    seen: set[str] = set()
    for index, source in enumerate((from_clause.source, *from_clause.joins)):
        alias = _alias(source)
        if alias is not None and alias in seen:
            reason = f"The input alias '{alias}' is specified more than once in the FROM clause."
            raise MalformedQuery(SYNTAX_ERROR, reason, source.span.start, source.span.end)
        # The first source reads the row around, the others the new row.
        values.append(_values(source, scope if index == 0 else bound, environment))
        # Without an alias the slot has a name that is not an identifier.
        slots.append(alias or f"#{index}")
        bound = bound.binding(alias, (slots[-1],))
        seen.add(slots[-1])
    make_rows = _rows_of_source if len(slots) == 1 else _rows_of_product
    star = (slots[0],) if len(slots) == 1 else None
    bound = _with_item_aliases(bound, from_clause.source, scope)
    return Sources(bound, make_rows(slots, values, environment.meter), star=star)


def _with_item_aliases(bound: Scope, first: tree.Source, outer: Scope) -> Scope:
    """Return `bound` with the first source as a path in the item, if it is one."""
    collection, alias = first.collection, _alias(first)
    if not outer.sees_container or isinstance(collection, tree.SubqueryCollection) or first.is_iterator or not alias:
        return bound
    return replace(bound, item_aliases={alias: collection.steps})


def _alias(source: tree.Source) -> str | None:
    if source.alias is not None or isinstance(source.collection, tree.SubqueryCollection):
        return source.alias
    return inferred_alias(source.collection)


# --- rows -----------------------------------------------------------------------------------------------------------
# A single row is changed in place from value to value, so that a product of arrays costs no memory: callers evaluate a
# row before they take the next.


def _rows_of_source(slots: list[str], values: list[_Values], meter: QueryMeter) -> RowMaker:
    slot, only_values = slots[0], values[0]

    def rows(around: Row) -> Iterator[Row]:
        row: Row = {OUTER: around}
        mark = meter.mark
        for value in only_values(around):
            meter.row()
            row[slot] = value
            yield row
            meter.give_back_to(mark)

    return rows


def _rows_of_product(slots: list[str], values: list[_Values], meter: QueryMeter) -> RowMaker:
    """Return the maker of the product, in which the last source varies fastest. It uses a stack and not recursion:
    nested queries may all have many joins."""
    *outer_slots, last_slot = slots
    last_values = values[-1]
    last_outer = len(outer_slots) - 1

    def rows(around: Row) -> Iterator[Row]:
        row: Row = {OUTER: around}
        running = [iter(values[0](around))]
        marks = [meter.mark]
        while running:
            value = next(running[-1], _NO_MORE)
            if value is _NO_MORE:
                running.pop()
                meter.give_back_to(marks.pop())
                continue
            meter.row()
            level = len(running) - 1
            row[outer_slots[level]] = value
            if level < last_outer:
                marks.append(meter.mark)
                running.append(iter(values[level + 1](row)))
                continue
            mark = meter.mark
            for last_value in last_values(row):
                meter.row()
                row[last_slot] = last_value
                yield row
                meter.give_back_to(mark)

    return rows


def _values(source: tree.Source, scope: Scope, environment: Environment) -> _Values:
    """Return the values of a source for a row, without undefined values."""
    collection = source.collection
    if isinstance(collection, tree.SubqueryCollection):
        results = environment.results_of(collection.query, scope)
        return _elements_of_each(results) if source.is_iterator else results
    read = path_reader(scope.steps_of_collection(collection))
    if source.is_iterator:
        return lambda row: cast("list[object]", value) if type(value := read(row)) is list else ()
    return lambda row: () if (value := read(row)) is UNDEFINED else (value,)


def _elements_of_each(results: _Values) -> _Values:
    def elements(row: Row) -> Iterator[object]:
        for value in results(row):
            if isinstance(value, list):
                yield from value

    return elements

"""The stage $densify: documents for the steps of a series that have none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from asterism.languages.mongo.expressions.date_arithmetic import shift_date
from asterism.languages.mongo.expressions.paths import read_path, split_path
from asterism.languages.mongo.expressions.time_zones import UTC_ZONE
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.integers import whole_number
from asterism.languages.mongo.stages.keys import hash_key
from asterism.languages.mongo.stages.stage import (
    BATCH_DOCUMENTS,
    Batches,
    MemoryMeter,
    Pacer,
    RunContext,
    Scope,
    Stage,
    StageRow,
)
from asterism.languages.mongo.stages.windows.bounds import UNITS
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.numbers import add, multiply
from asterism.values.bson.order import sort_key
from asterism.values.bson.types import MISSING, DatetimeMS, Document

# The reference server's own limit.
GENERATED_MAX: Final = 500_000
Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """The values of a series: the first one and the distance of the others."""

    step: Any
    unit: str | None

    def at(self, first: Any, number: int) -> Any:
        if self.unit is not None:
            return DatetimeMS(shift_date(int(first), self.unit, number * self.step, UTC_ZONE))
        return add(first, multiply(self.step, number))

    def check(self, value: Any) -> None:
        """Refuse a value that has no place in the series."""
        if self.unit is None:
            if type(value) is DatetimeMS:
                raise MongoFailure(5733412, "a date in a densified field needs a 'unit'")
            if not is_number(value):
                raise MongoFailure(5733201, f"Densify field type must be numeric or date, found {type_name(value)}")
        elif type(value) is not DatetimeMS:
            raise MongoFailure(5733201, f"Densify field type must be a date with a 'unit', found {type_name(value)}")


@dataclass(frozen=True, slots=True)
class Densify:
    field: str
    partition_paths: tuple[str, ...]
    steps: Steps
    # "full", "partition", or the two ends, the second exclusive.
    bounds: Any


def _wrong_type(name: str, value: Any, wanted: str) -> MongoFailure:
    return MongoFailure(
        14, f"BSON field '$densify.{name}' is the wrong type '{type_name(value)}', expected type '{wanted}'"
    )


def _check_fields(place: str, value: Document, allowed: tuple[str, ...], required: tuple[str, ...]) -> None:
    for name in value:
        if name not in allowed:
            raise MongoFailure(40415, f"BSON field '{place}.{name}' is an unknown field.")
    for name in required:
        if name not in value:
            raise MongoFailure(40414, f"BSON field '{place}.{name}' is missing but a required field")


def _read(specification: Any) -> Densify:
    if type(specification) is not dict:
        raise MongoFailure(5733414, "The $densify stage specification must be an object")
    _check_fields("$densify", specification, ("field", "partitionByFields", "range"), ("field", "range"))
    field, paths = specification["field"], specification.get("partitionByFields", [])
    if type(field) is not str:
        raise _wrong_type("field", field, "string")
    split_path(field)
    if type(paths) is not list or not all(type(path) is str for path in paths):
        raise _wrong_type("partitionByFields", paths, "array of strings")
    for path in paths:
        split_path(path)
        if path == field or path.startswith(field + ".") or field.startswith(path + "."):
            raise MongoFailure(8993000, "a field of 'partitionByFields' overlaps with the densified field")
    range_ = specification["range"]
    if type(range_) is not dict:
        raise _wrong_type("range", range_, "object")
    _check_fields("$densify.range", range_, ("step", "unit", "bounds"), ("step", "bounds"))
    steps = _read_steps(range_)
    return Densify(field, tuple(paths), steps, _read_bounds(range_["bounds"], steps, paths))


def _read_steps(range_: Document) -> Steps:
    step, unit = range_["step"], range_.get("unit")
    if not is_number(step):
        raise _wrong_type("range.step", step, "number")
    if not sort_key(step) > sort_key(0):
        raise MongoFailure(5733401, "the step parameter in a range statement must be a strictly positive numeric value")
    if "unit" not in range_:
        return Steps(step, None)
    if type(unit) is not str:
        raise _wrong_type("range.unit", unit, "string")
    if unit not in UNITS:
        raise MongoFailure(9, f"unknown time unit value: {unit}")
    whole = whole_number(step)
    if whole is None:
        raise MongoFailure(6586400, "the step of a series of dates must be an integer")
    return Steps(whole, unit)


def _read_bounds(bounds: Any, steps: Steps, paths: list[str]) -> Any:
    if type(bounds) is str:
        if bounds not in ("full", "partition"):
            raise MongoFailure(5946802, "bounds must be 'full', 'partition' or an array of two values")
        if bounds == "partition" and not paths:
            raise MongoFailure(5733405, "one may not specify the bounds as 'partition' without 'partitionByFields'")
        return bounds
    if type(bounds) is not list:
        raise MongoFailure(5946802, "bounds must be 'full', 'partition' or an array of two values")
    if len(bounds) != 2:
        raise MongoFailure(5733403, "a bounding array in a range statement must have exactly two elements")
    are_dates = all(type(bound) is DatetimeMS for bound in bounds)
    if not are_dates and not all(map(is_number, bounds)):
        raise MongoFailure(5733402, "a bounding array must contain two numbers or two dates")
    if are_dates != (steps.unit is not None):
        raise MongoFailure(5733410 if are_dates else 5733409, "bounds of dates need a 'unit', bounds of numbers none")
    if sort_key(bounds[0]) > sort_key(bounds[1]):
        raise MongoFailure(5733411, "the lower bound of a range statement must not exceed the upper bound")
    return bounds


class Series:
    """The values that a partition should have, in order."""

    def __init__(self, steps: Steps, first: Any, is_before_end: Callable[[Any], bool]) -> None:
        self._steps = steps
        self._first = first
        self._is_before_end = is_before_end
        self._number = 0

    def below(self, value: Any) -> Iterator[Any]:
        """Yield the values that come before one that exists, and pass over its equal."""
        key = None if value is MISSING else sort_key(value)
        while True:
            found = self._steps.at(self._first, self._number)
            if not self._is_before_end(found) or (key is not None and sort_key(found) > key):
                return
            self._number += 1
            if key is not None and sort_key(found) == key:
                return
            yield found


def _compile_densify(specification: Any, scope: Scope) -> Stage:
    densify = _read(specification)
    parts = tuple(densify.field.split("."))
    partition_parts = [tuple(path.split(".")) for path in densify.partition_paths]

    async def run(source: Batches, run_context: RunContext) -> Batches:
        pacer, meter = Pacer(run_context), MemoryMeter("$densify", run_context)
        partitions: dict[Any, list[tuple[Any, Document]]] = {}
        untouched: list[Document] = []
        async for batch in source:
            meter.add(batch)
            for document in batch:
                value = read_path(document, parts)
                if value is MISSING or value is None:
                    untouched.append(document)
                    continue
                densify.steps.check(value)
                key = tuple(
                    hash_key(read_path(document, path_parts), scope.context.collate) for path_parts in partition_parts
                )
                partitions.setdefault(key, []).append((value, document))
            await pacer.pause()
        if untouched:
            yield untouched
        # The reference server sorts by the fields of the partition.
        in_order = dict(sorted(partitions.items(), key=lambda entry: _order(entry[1], partition_parts, scope)))
        written: list[Document] = []
        generated = 0
        for document, is_new in _densified(in_order, densify, parts, partition_parts):
            generated += is_new
            if generated > GENERATED_MAX:
                raise MongoFailure(5897900, f"Generated {generated} documents in $densify, which is over the limit")
            written.append(document)
            if len(written) >= BATCH_DOCUMENTS:
                yield written
                written = []
                await pacer.pause()
        if written:
            yield written

    return Stage("$densify", specification, run=run)


def _order(members: list[tuple[Any, Document]], partition_parts: list[Parts], scope: Scope) -> tuple[Any, ...]:
    return tuple(sort_key(read_path(members[0][1], parts), scope.context.collate) for parts in partition_parts)


def _densified(
    partitions: dict[Any, list[tuple[Any, Document]]], densify: Densify, parts: Parts, partition_parts: list[Parts]
) -> Iterator[tuple[Document, bool]]:
    """Yield the documents that exist and those that were missing, with whether a document is a new one."""
    everything = [value for members in partitions.values() for value, _ in members]
    if not partitions and type(densify.bounds) is list:
        series = _series(densify, everything, everything)
        yield from ((_at(parts, value, {}), True) for value in series.below(MISSING))
    for members in partitions.values():
        members.sort(key=lambda member: sort_key(member[0]))
        series = _series(densify, [value for value, _ in members], everything)
        template: Document = {}
        for value, document in members:
            template = _template(document, partition_parts)
            yield from ((_at(parts, missing, template), True) for missing in series.below(value))
            yield document, False
        yield from ((_at(parts, missing, template), True) for missing in series.below(MISSING))


def _template(document: Document, partition_parts: list[Parts]) -> Document:
    """Return the fields that tell a partition, as the document behind a gap has them."""
    template: Document = {}
    for path_parts in partition_parts:
        value = read_path(document, path_parts)
        if value is not MISSING:
            template = _at(path_parts, value, template)
    return template


def _series(densify: Densify, own: list[Any], everything: list[Any]) -> Series:
    if type(densify.bounds) is list:
        low, high = densify.bounds
        return Series(densify.steps, low, lambda value: sort_key(value) < sort_key(high))
    values = own if densify.bounds == "partition" else everything
    most = sort_key(max(values, key=sort_key))
    return Series(densify.steps, min(values, key=sort_key), lambda value: sort_key(value) <= most)


def _at(parts: Parts, value: Any, base: Document) -> Document:
    """Return a document with a value at a path."""
    head, rest = parts[0], parts[1:]
    if not rest:
        return {**base, head: value}
    inner = base.get(head)
    return {**base, head: _at(rest, value, inner if type(inner) is dict else {})}


ROWS = (StageRow("$densify", _compile_densify),)

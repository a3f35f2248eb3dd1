"""Accumulators over windows.

A window that begins with its partition only grows, so that one state serves all documents. Of the others, sums and
counts are carried from frame to frame, the least and greatest values are kept in a queue, and the rest is computed
anew for each frame.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.stages.accumulators import ACCUMULATORS, Accumulator
from asterism.languages.mongo.stages.states import as_double
from asterism.languages.mongo.stages.windows.bounds import WHOLE_PARTITION, Frames, Window, parse_window
from asterism.languages.mongo.stages.windows.partition import Evaluate, FunctionScope, Partition
from asterism.languages.mongo.stages.windows.sliding import SlidingTotal
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import int_of_size
from asterism.values.bson.order import Collate, sort_key
from asterism.values.bson.types import MISSING

# Accumulators of $group that windows have, too.
NAMES = tuple(name for name in ACCUMULATORS if name != "$mergeObjects")

# Returns the results for frames whose ends only move forward.
Slide = Callable[[list[Any], Frames], list[Any]]


def window_of(scope: FunctionScope) -> Window:
    if scope.window is MISSING:
        return WHOLE_PARTITION
    return parse_window(scope.window, scope.ordering, is_sorted=scope.has_sort)


def compile_framed(name: str, argument: Any, scope: FunctionScope) -> Evaluate:
    accumulator = ACCUMULATORS[name](name, argument, scope.context)
    window = window_of(scope)
    slide = _slide_of(name, scope.context.collate)

    def evaluate(partition: Partition) -> list[Any]:
        values = accumulator.inputs(partition.documents, partition.variables)
        frames = partition.frames(window)
        if window.is_whole_partition:
            state = accumulator.start({}, partition.variables)
            state.add(values)
            return [state.result()] * len(values)
        if window.is_left_unbounded:
            return _growing(accumulator, values, frames, partition)
        if slide is not None:
            return slide(values, frames)
        return _each_anew(accumulator, values, frames, partition)

    return evaluate


def _growing(accumulator: Accumulator, values: list[Any], frames: Frames, partition: Partition) -> list[Any]:
    state = accumulator.start({}, partition.variables)
    results, added = [], 0
    for _, stop in frames:
        if stop > added:
            state.add(values[added:stop])
            added = stop
        results.append(state.result())
    return results


def _each_anew(accumulator: Accumulator, values: list[Any], frames: Frames, partition: Partition) -> list[Any]:
    results = []
    for start, stop in frames:
        state = accumulator.start({}, partition.variables)
        state.add(values[start:stop])
        results.append(state.result())
    return results


def _slide_of(name: str, collate: Collate | None) -> Slide | None:
    if name in ("$sum", "$avg"):
        return lambda values, frames: _slide_sums(values, frames, is_average=name == "$avg")
    if name == "$count":
        return lambda values, frames: [int_of_size(max(0, stop - start)) for start, stop in frames]
    if name in ("$min", "$max"):
        return lambda values, frames: _slide_extremes(values, frames, collate, greatest=name == "$max")
    if name in ("$stdDevPop", "$stdDevSamp"):
        return lambda values, frames: _slide_deviations(values, frames, is_sample=name == "$stdDevSamp")
    return None


def _slide_sums(values: list[Any], frames: Frames, *, is_average: bool) -> list[Any]:
    total = SlidingTotal()
    results = []
    first = last = 0
    for start, stop in frames:
        if stop > last:
            total.add(values[last:stop])
            last = stop
        if start > first:
            # A frame beyond the end of the partition is empty, and begins where it ends.
            total.remove(values[first : min(start, last)])
            first = min(start, last)
        results.append(total.average() if is_average else total.as_number())
    return results


def _slide_extremes(values: list[Any], frames: Frames, collate: Collate | None, *, greatest: bool) -> list[Any]:
    """Keep the places of values that are the extreme of some frame to come, the present extreme first."""
    keys: list[Any] = [None if value is None or value is MISSING else sort_key(value, collate) for value in values]
    candidates: deque[int] = deque()
    results = []
    last = 0
    for start, stop in frames:
        for place in range(last, stop):
            key = keys[place]
            if key is None:
                continue
            while candidates and (key > keys[candidates[-1]] if greatest else key < keys[candidates[-1]]):
                candidates.pop()
            candidates.append(place)
        last = max(last, stop)
        while candidates and candidates[0] < start:
            candidates.popleft()
        results.append(values[candidates[0]] if candidates else None)
    return results


def _slide_deviations(values: list[Any], frames: Frames, *, is_sample: bool) -> list[Any]:
    """Return the deviations of the frames; null for one with an infinity or NaN, which could not be taken out again."""
    numbers = [as_double(value) if is_number(value) else None for value in values]
    results: list[Any] = []
    for start, stop in frames:
        members = [number for number in numbers[start:stop] if number is not None]
        degrees = len(members) - 1 if is_sample else len(members)
        if degrees <= 0 or not all(map(math.isfinite, members)):
            results.append(None)
        else:
            results.append(_deviation(members, degrees) if len(members) > 1 else 0)
    return results


def _deviation(members: list[float], degrees: int) -> float:
    mean, squares = 0.0, 0.0
    for count, number in enumerate(members, start=1):
        delta = number - mean
        mean += delta / count
        squares += delta * (number - mean)
    return math.sqrt(squares / degrees) if squares >= 0 else math.nan

"""Steps of chance: `coin` and `sample`."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING, Modulator
from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.step import BarrierStep, Step, SyncStep, by_origin
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.identity import identity_key
from asterism.languages.gremlin.values.java_random import JavaRandom
from asterism.languages.gremlin.values.numbers import is_number

_Chances = random.Random | JavaRandom

# Larger bulks are not thrown a coin each: the part that the law of large numbers gives is close enough.
_COINS_MAX = 100
# Of a bulk that is larger, one traverser is as good as surely drawn before.
_DRAWS_MAX = 100_000


class CoinStep(SyncStep):
    """Passes each traverser with a probability."""

    def __init__(self, probability: float) -> None:
        self._probability = probability

    def process(self, batch: Batch, frame: Frame) -> Batch:
        chances, probability = frame.run.random_of(self), self._probability
        found: Batch = []
        for traverser in batch:
            bulk = traverser.bulk
            if bulk < _COINS_MAX:
                passed = sum(probability >= chances.random() for _ in range(bulk))
            else:
                passed = round(probability * bulk)
            if passed:
                found.append(_with_bulk(traverser, passed))
        return found


class SampleStep(BarrierStep):
    """Passes some of the traversers of each origin, chosen by their weights."""

    def __init__(self, amount: int, weight: Modulator | None) -> None:
        self._amount = amount
        self._weight = weight

    async def complete(self, batch: Batch, frame: Frame) -> Batch:
        found: Batch = []
        for group in by_origin(batch, frame.segments):
            if not group:
                continue
            weights = [1.0] * len(group) if self._weight is None else await self._weights(group, frame)
            pairs = [(traverser, weight) for traverser, weight in zip(group, weights, strict=True) if weight >= 0]
            if sum(traverser.bulk for traverser, _ in pairs) <= self._amount:
                found += [traverser for traverser, _ in pairs]
                continue
            counts = self._counts(pairs, frame)
            found += [_with_bulk(pairs[place][0], count) for place, count in counts.items()]
        return found

    async def _weights(self, group: Batch, frame: Frame) -> list[float]:
        assert self._weight is not None
        return [_weight(value) for value in await self._weight.values(group, frame.run)]

    def _counts(self, pairs: list[tuple[Traverser, float]], frame: Frame) -> dict[int, int]:
        """Return how often each traverser is chosen, by its place, in the order of the choices."""
        chances = frame.run.random_of(self)
        weights = [weight for _, weight in pairs]
        bulks = [traverser.bulk for traverser, _ in pairs]
        if isinstance(chances, JavaRandom):
            # The same numbers have the same results as in TinkerPop, which has equal traversers only once.
            return _drawn_as_java([pair[0] for pair in pairs], weights, self._amount, chances)
        if min(weights) == max(weights):
            return _drawn_evenly(bulks, self._amount, chances)
        return _drawn_by_weight(bulks, weights, self._amount, chances)


def _weight(value: Any) -> float:
    if value is MISSING:
        # The traverser is left out.
        return -1.0
    if not is_number(value):
        raise ExecutionFailure(f"Traverser does not evaluate to a number: {value}. sample() goes by numbers.")
    return max(float(value), 0.0)


def _drawn_evenly(bulks: list[int], amount: int, chances: random.Random) -> dict[int, int]:
    ends = list(accumulate(bulks))
    counts: dict[int, int] = {}
    for position in chances.sample(range(ends[-1]), amount):
        place = bisect_right(ends, position)
        counts[place] = counts.get(place, 0) + 1
    return counts


def _drawn_by_weight(bulks: list[int], weights: list[float], amount: int, chances: random.Random) -> dict[int, int]:
    left = list(bulks)
    counts: dict[int, int] = {}
    for _ in range(amount):
        shares = [weight * bulk for weight, bulk in zip(weights, left, strict=True)]
        if not any(shares):
            # Only traversers without weight are left.
            shares = [float(bulk) for bulk in left]
        (place,) = chances.choices(range(len(left)), shares)
        left[place] -= 1
        counts[place] = counts.get(place, 0) + 1
    return counts


def _drawn_as_java(batch: Batch, weights: list[float], amount: int, chances: JavaRandom) -> dict[int, int]:
    firsts: dict[Hashable, int] = {}
    bulks: dict[int, int] = {}
    for place, traverser in enumerate(batch):
        carries = traverser.path is not None or traverser.sack is not None
        first = firsts.setdefault(place if carries else ("value", identity_key(traverser.value)), place)
        bulks[first] = bulks.get(first, 0) + traverser.bulk
    total = sum(weights[place] * bulk for place, bulk in bulks.items())
    counts: dict[int, int] = {}
    if total <= 0:
        return {place: min(bulk, amount) for place, bulk in list(bulks.items())[:amount]}
    drawn = 0
    while drawn < amount:
        remaining = total
        for place, bulk in bulks.items():
            chosen = _draws(weights[place], bulk - counts.get(place, 0), remaining, chances)
            if chosen is None:
                counts[place] = counts.get(place, 0) + 1
                drawn += 1
                break
            remaining = chosen
    return counts


def _draws(weight: float, bulk: int, remaining: float, chances: JavaRandom) -> float | None:
    """Return the weight that remains behind a traverser; None if it was drawn."""
    for _ in range(min(bulk, _DRAWS_MAX)):
        share = weight / remaining if remaining else 1.0
        if chances.random() <= share:
            return None
        remaining -= weight
    return remaining


class SampleLocalStep(SyncStep):
    """Chooses some of the members of a list, a set or a map."""

    def __init__(self, amount: int) -> None:
        self._amount = amount

    def process(self, batch: Batch, frame: Frame) -> Batch:
        chances = frame.run.random_of(self)
        return [traverser.to(self._sample(traverser.value, chances)) for traverser in batch]

    def _sample(self, value: Any, chances: _Chances) -> Any:
        if not isinstance(value, dict | list | set | frozenset) or len(value) <= self._amount:
            return value
        if isinstance(value, dict):
            return dict(_chosen(list(value.items()), self._amount, chances))
        return _chosen(list(value), self._amount, chances)


def _chosen(members: list[Any], amount: int, chances: _Chances) -> list[Any]:
    return [members.pop(chances.randrange(len(members))) for _ in range(amount)]


def _with_bulk(traverser: Traverser, bulk: int) -> Traverser:
    if traverser.bulk == bulk:
        return traverser
    copied = traverser.copy()
    copied.bulk = bulk
    return copied


def _make_coin(call: StepCall, _: Compiler) -> Step:
    match call.arguments:
        case [probability] if is_number(probability):
            return CoinStep(float(probability))
    raise call.refused("The coin() step takes a probability.")


def _make_sample(call: StepCall, compiler: Compiler) -> Step:
    arguments: Sequence[Any] = call.arguments
    is_local = False
    if arguments and isinstance(arguments[0], Token) and arguments[0].kind == "Scope":
        is_local = arguments[0].name == "local"
        arguments = arguments[1:]
    if len(arguments) != 1 or not isinstance(arguments[0], int):
        raise call.refused("The sample() step takes a number.")
    if is_local:
        return SampleLocalStep(arguments[0])
    modulators = compiler.modulators(call)
    if len(modulators) > 1:
        raise call.refused("Sample step can only have one by modulator")
    return SampleStep(arguments[0], modulators[0] if modulators else None)


STEPS: Mapping[str, Maker] = {"coin": _make_coin, "sample": _make_sample}

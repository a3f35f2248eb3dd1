"""Accumulators of $group, $bucket and windows, as a table: how the argument is read, and the state it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.integers import INT64_MAX, whole_number
from asterism.languages.mongo.stages import states
from asterism.languages.mongo.stages.javascript_accumulator import ScriptedAccumulator
from asterism.languages.mongo.stages.sorting import parse_ordering
from asterism.languages.mongo.stages.stage import evaluate_many
from asterism.languages.mongo.stages.states import State, as_double
from asterism.values.bson.kinds import is_number
from asterism.values.bson.types import MISSING, Document

Inputs = Callable[[list[Document], Variables], list[Any]]
# Starts a state for a group, given its `_id`.
Start = Callable[[Any, Variables], State]


class Accumulator(NamedTuple):
    """A compiled accumulator: the values that documents give to it, and the state they are added to."""

    name: str
    inputs: Inputs
    start: Start

    @property
    def holds_input(self) -> bool:
        """True if the memory of the state grows with its input."""
        return self.name in _HOLDING


# Accumulators that hold what they are given.
_HOLDING = frozenset({"$push", "$addToSet", "$setUnion", "$concatArrays", "$median", "$percentile", "$mergeObjects"})
CompileAccumulator = Callable[[str, Any, CompileContext], Accumulator]


def _of_values(start: Callable[[CompileContext], Callable[[], State]]) -> CompileAccumulator:
    """An accumulator over the values of one expression."""

    def compile_call(name: str, argument: Any, context: CompileContext) -> Accumulator:
        make = start(context)
        return Accumulator(name, evaluate_many(argument, context), lambda group, variables: make())

    return compile_call


def _count(name: str, argument: Any, context: CompileContext) -> Accumulator:
    if argument != {} or type(argument) is not dict:
        raise MongoFailure(14, "$count takes no arguments, i.e. $count:{}")
    return Accumulator(name, lambda documents, variables: documents, lambda group, variables: states.Count())


def _fields(name: str, argument: Any, names: tuple[str, ...], codes: tuple[int, int, dict[str, int]]) -> Document:
    """Return the argument as a document with exactly the fields, or refuse it: `codes` are for no document, an unknown
    field, and each missing one."""
    not_an_object, unknown, missing = codes
    if type(argument) is not dict:
        raise MongoFailure(not_an_object, f"specification must be an object; found {name}")
    for field in argument:
        if field not in names:
            raise MongoFailure(unknown, f"Unknown argument to {name}: '{field}'")
    for field, code in missing.items():
        if field not in argument:
            raise MongoFailure(code, f"Missing value for '{field}' in {name}")
    return argument


def _size(specification: Any, context: CompileContext) -> Callable[[Any, Variables], int]:
    """Return the function that computes `n` for a group; it may depend only on the `_id`."""
    evaluate: Evaluate = context.compile(specification)

    def size(group: Any, variables: Variables) -> int:
        value = evaluate(group if type(group) is dict else {}, variables)
        count = whole_number(value) if value is not MISSING else None
        if count is None or not 0 < count <= INT64_MAX:
            raise MongoFailure(7548606, f"Value for 'n' must be of integral type greater than 0, but found {value!r}")
        return count

    from asterism.languages.mongo.expressions.constants import Constant

    if isinstance(evaluate, Constant):
        size({}, {})
    return size


_N_CODES = (5787801, 5787901, {"n": 5787906, "input": 5787907})
_TOP_CODES = (5788001, 5788002, {"n": 5788003, "output": 5788004, "sortBy": 5788005})


def _of_n(make: Callable[[int, CompileContext], State]) -> CompileAccumulator:
    def compile_call(name: str, argument: Any, context: CompileContext) -> Accumulator:
        fields = _fields(name, argument, ("input", "n"), _N_CODES)
        size = _size(fields["n"], context)
        inputs = evaluate_many(fields["input"], context)
        return Accumulator(name, inputs, lambda group, variables: make(size(group, variables), context))

    return compile_call


def _ranked(*, from_end: bool, is_single: bool) -> CompileAccumulator:
    names = ("sortBy", "output") if is_single else ("sortBy", "output", "n")

    def compile_call(name: str, argument: Any, context: CompileContext) -> Accumulator:
        missing = {field: code for field, code in _TOP_CODES[2].items() if field in names}
        fields = _fields(name, argument, names, (_TOP_CODES[0], _TOP_CODES[1], missing))
        if type(fields["sortBy"]) is not dict:
            raise MongoFailure(5788604, f"expected 'sortBy' of {name} to be an object")
        ordering = parse_ordering(fields["sortBy"], context)
        outputs = evaluate_many(fields["output"], context)
        size = _size(fields.get("n", 1), context)

        def inputs(documents: list[Document], variables: Variables) -> list[Any]:
            return list(zip(map(ordering.key, documents), outputs(documents, variables), strict=True))

        def start(group: Any, variables: Variables) -> State:
            return states.Ranked(size(group, variables), from_end=from_end, is_single=is_single)

        return Accumulator(name, inputs, start)

    return compile_call


def _percentiles(*, is_median: bool) -> CompileAccumulator:
    names = ("input", "method") if is_median else ("input", "method", "p")

    def compile_call(name: str, argument: Any, context: CompileContext) -> Accumulator:
        if type(argument) is not dict:
            raise MongoFailure(7429703 if is_median else 7436100, f"specification must be an object; found {name}")
        fields = _fields(name, argument, names, (7436100, 40415, dict.fromkeys(names, 40414)))
        if type(fields["method"]) is not str:
            raise MongoFailure(14, f"BSON field '{name}.method' is the wrong type, expected type 'string'")
        if fields["method"] != "approximate":
            raise MongoFailure(2, f"Currently only 'approximate' can be used as percentile 'method' of {name}")
        parts = [0.5] if is_median else _parts(fields["p"], context)
        inputs = evaluate_many(fields["input"], context)
        return Accumulator(name, inputs, lambda group, variables: states.Percentiles(parts, is_median=is_median))

    return compile_call


def _parts(specification: Any, context: CompileContext) -> list[float]:
    parts = context.compile(specification)({}, {})
    if type(parts) is not list or not parts:
        raise MongoFailure(7750301, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0]")
    for part in parts:
        if not is_number(part):
            raise MongoFailure(7750302, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0]")
        if not 0.0 <= as_double(part) <= 1.0:
            raise MongoFailure(7750303, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0]")
    return [as_double(part) for part in parts]


ACCUMULATORS: dict[str, CompileAccumulator] = {
    "$sum": _of_values(lambda context: states.Sum),
    "$avg": _of_values(lambda context: states.Average),
    "$min": _of_values(lambda context: lambda: states.Extreme(context.collate, greatest=False)),
    "$max": _of_values(lambda context: lambda: states.Extreme(context.collate, greatest=True)),
    "$first": _of_values(lambda context: states.First),
    "$last": _of_values(lambda context: states.Last),
    "$push": _of_values(lambda context: states.Push),
    "$addToSet": _of_values(lambda context: lambda: states.AddToSet(context.collate)),
    "$mergeObjects": _of_values(lambda context: states.MergeObjects),
    "$setUnion": _of_values(lambda context: lambda: states.SetUnion(context.collate)),
    "$concatArrays": _of_values(lambda context: states.ConcatArrays),
    "$stdDevPop": _of_values(lambda context: lambda: states.StandardDeviation(is_sample=False)),
    "$stdDevSamp": _of_values(lambda context: lambda: states.StandardDeviation(is_sample=True)),
    "$count": _count,
    "$firstN": _of_n(lambda count, context: states.FirstN(count)),
    "$lastN": _of_n(lambda count, context: states.LastN(count)),
    "$minN": _of_n(lambda count, context: states.ExtremeN(count, context.collate, greatest=False)),
    "$maxN": _of_n(lambda count, context: states.ExtremeN(count, context.collate, greatest=True)),
    "$top": _ranked(from_end=False, is_single=True),
    "$bottom": _ranked(from_end=True, is_single=True),
    "$topN": _ranked(from_end=False, is_single=False),
    "$bottomN": _ranked(from_end=True, is_single=False),
    "$median": _percentiles(is_median=True),
    "$percentile": _percentiles(is_median=False),
}


def _scripted(name: str, argument: Any, context: CompileContext) -> Accumulator:
    scripted = ScriptedAccumulator(argument, context)
    return Accumulator(name, scripted.inputs, scripted.start)


ACCUMULATORS["$accumulator"] = _scripted


def compile_accumulated_field(field: str, specification: Any, context: CompileContext) -> Accumulator:
    """Compile one output field of $group, $bucket or $bucketAuto: `{$sum: 1}`."""
    if "." in field:
        raise MongoFailure(40235, f"The field name '{field}' cannot contain '.'")
    if field[:1] == "$":
        raise MongoFailure(40236, f"The field name '{field}' cannot be an operator name")
    if type(specification) is not dict or not specification:
        raise MongoFailure(40234, f"The field '{field}' must be an accumulator object")
    if len(specification) > 1:
        raise MongoFailure(40238, f"The field '{field}' must specify one accumulator")
    ((name, argument),) = specification.items()
    if name[:1] != "$":
        raise MongoFailure(40234, f"The field '{field}' must be an accumulator object")
    if type(argument) is list:
        raise MongoFailure(40237, f"The {name} accumulator is a unary operator")
    compile_call = ACCUMULATORS.get(name)
    if compile_call is None:
        raise MongoFailure(15952, f"unknown group operator '{name}'")
    return compile_call(name, argument, context)

"""All instructions of Gremlin with the forms of their arguments, and the check of a traversal against them.

Texts and bytecode are checked alike, before a plan is made. The forms are those of the grammar of TinkerPop 3.8, of
older releases where they took more, and of the service.
"""

from __future__ import annotations

from typing import Any

from asterism.languages.gremlin.failure import SYNTAX_SCOPE, CompileFailure, LimitExceeded
from asterism.languages.gremlin.plan.kinds import Form, type_names
from asterism.languages.gremlin.tree import (
    CardinalityValue,
    Instruction,
    Lambda,
    Predicate,
    Strategy,
    Traversal,
    Variable,
)

# The service takes 400 steps in a traversal; children count.
STEPS_MAX = 400
# Deeper children are of no use, and each takes several frames of the stack wherever traversals are walked.
DEPTH_MAX = 64

_NOTHING = ("",)
_CHILD = ("traversal",)
_CHILDREN = ("traversal*",)
_LABELS = ("string?*",)
_SCOPE = ("", "Scope")
_STRING = ("string",)
_OPTIONAL_STRING = ("", "string")
_VALUE = ("any",)
_DECISION = ("predicate", "traversal")

# Calls on the source, which come before the first step.
_SOURCE: dict[str, tuple[str, ...]] = {
    "with": ("string", "string any"),
    "withBulk": ("boolean",),
    "withComputer": ("any*",),
    "withPath": _NOTHING,
    "withSack": ("any", "any Operator", "any Operator Operator"),
    "withSideEffect": ("string any", "string any Operator"),
    "withStrategies": ("strategy strategy*",),
    "withoutStrategies": ("strategy|string strategy|string*",),
    "tx": ("string",),
}

_STEPS: dict[str, tuple[str, ...]] = {
    # Starts
    "V": ("any*",),
    "E": ("any*",),
    # The last form is that of 2017: keys and values.
    "addV": ("", "string?|traversal", "string|T any any*"),
    "addE": ("string?|traversal", "string any any any*"),
    "mergeV": ("", "map?|traversal"),
    "mergeE": ("", "map?|traversal"),
    "inject": ("any*",),
    "io": _STRING,
    "call": ("", "string", "string map?|traversal", "string map? traversal"),
    # Adjacency
    "out": _LABELS,
    "in": _LABELS,
    "both": _LABELS,
    "outE": _LABELS,
    "inE": _LABELS,
    "bothE": _LABELS,
    "outV": _NOTHING,
    "inV": _NOTHING,
    "bothV": _NOTHING,
    "otherV": _NOTHING,
    "toE": ("Direction string?*",),
    "toV": ("Direction",),
    # Filters
    "has": ("string?", "string?|T any", "string? string?|T any"),
    "hasId": ("any any*",),
    "hasKey": ("predicate", "string? string?*"),
    "hasLabel": ("predicate", "string? string?*"),
    "hasNot": ("string?",),
    "hasValue": ("any any*",),
    "is": _VALUE,
    "where": ("predicate", "traversal", "string predicate"),
    "filter": _DECISION,
    "and": _CHILDREN,
    "or": _CHILDREN,
    "not": _CHILD,
    "all": ("predicate",),
    "any": ("predicate",),
    # Without an argument it is the old name of discard.
    "none": ("", "predicate"),
    "coin": ("number",),
    "cyclicPath": _NOTHING,
    "simplePath": _NOTHING,
    "dedup": ("string?*", "Scope string?*"),
    "discard": _NOTHING,
    "drop": _NOTHING,
    "limit": ("integer", "Scope integer"),
    "range": ("integer integer", "Scope integer integer"),
    "sample": ("integer", "Scope integer"),
    "skip": ("integer", "Scope integer"),
    "tail": ("", "integer", "Scope", "Scope integer"),
    "timeLimit": ("integer",),
    # Branches
    "branch": _CHILD,
    "choose": (
        "T|Column|traversal",
        "predicate|traversal traversal",
        "predicate|traversal traversal traversal",
    ),
    "coalesce": _CHILDREN,
    "optional": _CHILD,
    "union": _CHILDREN,
    "repeat": ("traversal", "string traversal"),
    "local": _CHILD,
    "map": _CHILD,
    "flatMap": _CHILD,
    "sideEffect": _CHILD,
    "match": _CHILDREN,
    # Values and elements
    "as": ("string string?*",),
    "constant": _VALUE,
    "element": _NOTHING,
    "elementMap": _LABELS,
    "id": _NOTHING,
    "identity": _NOTHING,
    "index": _NOTHING,
    "key": _NOTHING,
    "label": _NOTHING,
    "loops": _OPTIONAL_STRING,
    "math": _STRING,
    "path": _NOTHING,
    "project": ("string string?*",),
    "properties": _LABELS,
    "property": ("Cardinality any any any*", "any any any*", "map?", "Cardinality map?"),
    "propertyMap": ("string?*", "boolean string?*"),
    "sack": ("", "Operator"),
    "select": (
        "Column|traversal",
        "string string?*",
        "Pop string string?*",
        "Pop traversal",
    ),
    "unfold": _NOTHING,
    "value": _NOTHING,
    "valueMap": ("string?*", "boolean string?*"),
    "values": _LABELS,
    # Barriers and side effects
    "aggregate": ("string", "Scope string"),
    "barrier": ("", "integer", "Barrier"),
    "cap": ("string string?*",),
    "count": _SCOPE,
    "fail": _OPTIONAL_STRING,
    "fold": ("", "any Operator"),
    "group": _OPTIONAL_STRING,
    "groupCount": _OPTIONAL_STRING,
    "max": _SCOPE,
    "mean": _SCOPE,
    "min": _SCOPE,
    "order": _SCOPE,
    "store": _STRING,
    "subgraph": _STRING,
    "sum": _SCOPE,
    "tree": _OPTIONAL_STRING,
    # Modulators
    "by": (
        "",
        "string?|T|Column|Order|traversal",
        "string?|T|Column|traversal Order",
    ),
    "emit": ("", "predicate", "traversal"),
    "from": ("string|traversal|vertex",),
    "option": ("traversal", "Merge map?|traversal", "Merge map? Cardinality", "any traversal"),
    "read": _NOTHING,
    "times": ("integer",),
    "to": ("string|traversal|vertex", "Direction string?*"),
    "until": _DECISION,
    "with": ("string", "string any"),
    "write": _NOTHING,
    # Texts
    "asString": _SCOPE,
    "concat": ("traversal traversal*", "string?*"),
    "format": _STRING,
    "length": _SCOPE,
    "lTrim": _SCOPE,
    "replace": ("string? string?", "Scope string? string?"),
    "reverse": _NOTHING,
    "rTrim": _SCOPE,
    "split": ("string?", "Scope string?"),
    "substring": ("integer", "integer integer", "Scope integer", "Scope integer integer"),
    "toLower": _SCOPE,
    "toUpper": _SCOPE,
    "trim": _SCOPE,
    # Lists
    "combine": _VALUE,
    "conjoin": _STRING,
    "difference": _VALUE,
    "disjunct": _VALUE,
    "intersect": _VALUE,
    "merge": _VALUE,
    "product": _VALUE,
    # Types and dates
    "asBool": _NOTHING,
    "asDate": _NOTHING,
    "asNumber": ("", "GType"),
    "dateAdd": ("DT integer",),
    "dateDiff": ("traversal", "date"),
    # Reports about the traversal
    "executionProfile": _NOTHING,
    "explain": _NOTHING,
    "profile": _OPTIONAL_STRING,
    # Whole graphs
    "connectedComponent": _NOTHING,
    "pageRank": ("", "number"),
    "peerPressure": _NOTHING,
    "shortestPath": _NOTHING,
}

SOURCE_INSTRUCTIONS: dict[str, tuple[Form, ...]] = {name: tuple(map(Form, forms)) for name, forms in _SOURCE.items()}
STEP_INSTRUCTIONS: dict[str, tuple[Form, ...]] = {name: tuple(map(Form, forms)) for name, forms in _STEPS.items()}
# Steps that a source begins a traversal with.
START_STEPS = frozenset({"V", "E", "addV", "addE", "mergeV", "mergeE", "inject", "io", "call", "union"})


def check(traversal: Traversal, *, steps_max: int = STEPS_MAX) -> None:
    """Raise CompileFailure for instructions that do not exist or arguments that do not fit, children included.

    Raises LimitExceeded for a traversal of too many steps.
    """
    checker = _Checker(steps_max)
    for instruction in traversal.source:
        checker.instruction(instruction, SOURCE_INSTRUCTIONS)
    if traversal.steps and traversal.steps[0].name not in START_STEPS:
        raise unknown_method(traversal.steps[0])
    checker.steps(traversal.steps)


def check_instruction(instruction: Instruction) -> None:
    """Raise CompileFailure for arguments that do not fit a step, whose place and number were checked already."""
    _Checker(STEPS_MAX).steps((instruction,))


def unknown_method(instruction: Instruction) -> CompileFailure:
    """Return the refusal of an instruction that does not exist, or not at its place."""
    return _refused(instruction, f"Unable to find any method '{instruction.name}'")


def _refused(instruction: Instruction, sentence: str) -> CompileFailure:
    # The service shows the place of the parenthesis behind the name.
    column = instruction.column + len(instruction.name) if instruction.line else 0
    return CompileFailure(sentence, line=instruction.line, column=column)


class _Checker:
    """The walk through one traversal, with the number of steps that it may still see."""

    __slots__ = ("_depth", "_steps_left", "_steps_max")

    def __init__(self, steps_max: int) -> None:
        self._steps_max = self._steps_left = steps_max
        self._depth = 0

    def steps(self, instructions: tuple[Instruction, ...]) -> None:
        self._steps_left -= len(instructions)
        if self._steps_left < 0:
            raise too_many_steps(self._steps_max)
        for instruction in instructions:
            self.instruction(instruction, STEP_INSTRUCTIONS)

    def instruction(self, instruction: Instruction, table: dict[str, tuple[Form, ...]]) -> None:
        forms = table.get(instruction.name)
        if forms is None:
            raise unknown_method(instruction)
        arguments = instruction.arguments
        for argument in arguments:
            # Texts and numbers, which most arguments are, have nothing inside.
            if type(argument) not in _SIMPLE:
                self._argument(argument)
        for form in forms:
            if form.accepts(arguments):
                return
        raise _refused(
            instruction,
            f"Unable to bind to method '{instruction.name}', with arguments of type: {type_names(arguments)}",
        )

    def _argument(self, argument: Any) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise CompileFailure(f"The traversal is nested deeper than the {DEPTH_MAX} levels allowed.")
        match argument:
            case Traversal(steps, source):
                if source:
                    raise unknown_method(source[0])
                self.steps(steps)
            case Predicate(_, value) | CardinalityValue(_, value):
                self._argument(value)
            case Strategy(_, settings):
                self._arguments(settings.values())
            case list() | tuple() | set() | frozenset():
                self._arguments(argument)
            case dict():
                self._arguments(argument)
                self._arguments(argument.values())
            case Lambda(text):
                raise CompileFailure(
                    f"Script compile error: Unsupported groovy language rule: 'closure' text: '{text[:200]}'",
                    scope=SYNTAX_SCOPE,
                )
        self._depth -= 1

    def _arguments(self, arguments: Any) -> None:
        for argument in arguments:
            if type(argument) not in _SIMPLE:
                self._argument(argument)


_SIMPLE = frozenset({str, int, float, bool, type(None), Variable})


def too_many_steps(steps_max: int) -> LimitExceeded:
    """Return the refusal of a traversal that is too long."""
    return LimitExceeded(f"The traversal has more than the {steps_max} steps allowed.")

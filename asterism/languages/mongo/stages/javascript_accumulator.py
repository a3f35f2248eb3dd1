"""$accumulator: functions of JavaScript that keep the state of a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.javascript import code_of, needed
from asterism.values.bson.types import MISSING, Document

_REQUIRED: Final = ("init", "accumulate", "accumulateArgs", "merge", "lang")
_OPTIONAL: Final = ("initArgs", "finalize")
# Documents whose values are added in one call, which must end within the time of a call.
_ROWS_PER_CALL: Final = 100
_FOLD: Final = """(function () {{
const accumulate = ({accumulate});
return function (state, rows) {{
    for (const row of rows) {{ state = accumulate(state, ...row); }}
    return state;
}};
}})()"""

Call = Callable[..., Any]


class ScriptedState:
    """The state of a group, as the functions return it."""

    __slots__ = ("_accumulate", "_finalize", "_state")

    def __init__(self, state: Any, accumulate: Call, finalize: Call | None) -> None:
        self._state = state
        self._accumulate = accumulate
        self._finalize = finalize

    def add(self, values: list[Any]) -> None:
        for start in range(0, len(values), _ROWS_PER_CALL):
            self._state = self._accumulate(self._state, values[start : start + _ROWS_PER_CALL])

    def result(self) -> Any:
        return self._state if self._finalize is None else self._finalize(self._state)


class ScriptedAccumulator:
    """The parts of a compiled $accumulator."""

    __slots__ = ("_accumulate", "_arguments", "_finalize", "_init", "_init_arguments")

    def __init__(self, argument: Any, context: CompileContext) -> None:
        if type(argument) is not dict:
            raise MongoFailure(4544703, "$accumulator expects an object as an argument")
        for name in argument:
            if name not in _REQUIRED and name not in _OPTIONAL:
                raise MongoFailure(4544706, f"$accumulator got an unexpected field: {name}")
        for name in _REQUIRED:
            if name not in argument:
                raise MongoFailure(4544707, f"$accumulator missing required argument '{name}'")
        if argument["lang"] != "js":
            raise MongoFailure(4544701, "$accumulator only supports lang: 'js'")
        interpreter = needed(context.javascript, "$accumulator")
        self._init = interpreter.function(_code(argument, "init"))
        self._accumulate = interpreter.function(_FOLD.format(accumulate=_code(argument, "accumulate")))
        # Compiled to refuse what is wrong; the groups of one server need no merging.
        interpreter.function(_code(argument, "merge"))
        self._finalize = interpreter.function(_code(argument, "finalize")) if "finalize" in argument else None
        self._arguments: Evaluate = context.compile(argument["accumulateArgs"])
        self._init_arguments: Evaluate = context.compile(argument.get("initArgs", []))

    def inputs(self, documents: list[Document], variables: Variables) -> list[Any]:
        return [_row(self._arguments(document, variables), "accumulateArgs") for document in documents]

    def start(self, group: Any, variables: Variables) -> ScriptedState:
        arguments = _row(self._init_arguments(group if type(group) is dict else {}, variables), "initArgs")
        return ScriptedState(self._init(*arguments), self._accumulate, self._finalize)


def _code(argument: Document, name: str) -> str:
    return code_of(argument[name], f"$accumulator '{name}'", wrong_type=4544701)


def _row(values: Any, name: str) -> list[Any]:
    if type(values) is not list:
        raise MongoFailure(4544712, f"$accumulator '{name}' must evaluate to an array")
    return [None if value is MISSING else value for value in values]

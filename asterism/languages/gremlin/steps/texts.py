"""Steps of texts, each in the scope of the value or of the members of a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.languages.gremlin.engine.step import Step
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.arguments import refuse_arguments, scoped, step_of_arguments
from asterism.languages.gremlin.steps.basic import MapStep
from asterism.languages.gremlin.tree import Traversal
from asterism.languages.gremlin.values import texts

_TEXT: tuple[type, ...] = (str, type(None))
_PLACE: tuple[type, ...] = (int,)

# The types of the arguments, of which those behind the first number may be left out, and the maker of the function.
_FUNCTIONS: Mapping[str, tuple[int, tuple[tuple[type, ...], ...], Callable[..., Callable[[str], Any]]]] = {
    "length": (0, (), lambda: len),
    "lTrim": (0, (), lambda: texts.trim_left),
    "replace": (2, (_TEXT, _TEXT), texts.replace),
    "rTrim": (0, (), lambda: texts.trim_right),
    "split": (1, (_TEXT,), texts.split),
    "substring": (1, (_PLACE, _PLACE), texts.substring),
    "toLower": (0, (), lambda: str.lower),
    "toUpper": (0, (), lambda: str.upper),
    "trim": (0, (), lambda: texts.trim),
}


def _make_text(call: StepCall, _: Compiler) -> Step:
    is_local, arguments = scoped(call)
    required, kinds, make = _FUNCTIONS[call.name]
    fits = required <= len(arguments) <= len(kinds) and all(
        isinstance(argument, kind) and not isinstance(argument, bool)
        for argument, kind in zip(arguments, kinds, strict=False)
    )
    if not fits:
        raise refuse_arguments(call)
    on = texts.on_texts if is_local else texts.on_text
    return MapStep(on(call.name, make(*arguments)))


def _make_as_string(call: StepCall, _: Compiler) -> Step:
    is_local, arguments = scoped(call)
    if arguments:
        raise refuse_arguments(call)
    return MapStep(texts.as_strings if is_local else texts.as_string)


def _make_concat(call: StepCall, compiler: Compiler) -> Step:
    if not all(argument is None or isinstance(argument, str | Traversal) for argument in call.arguments):
        raise refuse_arguments(call)
    return step_of_arguments(compiler, call.arguments, texts.concat)


def _make_reverse(call: StepCall, _: Compiler) -> Step:
    if call.arguments:
        raise refuse_arguments(call)
    return MapStep(texts.reverse)


STEPS: Mapping[str, Maker] = {
    **dict.fromkeys(_FUNCTIONS, _make_text),
    "asString": _make_as_string,
    "concat": _make_concat,
    "reverse": _make_reverse,
}

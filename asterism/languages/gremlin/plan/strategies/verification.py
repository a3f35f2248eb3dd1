"""Strategies that refuse traversals, in the sentences that TinkerPop's users know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.plan.strategies import names
from asterism.languages.gremlin.plan.strategies.rewriting import ADJACENT, INCIDENT, chains, is_direction_step
from asterism.languages.gremlin.tree import Instruction, Token, Traversal

_WRITES = frozenset({"addV", "addE", "property", "drop", "mergeV", "mergeE"})
_RESERVED_KEYS = frozenset({"id", "label"})
# Steps that give one result for all that comes; `aggregate` and the like give traversers on.
_REDUCING = frozenset({"count", "fold", "sum", "min", "max", "mean", "group", "groupCount", "tree", "cap"})
_LOOP_MODULATORS = frozenset({"emit", "until", "times"})


def verify_read_only(traversal: Traversal) -> None:
    for steps, _ in chains(traversal):
        for step in steps:
            if step.name in _WRITES:
                raise _refused(
                    step, f"The provided traversal has a mutating step and thus is not read only: {step.name}()"
                )


def verify_reserved_keys(traversal: Traversal, settings: Mapping[str, Any]) -> None:
    if not names.flag(settings, "throwException", default=False):
        return
    given = settings.get("keys", settings.get("reservedKeys"))
    keys = _RESERVED_KEYS if given is None else frozenset(names.texts(given))
    for steps, _ in chains(traversal):
        for step in steps:
            if step.name == "property" and (used := keys.intersection(_property_keys(step))):
                raise _refused(
                    step,
                    f"The provided traversal contains a property() that is setting a property key to a reserved word: "
                    f"{min(used)}",
                )


def _property_keys(step: Instruction) -> set[str]:
    arguments = step.arguments
    if arguments and isinstance(arguments[0], Token) and arguments[0].kind == "Cardinality":
        arguments = arguments[1:]
    if arguments and isinstance(arguments[0], dict):
        return {key for key in arguments[0] if isinstance(key, str)}
    return {key for key in arguments[::2] if isinstance(key, str)}


def verify_edge_labels(traversal: Traversal, settings: Mapping[str, Any]) -> None:
    if not names.flag(settings, "throwException", default=False):
        return
    for steps, _ in chains(traversal):
        for step in steps:
            labels = step.arguments[1:] if step.name in ("to", "toE") else step.arguments
            if (step.name in ADJACENT or step.name in INCIDENT or is_direction_step(step)) and not labels:
                raise _refused(
                    step,
                    f"The provided traversal contains a vertex step without any specified edge label: {step.name}(). "
                    "Name the labels of the edges, so that no others are read.",
                )


def verify_standard(traversal: Traversal) -> None:
    """Refuse traversals that cannot mean anything."""
    for steps, parents in chains(traversal):
        has_repeat = any(step.name == "repeat" for step in steps)
        parent_names = [parent.name for parent in parents]
        for place, step in enumerate(steps):
            if step.name == "inject" and "repeat" in parent_names:
                raise _refused(step, "The parent of inject()-step can not be repeat()-step: inject()")
            if parent_names[-1:] == ["repeat"] and _is_reducing(step):
                raise _refused(
                    step, f"The parent of a reducing/supplying barrier can not be repeat()-step: {step.name}()"
                )
            if step.name in _LOOP_MODULATORS and not has_repeat:
                raise _refused(step, f"The repeat()-traversal was not defined: {step.name}()")
            if step.name == "profile" and not step.arguments and _goes_on(steps[place + 1 :]):
                raise _refused(
                    step, "When specified, the profile()-Step must be the last step or followed only by the cap()-step."
                )


def _goes_on(following: tuple[Instruction, ...]) -> bool:
    return any(step.name not in ("cap", "discard", "none") for step in following)


def _is_reducing(step: Instruction) -> bool:
    if step.name not in _REDUCING:
        return False
    is_local = any(isinstance(argument, Token) and argument.name == "local" for argument in step.arguments)
    is_side_effect = step.name in ("group", "groupCount", "tree") and bool(step.arguments)
    return not is_local and not is_side_effect


def _refused(step: Instruction, sentence: str) -> CompileFailure:
    return CompileFailure(sentence, line=step.line, column=step.column)

"""The source of a traversal: `g.withSideEffect(...)`, `g.withSack(...)`, `g.withStrategies(...)` and the like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.plan.settings import Declaration, SourceSettings
from asterism.languages.gremlin.plan.source_options import read_source_options
from asterism.languages.gremlin.plan.strategies import names
from asterism.languages.gremlin.plan.strategies.partition import partitioned
from asterism.languages.gremlin.plan.strategies.subgraph import subgraph
from asterism.languages.gremlin.plan.strategies.verification import (
    verify_edge_labels,
    verify_read_only,
    verify_reserved_keys,
    verify_standard,
)
from asterism.languages.gremlin.tree import Instruction, Lambda, Strategy, Token, Traversal
from asterism.languages.gremlin.values.arithmetic import OPERATORS


@dataclass(slots=True)
class _Source:
    """The source as far as it was read."""

    settings: SourceSettings = field(default_factory=SourceSettings)
    options: dict[str, Any] = field(default_factory=dict)
    side_effects: dict[str, Declaration] = field(default_factory=dict)
    # By name: a strategy that is given again replaces the former.
    strategies: dict[str, Strategy] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)


def read_source(traversal: Traversal, *, key_name: str | None) -> tuple[Traversal, SourceSettings]:
    """Return the traversal without its source, rewritten by its strategies, and the settings that the source gave.

    Raises CompileFailure for calls and strategies that are not known, and for traversals that a strategy forbids.
    """
    source = _Source()
    for instruction in traversal.source:
        read = _READERS.get(instruction.name)
        if read is None:
            raise _refused(instruction, f"Unable to find any method '{instruction.name}'")
        read(source, instruction)
    settings = source.settings
    settings.options = source.options
    settings.side_effects = source.side_effects
    steps = Traversal(traversal.steps)
    if "StandardVerificationStrategy" not in source.removed:
        verify_standard(steps)
    for strategy in source.strategies.values():
        steps = _applied(strategy, steps, settings, key_name=key_name)
    settings.request_options = read_source_options(settings.options)
    return steps, settings


def _applied(strategy: Strategy, steps: Traversal, settings: SourceSettings, *, key_name: str | None) -> Traversal:
    given = strategy.settings
    match strategy.name:
        case "SubgraphStrategy":
            return subgraph(steps, given)
        case "PartitionStrategy":
            return partitioned(steps, given, key_name=key_name)
        case "ReadOnlyStrategy":
            verify_read_only(steps)
        case "ReservedKeysVerificationStrategy":
            verify_reserved_keys(steps, given)
        case "EdgeLabelVerificationStrategy":
            verify_edge_labels(steps, given)
        case "ProductiveByStrategy":
            settings.is_productive_by = True
            settings.productive_keys = frozenset(names.texts(given.get("productiveKeys")))
        case "SeedStrategy":
            settings.seed = names.number(given.get("seed"))
        case "OptionsStrategy":
            settings.options = {**(settings.options or {}), **given}
        case "ProjectionStrategy":
            settings.system_properties = names.system_properties(given)
        case _:
            # An optimization, which changes no result.
            pass
    return steps


def _read_with(source: _Source, instruction: Instruction) -> None:
    arguments = instruction.arguments
    if not 1 <= len(arguments) <= 2 or not isinstance(arguments[0], str):
        raise _refused(instruction, "with() takes the name of an option and its value.")
    source.options[arguments[0]] = arguments[1] if len(arguments) == 2 else True


def _read_side_effect(source: _Source, instruction: Instruction) -> None:
    arguments = instruction.arguments
    if not 2 <= len(arguments) <= 3 or not isinstance(arguments[0], str):
        raise _refused(instruction, "withSideEffect() takes a name, a value and, if wanted, an operator.")
    operator = _operator(instruction, arguments[2]) if len(arguments) == 3 else None
    source.side_effects[arguments[0]] = Declaration(_value(instruction, arguments[1]), operator)


def _read_sack(source: _Source, instruction: Instruction) -> None:
    arguments = instruction.arguments
    if not 1 <= len(arguments) <= 3:
        raise _refused(instruction, "withSack() takes a value and, if wanted, operators.")
    # The operator that splits sacks is code of the client's language; values are shared without it.
    operator = _operator(instruction, arguments[-1]) if len(arguments) > 1 else None
    source.settings.has_sack = True
    source.settings.sack = Declaration(_value(instruction, arguments[0]), operator)


def _read_strategies(source: _Source, instruction: Instruction) -> None:
    for argument in instruction.arguments:
        strategy = _strategy(instruction, argument)
        if strategy.name == "VertexProgramStrategy":
            raise _refused(instruction, _no_computer(source))
        source.removed.discard(strategy.name)
        source.strategies[strategy.name] = strategy


def _read_removed_strategies(source: _Source, instruction: Instruction) -> None:
    for argument in instruction.arguments:
        strategy = _strategy(instruction, argument)
        source.strategies.pop(strategy.name, None)
        source.removed.add(strategy.name)
        if strategy.name == "ConnectiveStrategy":
            source.settings.joins_connectives = False
        if strategy.name == "OptionsStrategy":
            source.options.clear()


def _read_path(source: _Source, _: Instruction) -> None:
    source.settings.tracks_path = source.settings.needs_every_place = True


def _read_bulk(source: _Source, instruction: Instruction) -> None:
    if len(instruction.arguments) != 1 or not isinstance(instruction.arguments[0], bool):
        raise _refused(instruction, "withBulk() takes true or false.")
    source.settings.is_bulked = instruction.arguments[0]


def _refuse_computer(source: _Source, instruction: Instruction) -> None:
    raise _refused(instruction, _no_computer(source))


def _no_computer(source: _Source) -> str:
    if "VertexProgramRestrictionStrategy" in source.strategies:
        return "The TraversalSource does not allow the use of a GraphComputer"
    return "Graph computers are not available here: leave out withComputer(), and traverse the graph step by step."


def _strategy(instruction: Instruction, argument: Any) -> Strategy:
    if not isinstance(argument, Strategy):
        raise _refused(instruction, f"{instruction.name}() takes traversal strategies, not {argument!r}.")
    if argument.name not in names.KNOWN:
        raise _refused(
            instruction,
            f"The traversal strategy '{argument.name}' is not known here. Those that change results are "
            f"{', '.join(names.EFFECTIVE)}.",
        )
    return argument


def _operator(instruction: Instruction, argument: Any) -> str:
    if isinstance(argument, Token) and argument.kind == "Operator" and argument.name in OPERATORS:
        return argument.name
    raise _refused(instruction, f"{instruction.name}() takes an Operator, such as Operator.sum, to merge values by.")


def _value(instruction: Instruction, argument: Any) -> Any:
    if isinstance(argument, Lambda | Traversal):
        raise _refused(instruction, f"{instruction.name}() takes a value: code and traversals are none.")
    return argument


def _refused(instruction: Instruction, sentence: str) -> CompileFailure:
    return CompileFailure(sentence, line=instruction.line, column=instruction.column)


_READERS: Mapping[str, Callable[[_Source, Instruction], None]] = {
    "with": _read_with,
    "withBulk": _read_bulk,
    "withComputer": _refuse_computer,
    "withPath": _read_path,
    "withSack": _read_sack,
    "withSideEffect": _read_side_effect,
    "withStrategies": _read_strategies,
    "withoutStrategies": _read_removed_strategies,
}

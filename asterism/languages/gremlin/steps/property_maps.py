"""Steps that show properties: `properties`, `valueMap`, `propertyMap`, `elementMap`, `element`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING, Modulator
from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.step import AsyncStep, Step
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.strategies.vertex_properties import MAP_OPTION
from asterism.languages.gremlin.steps.basic import FlatMapStep, MapStep
from asterism.languages.gremlin.steps.selecting import modulated
from asterism.languages.gremlin.tree import T_ID, T_KEY, T_LABEL, T_VALUE, Token, Traversal

_TOKENS = "~tinkerpop.valueMap.tokens"
# The numbers of WithOptions.
_IDS, _LABELS, _KEYS, _VALUES = 1, 2, 4, 8
_ALL = _IDS | _LABELS | _KEYS | _VALUES
_IN, _OUT = Token("Direction", "IN"), Token("Direction", "OUT")


def properties_of(element: Any, names: Sequence[str], *, step: str) -> list[VertexProperty] | list[Property]:
    """Return the properties of an element: those with the names, or all of them."""
    if isinstance(element, Vertex):
        found = element.properties
        chosen = [found[name] for name in names if name in found] if names else found.values()
        return [entry for entries in chosen for entry in entries]
    if isinstance(element, Edge | VertexProperty):
        stored = element.properties if isinstance(element, Edge) else element.meta
        return [Property(name, stored[name], element) for name in (names or stored) if name in stored]
    raise ExecutionFailure(f"The {step}() step can only be applied to elements, not to a {type(element).__name__}.")


@dataclass(frozen=True, slots=True)
class MapForm:
    """The form of the maps that a step makes."""

    step: str
    names: tuple[str, ...]
    # Tells which of id, label, key and value stand in the map.
    tokens: int = 0
    # Values instead of the properties themselves.
    has_values: bool = True


def element_tokens(element: Any, tokens: int) -> dict[Any, Any]:
    """Return the tokens of an element that a map is to have."""
    found: dict[Any, Any] = {}
    if tokens & _IDS:
        found[T_ID] = element.id
    if isinstance(element, VertexProperty):
        if tokens & _KEYS:
            found[T_KEY] = element.key
        if tokens & _VALUES:
            found[T_VALUE] = element.value
    elif tokens & _LABELS:
        found[T_LABEL] = element.label
    return found


def property_map(element: Any, form: MapForm, entries: Sequence[VertexProperty | Property]) -> dict[Any, Any]:
    """Return the map of `valueMap` and `propertyMap`: a vertex has a list for each name."""
    found = element_tokens(element, form.tokens)
    if isinstance(element, Vertex):
        for entry in entries:
            found.setdefault(entry.key, []).append(entry.value if form.has_values else entry)
    else:
        for entry in entries:
            found[entry.key] = entry.value if form.has_values else entry
    return found


def element_map(element: Any, _: MapForm, entries: Sequence[VertexProperty | Property]) -> dict[Any, Any]:
    """Return the map of `elementMap`: one value for each name, and both ends of an edge."""
    found = element_tokens(element, _ALL)
    if isinstance(element, Edge):
        found[_IN] = {T_ID: element.in_id, T_LABEL: element.in_label}
        found[_OUT] = {T_ID: element.out_id, T_LABEL: element.out_label}
    for entry in entries:
        found[entry.key] = entry.value
    return found


MapMaker = Callable[[Any, MapForm, Sequence[VertexProperty | Property]], dict[Any, Any]]


class PropertyMapStep(AsyncStep):
    """A map step with a modulator of its values, or with properties that a strategy hides."""

    def __init__(
        self, form: MapForm, make_map: MapMaker, modulator: Modulator | None, criterion: Pipeline | None
    ) -> None:
        self.form = form
        self.make_map = make_map
        self.modulator = modulator
        self.criterion = criterion

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        run, form = frame.run, self.form
        listed = [properties_of(traverser.value, form.names, step=form.step) for traverser in batch]
        if self.criterion is not None:
            listed = await _visible(listed, self.criterion, run)
        maps = [self.make_map(traverser.value, form, entries) for traverser, entries in zip(batch, listed, strict=True)]
        if self.modulator is not None:
            values = [value for shown in maps for value in shown.values()]
            found = iter(await modulated(values, self.modulator, run))
            modulated_maps = [{key: next(found) for key in shown} for shown in maps]
            maps = [
                {key: value for key, value in shown.items() if value is not MISSING and value is not None}
                for shown in modulated_maps
            ]
        return [traverser.to(shown) for traverser, shown in zip(batch, maps, strict=True)]


async def _visible(listed: list[Any], criterion: Pipeline, run: Run) -> list[Any]:
    tested = [entry for entries in listed for entry in entries if isinstance(entry, VertexProperty)]
    passed = iter(await criterion.succeeds([Traverser(entry) for entry in tested], run))
    return [[entry for entry in entries if not isinstance(entry, VertexProperty) or next(passed)] for entries in listed]


def _names(call: StepCall, arguments: Sequence[Any]) -> tuple[str, ...]:
    """Return names of properties; null stands for none, but is an argument: it alone asks for no property."""
    for argument in arguments:
        if argument is not None and not isinstance(argument, str):
            raise call.refused(f"{call.name}() takes names of properties, not {argument!r}.")
    return tuple("\0" if argument is None else argument for argument in arguments)


def _read_tokens(call: StepCall) -> tuple[int, Sequence[Any]]:
    arguments: Sequence[Any] = call.arguments
    tokens = 0
    if arguments and isinstance(arguments[0], bool):
        tokens, arguments = (_ALL if arguments[0] else 0), arguments[1:]
    for option in call.modulators_named("with"):
        if not option.arguments or option.arguments[0] != _TOKENS:
            continue
        for wanted in option.arguments[1:] or (True,):
            if isinstance(wanted, bool):
                tokens = _ALL if wanted else 0
            elif isinstance(wanted, int) and 0 <= wanted <= _ALL:
                tokens |= wanted
            else:
                raise call.refused(
                    "WithOptions.tokens requires Integer arguments (possible values are: "
                    "WithOptions.[none|ids|labels|keys|values|all])"
                )
    return tokens, arguments


def _criterion(call: StepCall, compiler: Compiler) -> Pipeline | None:
    for option in call.modulators_named("with"):
        name, *values = option.arguments or (None,)
        if name == MAP_OPTION and len(values) == 1 and isinstance(values[0], Traversal):
            return compiler.pipeline(values[0])
    return None


def _make_map_step(call: StepCall, compiler: Compiler, form: MapForm, make_map: MapMaker) -> Step:
    modulators = compiler.modulators(call)
    if len(modulators) > 1 or (modulators and make_map is element_map):
        raise call.refused(
            "elementMap() takes no by modulator"
            if make_map is element_map
            else "valueMap()/propertyMap() step can only have one by modulator"
        )
    criterion = _criterion(call, compiler)
    if criterion is None and not modulators:
        names, step = form.names, form.step
        return MapStep(lambda element: make_map(element, form, properties_of(element, names, step=step)))
    return PropertyMapStep(form, make_map, modulators[0] if modulators else None, criterion)


def _make_value_map(call: StepCall, compiler: Compiler) -> Step:
    tokens, arguments = _read_tokens(call)
    form = MapForm(call.name, _names(call, arguments), tokens, has_values=call.name == "valueMap")
    return _make_map_step(call, compiler, form, property_map)


def _make_element_map(call: StepCall, compiler: Compiler) -> Step:
    return _make_map_step(call, compiler, MapForm("elementMap", _names(call, call.arguments)), element_map)


def _make_properties(call: StepCall, _: Compiler) -> FlatMapStep:
    names = _names(call, call.arguments)
    return FlatMapStep(lambda element: list(properties_of(element, names, step="properties")))


def _element_of(value: Any) -> Any:
    if isinstance(value, VertexProperty):
        return value.vertex
    if isinstance(value, Property):
        return value.element
    raise ExecutionFailure(f"The element() step can only be applied to properties, not to a {type(value).__name__}.")


STEPS: Mapping[str, Maker] = {
    "element": lambda _call, _compiler: MapStep(_element_of),
    "elementMap": _make_element_map,
    "properties": _make_properties,
    "propertyMap": _make_value_map,
    "valueMap": _make_value_map,
}

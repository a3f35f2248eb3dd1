"""What the names in a query stand for: aliases of FROM, and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from asterism.errors import MalformedQuery
from asterism.query.tree import From, Parameter, Path, Query, Span, SubqueryCollection

_UNRESOLVED = "SC2001"

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """Aliases by the place they name below the item, and parameters by their value."""

    aliases: Mapping[str, Steps]
    parameters: Mapping[str, object]

    def steps_below_item(self, path: Path) -> Steps:
        """The whole way from the item to what `path` names."""
        steps = self.aliases.get(path.alias)
        if steps is None:
            _refuse(path.alias, Span(path.span.start, path.span.start + len(path.alias)))
        return steps + path.steps

    def parameter(self, parameter: Parameter) -> object:
        if parameter.name not in self.parameters:
            _refuse(parameter.name, parameter.span)
        return self.parameters[parameter.name]


def scope_of(query: Query, parameters: Mapping[str, object]) -> Scope:
    """The names that hold inside `query`; without FROM there is no alias."""
    return Scope(_aliases(query.from_clause) if query.from_clause else {}, parameters)


def _aliases(from_clause: From) -> dict[str, Steps]:
    collection = from_clause.source.collection
    if isinstance(collection, SubqueryCollection):
        return {}
    alias = from_clause.source.alias or _inferred_alias(collection)
    return {alias: collection.steps} if alias else {}


def _inferred_alias(collection: Path) -> str | None:
    """`FROM c` is known as c, `FROM c.a.b` as b, and `FROM c.a[0]` has no name."""
    last = (collection.alias, *collection.steps)[-1]
    return last if isinstance(last, str) else None


def _refuse(name: str, span: Span) -> NoReturn:
    raise MalformedQuery(_UNRESOLVED, f"Identifier '{name}' could not be resolved.", span.start, span.end)

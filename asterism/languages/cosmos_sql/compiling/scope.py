"""The names in a query: aliases of FROM, and parameters.

Expressions are evaluated on a row. For a plain query the row is the item itself. If FROM makes several rows of an item,
a row is an object with a property for each alias, and the row of the query around it under `OUTER`; so every alias,
also of an outer query, is a path below the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax.tree import Parameter, Path, Span
from asterism.reading.conditions import PropertyPath

_UNRESOLVED = "SC2001"

Steps = tuple[str | int, ...]

# Not an identifier, so never an alias.
OUTER: Final = "^"


@dataclass(frozen=True, slots=True)
class Scope:
    """Aliases with their path below the row, and parameters with their value."""

    aliases: Mapping[str, Steps]
    parameters: Mapping[str, object]
    # The aliases of paths in the stored item, with the path.
    item_aliases: Mapping[str, Steps] = field(default_factory=dict)
    # True if FROM may name the container here, by any name; elsewhere it must name an alias.
    sees_container: bool = False

    def steps_below_row(self, path: Path) -> Steps:
        """Return all steps from the row to the value at `path`."""
        steps = self.aliases.get(path.alias)
        if steps is None:
            _refuse(path.alias, Span(path.span.start, path.span.start + len(path.alias)))
        return steps + path.steps

    def steps_of_collection(self, path: Path) -> Steps:
        """Return the same for a path in FROM, where a name can be the container's: the row is then an item of it."""
        if self.sees_container and path.alias not in self.aliases:
            return path.steps
        return self.steps_below_row(path)

    def steps_below_item(self, path: Path) -> Steps | None:
        """Return all steps from the stored item to the value at `path`; None if FROM made the value."""
        steps = self.item_aliases.get(path.alias)
        return None if steps is None else steps + path.steps

    def parameter(self, parameter: Parameter) -> object:
        if parameter.name not in self.parameters:
            _refuse(parameter.name, parameter.span)
        return self.parameters[parameter.name]

    def inside(self) -> Scope:
        """Return the scope of rows that hold this scope's row under OUTER."""
        return Scope({alias: (OUTER, *steps) for alias, steps in self.aliases.items()}, self.parameters)

    def binding(self, alias: str | None, steps: Steps) -> Scope:
        """Return this scope with another alias, for expressions: these cannot name the container."""
        aliases = self.aliases if alias is None else {**self.aliases, alias: steps}
        return Scope(aliases, self.parameters)


def property_path(scope: Scope, path: Path) -> PropertyPath | None:
    """Return the path from the item if it has only property names; None for a path through arrays, for the item itself,
    and for values that FROM made."""
    steps = scope.steps_below_item(path)
    names = tuple(step for step in steps or () if isinstance(step, str))
    return names if names and len(names) == len(steps or ()) else None


def inferred_alias(collection: Path) -> str | None:
    """Return the alias of a collection without AS: c of `c`, b of `c.a.b`, and None of `c.a[0]`."""
    last = (collection.alias, *collection.steps)[-1]
    return last if isinstance(last, str) else None


def _refuse(name: str, span: Span) -> NoReturn:
    raise MalformedQuery(_UNRESOLVED, f"Identifier '{name}' could not be resolved.", span.start, span.end)

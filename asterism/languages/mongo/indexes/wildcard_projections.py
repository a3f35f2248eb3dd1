"""`wildcardProjection`: the paths that a wildcard index holds."""

from __future__ import annotations

from typing import Any, NamedTuple

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.indexes.key_pattern import WILDCARD, is_wildcard_path
from asterism.languages.mongo.indexes.refusals import cannot_create
from asterism.values.bson.kinds import is_number
from asterism.values.bson.order import compare
from asterism.values.bson.types import Document


class PathFilter(NamedTuple):
    """Paths that are included with all below them, or excluded; `_id` has a rule of its own."""

    paths: frozenset[str]
    is_inclusion: bool
    includes_id: bool

    def includes(self, path: str) -> bool:
        if path == "_id" or path.startswith("_id."):
            return self.includes_id
        parts = path.split(".")
        is_listed = any(".".join(parts[:count]) in self.paths for count in range(1, len(parts) + 1))
        return is_listed is self.is_inclusion


ALL_BUT_ID = PathFilter(frozenset(), is_inclusion=False, includes_id=False)
ALL = PathFilter(frozenset(), is_inclusion=False, includes_id=True)


def path_filter_of(key: Document, projection: Document | None) -> PathFilter:
    """Return the paths of a wildcard index, and check that its other fields are not among them."""
    wildcard = next(path for path in key if is_wildcard_path(path))
    if projection is None:
        if len(key) > 1 and wildcard == WILDCARD:
            raise cannot_create("Compound wildcard indexes with '$**' must have a 'wildcardProjection'")
        return ALL_BUT_ID if wildcard == WILDCARD else ALL
    if wildcard != WILDCARD:
        raise MongoFailure(9, "The field 'wildcardProjection' is only allowed when the wildcard is '$**'")
    if not projection:
        raise MongoFailure(9, "The 'wildcardProjection' field can't be an empty object")
    found = _parse(projection)
    for path in key:
        if path != wildcard and found.includes(path):
            raise MongoFailure(7246209, f"The field '{path}' must be excluded by the 'wildcardProjection'")
    return found


def _parse(projection: Document) -> PathFilter:
    leaves: dict[str, bool] = {}
    _flatten(projection, "", leaves)
    id_rule = leaves.pop("_id", None)
    if not leaves:
        includes = bool(id_rule)
        return PathFilter(frozenset(), is_inclusion=includes, includes_id=includes)
    is_inclusion = next(iter(leaves.values()))
    for path, includes in leaves.items():
        if includes is not is_inclusion:
            code = 31254 if is_inclusion else 31253
            kind = "inclusion" if is_inclusion else "exclusion"
            raise MongoFailure(code, f"Invalid projection of '{path}' in {kind} projection")
    return PathFilter(frozenset(leaves), is_inclusion=is_inclusion, includes_id=bool(id_rule))


def _flatten(projection: Document, prefix: str, leaves: dict[str, bool]) -> None:
    for name, value in projection.items():
        path = prefix + name
        if type(value) is dict and value and not next(iter(value)).startswith("$"):
            _flatten(value, path + ".", leaves)
            continue
        includes = _is_included(path, value)
        for other in leaves:
            if path.startswith(other + "."):
                raise MongoFailure(31249, f"Path collision at {path}")
            if other == path or other.startswith(path + "."):
                raise MongoFailure(31250, f"Path collision at {path}")
        leaves[path] = includes


def _is_included(path: str, value: Any) -> bool:
    if type(value) is bool:
        return value
    if is_number(value):
        return compare(value, 0) != 0
    raise MongoFailure(51271, f"Bad projection specification, cannot use computed fields: '{path}'")

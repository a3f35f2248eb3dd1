"""Spatial indexes: a term for each cell of the grid of the Earth that covers a geometry (see `cells`).

All geometries at the index's path have terms, whatever types the policy names, so that a query that uses the index
finds all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from asterism.keyspaces.routing.families import INDEX
from asterism.models.documents.indexes.cells import index_values
from asterism.models.documents.indexes.paths import (
    PATH_TOKEN_BYTES,
    Coverage,
    Segment,
    parse_policy_path,
    path_token,
    value_at,
)
from asterism.models.documents.indexes.terms import Term


@dataclass(frozen=True, slots=True)
class SpatialIndex:
    """Geometries at a path, or at and below it."""

    path: tuple[str, ...]
    with_subtree: bool

    def covers(self, path: Sequence[Segment]) -> bool:
        place = tuple(path)
        return place == self.path or (self.with_subtree and place[: len(self.path)] == self.path)

    def terms(self, item: Mapping[str, Any]) -> Iterator[Term]:
        return self._terms_at(self.path, value_at(item, self.path))

    def _terms_at(self, path: tuple[str, ...], value: object) -> Iterator[Term]:
        if not isinstance(value, dict):
            return
        if "coordinates" in value:
            start = INDEX + spatial_token(path)
            yield from (start + cell for cell in index_values(value))
        if self.with_subtree:
            for name, member in value.items():
                if type(member) is dict:
                    yield from self._terms_at((*path, name), member)


def spatial_token(path: Sequence[str]) -> bytes:
    """Return the token of the geometries at a path, which no path of scalars has."""
    return blake2b(path_token(path) + b"\x02", digest_size=PATH_TOKEN_BYTES).digest()


def spatial_index(path: str) -> SpatialIndex | None:
    """Return the index on a policy's path; None for a path through arrays, which no query can use."""
    segments, coverage = parse_policy_path(path)
    names = tuple(segment for segment in segments if isinstance(segment, str))
    return SpatialIndex(names, coverage is Coverage.SUBTREE) if len(names) == len(segments) else None

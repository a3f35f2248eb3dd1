"""A profile of a container's items, made in one pass over any number of them in bounded memory.

Counts and the numbers of different values are of all items; a fair sample, and some families of items that share an id,
are kept for everything else.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from asterism.advisor.keys.sketches import DistinctCounter, Reservoir, hash_of, shortened
from asterism.advisor.keys.time_stamps import TimeShape, shape_of
from asterism.advisor.value_digests import Scalar
from asterism.errors import MalformedRequest
from asterism.partitioning.key_path import check_key_path

SAMPLED_ITEMS: Final = 20_000
PATHS_MAX: Final = 256
VALUES_PER_ITEM_MAX: Final = 64
_DEPTH_MAX: Final = 8
# Set by the server, in every item.
SYSTEM_PROPERTIES: Final = frozenset(("_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"))
# Added to an item by the server, in bytes and in index entries (`_ts`).
_SYSTEM_BYTES: Final = 205
_SYSTEM_TERMS: Final = 1
# Ids that are watched for a second item with the same one.
_WATCHED_IDS_MAX: Final = 4_000
_TWINS_MAX: Final = 8


class SampledItem(NamedTuple):
    """The part of an item that is kept: its scalars by path, its size as stored, and its index entries."""

    values: Mapping[str, Scalar]
    size_bytes: int
    terms: int


class PathProfile:
    """A path that was met in items: how often it has a scalar, and its different values."""

    __slots__ = ("below", "count", "distinct", "is_system", "other_count", "path")

    def __init__(self, path: str, *, is_system: bool = False) -> None:
        self.path = path
        self.is_system = is_system
        self.count = 0
        # Objects and arrays, which no key can be made of.
        self.other_count = 0
        self.distinct = DistinctCounter()
        self.below: dict[str, PathProfile] = {}


@dataclass(slots=True)
class ItemProfile:
    """`feed` it with every item, then read it."""

    rng: random.Random
    sampled_items: int = SAMPLED_ITEMS
    items: int = 0
    total_bytes: int = 0
    paths: dict[str, PathProfile] = field(default_factory=dict)
    # Paths beyond `PATHS_MAX` are not looked at.
    has_more_paths: bool = False
    sample: Reservoir[SampledItem] = field(init=False)
    twins: IdFamilies = field(init=False)
    _top: dict[str, PathProfile] = field(default_factory=dict)
    # Computed when they are first asked for, after the last item.
    _shapes: dict[str, TimeShape] | None = None
    _times: list[float | None] | None = None
    _distinct: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sample = Reservoir(self.sampled_items, self.rng)
        self.twins = IdFamilies()

    def feed(self, item: Mapping[str, Any], text_bytes: int) -> None:
        """Add an item whose JSON text has so many bytes."""
        size_bytes = text_bytes if "_rid" in item else text_bytes + _SYSTEM_BYTES
        self.items += 1
        self.total_bytes += size_bytes
        self._count_values(self._top, item, "", 1)
        self.sample.offer(lambda: sampled_item(item, size_bytes))
        self.twins.notice(item, size_bytes)

    def _count_values(self, known: dict[str, PathProfile], held: Mapping[str, Any], parent: str, depth: int) -> None:
        for name, value in held.items():
            profile = known.get(name)
            if profile is None:
                profile = self._meet(known, name, parent)
                if profile is None:
                    continue
            if profile.is_system:
                continue
            kind = type(value)
            if kind is dict:
                profile.other_count += 1
                if depth < _DEPTH_MAX:
                    self._count_values(profile.below, value, profile.path, depth + 1)
            elif kind is list:
                profile.other_count += 1
            else:
                profile.count += 1
                exact = profile.distinct.exact
                # Nearly all values of most paths are known: without a call, this loop takes half the time.
                if exact is not None and value in exact:
                    exact[value] += 1
                else:
                    profile.distinct.add(value)

    def _meet(self, known: dict[str, PathProfile], name: str, parent: str) -> PathProfile | None:
        if len(self.paths) >= PATHS_MAX:
            self.has_more_paths = True
            return None
        profile = PathProfile(f"{parent}/{path_name(name)}", is_system=not parent and name in SYSTEM_PROPERTIES)
        known[name] = profile
        if not profile.is_system:
            self.paths[profile.path] = profile
        return profile

    # --- figures ----------------------------------------------------------------------------------------------------

    @property
    def scale(self) -> float:
        """The items for which each of the sample stands."""
        return self.items / len(self.sample.kept) if self.sample.kept else 1.0

    @property
    def mean_bytes(self) -> float:
        return self.total_bytes / self.items if self.items else 1024.0

    @property
    def mean_terms(self) -> float:
        kept = self.sample.kept
        return sum(item.terms for item in kept) / len(kept) if kept else 10.0

    def share_with(self, path: str) -> float:
        """Return the share of the items that have a scalar at the path."""
        profile = self.paths.get(path)
        return profile.count / self.items if profile is not None and self.items else 0.0

    def distinct(self, path: str) -> int:
        known = self._distinct.get(path)
        if known is None:
            profile = self.paths.get(path)
            known = self._distinct[path] = profile.distinct.estimate() if profile is not None else 0
        return known

    def time_shapes(self) -> dict[str, TimeShape]:
        """Return the paths whose values are time stamps."""
        if self._shapes is None:
            shapes = ((path, shape_of(self.sampled_values(path))) for path in self.paths)
            self._shapes = {path: shape for path, shape in shapes if shape is not None}
        return self._shapes

    def sampled_times(self) -> list[float | None]:
        """Return the time of each sampled item, by the path of time stamps that most items have; empty without one."""
        if self._times is None:
            shapes = self.time_shapes()
            best = max(shapes, key=lambda path: (self.share_with(path), self.distinct(path)), default=None)
            kept = self.sample.kept
            self._times = [] if best is None else [shapes[best].seconds(item.values.get(best)) for item in kept]
        return self._times

    def sampled_values(self, path: str) -> list[Scalar]:
        return [item.values[path] for item in self.sample.kept if path in item.values]


class IdFamilies:
    """All items of some ids, to see whether ids come twice: those whose ids have the smallest hashes."""

    __slots__ = ("_threshold", "families")

    def __init__(self) -> None:
        self.families: dict[Scalar, list[SampledItem]] = {}
        self._threshold = 1 << 32

    def notice(self, item: Mapping[str, Any], size_bytes: int) -> None:
        item_id = item.get("id")
        if type(item_id) is not str or hash_of(item_id) >= self._threshold:
            return
        family = self.families.setdefault(item_id, [])
        if len(family) < _TWINS_MAX:
            family.append(sampled_item(item, size_bytes))
        if len(self.families) > _WATCHED_IDS_MAX:
            self._threshold //= 2
            self.families = {key: kept for key, kept in self.families.items() if hash_of(key) < self._threshold}


def sampled_item(item: Mapping[str, Any], size_bytes: int) -> SampledItem:
    values: dict[str, Scalar] = {}
    terms = _collect(item, "", values, 1)
    return SampledItem(values, size_bytes, terms + _SYSTEM_TERMS)


def _collect(held: Mapping[str, Any], parent: str, values: dict[str, Scalar], depth: int) -> int:
    """Put the scalars of an object into `values`; return the number of its index entries."""
    terms = 0
    for name, value in held.items():
        if not parent and name in SYSTEM_PROPERTIES:
            continue
        terms += 1
        if isinstance(value, dict):
            terms += _collect(value, f"{parent}/{path_name(name)}", values, depth + 1) if depth < _DEPTH_MAX else 0
        elif isinstance(value, list):
            terms += _terms_of_list(value)
        elif len(values) < VALUES_PER_ITEM_MAX:
            values[f"{parent}/{path_name(name)}"] = shortened(value)
    return terms


def _terms_of_list(elements: list[Any]) -> int:
    scalars = {repr(element) for element in elements if not isinstance(element, dict | list)}
    nested = sum(len(element) for element in elements if isinstance(element, dict | list))
    return len(scalars) + nested


def path_name(name: str) -> str:
    """Return a property's name as paths write it: between quotes if it would not be read as one name."""
    if name.isidentifier():
        return name
    try:
        check_key_path(f"/{name}")
    except MalformedRequest:
        pass
    else:
        if "/" not in name and name[:1] not in ("'", '"'):
            return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

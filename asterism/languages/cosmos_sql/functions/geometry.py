"""Points, lines and polygons on the sphere: containment, intersection and nearest places.

A polygon is the area to the left of its outer ring, so that a ring drawn clockwise bounds the rest of the Earth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql.functions.vectors import (
    SAME_PLACE,
    Arc,
    Vector,
    arcs_cross,
    arcs_touch,
    cross,
    dot,
    gap,
    is_on_arc,
    midpoint,
    nearest_on_arc,
)
from asterism.reading.turns import pause

Ring = list[Vector]

# Every edge may have to be compared with every other edge; this many pairs take about a second.
_EDGE_PAIRS_MAX: Final = 100_000
# A direction that cannot be distinguished from the plane of an edge.
_FLAT: Final = 1e-14


@dataclass(frozen=True, slots=True)
class Shape:
    """A GeoJSON geometry: places, arcs that are lines, and polygons, each its outer ring and its holes."""

    places: list[Vector] = field(default_factory=list)
    lines: list[Arc] = field(default_factory=list)
    polygons: list[list[Ring]] = field(default_factory=list)

    def edges(self) -> list[Arc]:
        return [*self.lines, *(edge for polygon in self.polygons for ring in polygon for edge in arcs_of(ring))]

    def corners(self) -> Iterator[Vector]:
        yield from self.places
        for edge in self.edges():
            yield edge[0]
            yield edge[1]


def arcs_of(places: list[Vector]) -> list[Arc]:
    return [(start, end) for start, end in pairwise(places) if start != end]


# --- inside and outside ---------------------------------------------------------------------------------------------


def area_to_the_left(ring: Ring) -> float:
    """Return the area on the unit sphere, which has four pi, from the angle by which the ring turns."""
    arcs = arcs_of(ring)
    turned = 0.0
    for (start, corner), (_, end) in pairwise([*arcs, *arcs[:1]]):
        before, after = cross(start, corner), cross(corner, end)
        turned += math.atan2(dot(corner, cross(before, after)), dot(before, after))
    return (2 * math.pi - turned) % (4 * math.pi)


def is_left_of_ring(place: Vector, ring: Ring) -> bool:
    """Return whether a place that is not on the ring is to its left."""
    arcs = arcs_of(ring)
    for edge in arcs:
        pause()
        normal = cross(*edge)
        side = dot(normal, place)
        if abs(side) <= _FLAT * math.hypot(*normal):
            continue
        # A ray to the middle of an edge arrives from the left or the right, after crossing the other edges.
        ray = (place, midpoint(edge))
        if any(_meets_corner(ray, other) for other in arcs):
            continue
        crossings = sum(arcs_cross(ray, other) for other in arcs if other is not edge)
        return (side > 0.0) == (crossings % 2 == 0)
    return False


def _meets_corner(ray: Arc, edge: Arc) -> bool:
    """Return whether the ray goes through the edge's start, where crossings cannot be counted."""
    normal = cross(*ray)
    return abs(dot(normal, edge[0])) <= _FLAT and is_on_arc(edge[0], ray)


def _is_on_border(place: Vector, polygon: list[Ring]) -> bool:
    return any(is_on_arc(place, edge) for ring in polygon for edge in arcs_of(ring))


def _is_inside(place: Vector, polygon: list[Ring]) -> bool:
    """Return whether a place is strictly inside: not on the border, and left of every ring."""
    return not _is_on_border(place, polygon) and all(is_left_of_ring(place, ring) for ring in polygon)


def _is_in_or_on(place: Vector, polygon: list[Ring]) -> bool:
    return _is_on_border(place, polygon) or all(is_left_of_ring(place, ring) for ring in polygon)


def _holds(shape: Shape, place: Vector) -> bool:
    return (
        any(gap(place, other) < SAME_PLACE for other in shape.places)
        or any(is_on_arc(place, line) for line in shape.lines)
        or any(_is_in_or_on(place, polygon) for polygon in shape.polygons)
    )


# --- two shapes -----------------------------------------------------------------------------------------------------


def _check_effort(left: list[Arc], right: list[Arc]) -> None:
    if len(left) * len(right) > _EDGE_PAIRS_MAX:
        raise MalformedRequest(reason="The geometries have too many positions to be compared. Simplify one of them.")


def intersect(left: Shape, right: Shape) -> bool:
    if any(_holds(right, place) for place in left.places) or any(_holds(left, place) for place in right.places):
        return True
    left_edges, right_edges = left.edges(), right.edges()
    _check_effort(left_edges, right_edges)
    if _any_pair_meets(left_edges, right_edges):
        return True
    # No borders meet: one shape lies wholly in the other, or they are apart.
    return any(_holds(right, start) for start in _starts(left)) or any(_holds(left, start) for start in _starts(right))


def _any_pair_meets(left: list[Arc], right: list[Arc]) -> bool:
    boxed = [(edge, _box(edge)) for edge in right]
    for edge in left:
        pause()
        box = _box(edge)
        if any(_boxes_meet(box, other_box) and arcs_touch(edge, other) for other, other_box in boxed):
            return True
    return False


def _starts(shape: Shape) -> Iterator[Vector]:
    """Yield a place of each connected part of the shape's edges."""
    yield from (line[0] for line in shape.lines[:1])
    yield from (ring[0] for polygon in shape.polygons for ring in polygon)


_Box = tuple[float, float, float, float, float, float]


def _box(edge: Arc) -> _Box:
    """Return bounds of the arc in space, with room for its height over the straight line."""
    (ax, ay, az), (bx, by, bz) = edge
    half = min(gap(*edge) / 2, 1.0)
    room = 1.0 - math.sqrt(1.0 - half * half) + SAME_PLACE
    return (
        min(ax, bx) - room,
        min(ay, by) - room,
        min(az, bz) - room,
        max(ax, bx) + room,
        max(ay, by) + room,
        max(az, bz) + room,
    )


def _boxes_meet(left: _Box, right: _Box) -> bool:
    return (
        left[0] <= right[3]
        and right[0] <= left[3]
        and left[1] <= right[4]
        and right[1] <= left[4]
        and left[2] <= right[5]
        and right[2] <= left[5]
    )


def is_within(inner: Shape, outer: Shape) -> bool:
    """Return whether all of `inner` lies in `outer`, and not only on its border."""
    _check_effort(inner.edges() or [(place, place) for place in inner.places], outer.edges())
    if outer.polygons:
        return all(any(_part_is_within(part, polygon) for polygon in outer.polygons) for part in _parts(inner))
    corners = list(inner.corners())
    return not inner.polygons and all(_holds(outer, corner) for corner in corners + list(map(midpoint, inner.lines)))


def _parts(shape: Shape) -> Iterator[Shape]:
    yield from (Shape(places=[place]) for place in shape.places)
    yield from (Shape(polygons=[polygon]) for polygon in shape.polygons)
    if shape.lines:
        yield Shape(lines=shape.lines)


def _part_is_within(part: Shape, polygon: list[Ring]) -> bool:
    border = [edge for ring in polygon for edge in arcs_of(ring)]
    edges = part.edges()
    if _any_pair_meets(edges, border):
        return _is_within_and_touches(part, edges, polygon, border)
    # No edges meet, so a single place decides; but a hole may lie in the part.
    first = next(part.corners())
    return _is_inside(first, polygon) and not any(
        _is_inside(ring[0], hull) for ring in polygon for hull in part.polygons
    )


def _is_within_and_touches(part: Shape, edges: list[Arc], polygon: list[Ring], border: list[Arc]) -> bool:
    if any(_cross_clearly(edge, other) for edge in edges for other in border):
        return False
    probes = [*part.corners(), *map(midpoint, edges)]
    if not all(_is_in_or_on(place, polygon) for place in probes):
        return False
    if part.polygons:
        # A corner of the border inside the part has places on both sides of the border near it.
        return not any(_is_inside(start, part.polygons[0]) for start, _ in border)
    return any(_is_inside(place, polygon) for place in probes)


def _cross_clearly(left: Arc, right: Arc) -> bool:
    """Return whether the arcs cross, except at their ends, where a crossing may be a rounding error."""
    if not arcs_cross(left, right):
        return False
    return not (any(is_on_arc(end, right) for end in left) or any(is_on_arc(end, left) for end in right))


def nearest_places(left: Shape, right: Shape) -> Arc:
    """Return the nearest places of two shapes that do not meet."""
    left_edges, right_edges = left.edges(), right.edges()
    _check_effort(left_edges, right_edges)
    candidates = [
        *_from_corners(left, right, right_edges),
        *((near, far) for far, near in _from_corners(right, left, left_edges)),
    ]
    return min(candidates, key=lambda pair: gap(*pair))


def _from_corners(shape: Shape, other: Shape, other_edges: list[Arc]) -> Iterator[Arc]:
    """Yield the arc from each corner of a shape to the nearest place of the other."""
    for corner in set(shape.corners()):
        pause()
        places = [*other.places, *(nearest_on_arc(corner, edge) for edge in other_edges)]
        yield corner, min(places, key=lambda place: gap(corner, place))

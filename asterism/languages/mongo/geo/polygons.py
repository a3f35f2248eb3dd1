"""Loops and polygons on the sphere."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from asterism.languages.mongo.geo.vectors import (
    ORIGIN,
    Vector,
    counts_as_crossing,
    crossing,
    distance_to_edge,
    inside_at_corner,
    middle,
    turn,
)

# The server compares places by cells of about a centimeter: half of that in radians.
TOUCH_RADIANS: Final = 7e-10
_TURN_ERROR: Final = 1e-14
_SAME_RADIANS: Final = 1e-15

Edge = tuple[Vector, Vector]


class Loop:
    """A closed way without crossings; its inside is to the left of it."""

    __slots__ = ("_origin_inside", "corners")

    def __init__(self, corners: Sequence[Vector]) -> None:
        self.corners = tuple(corners)
        self._origin_inside = False
        inside = inside_at_corner(self.corners[0], self.corners[1], self.corners[2])
        self._origin_inside = inside != self.contains(self.corners[1])

    def edges(self) -> Iterator[Edge]:
        corners = self.corners
        for position, corner in enumerate(corners):
            yield corners[position - 1], corner

    def contains(self, place: Vector) -> bool:
        inside = self._origin_inside
        for a, b in self.edges():
            if counts_as_crossing(ORIGIN, place, a, b):
                inside = not inside
        return inside

    def normalized(self) -> Loop:
        """Return the loop around the smaller of the two parts that it divides the sphere into."""
        corners = self.corners
        count = len(corners)
        turned = sum(
            turn(corners[position - 1], corner, corners[(position + 1) % count])
            for position, corner in enumerate(corners)
        )
        return self if turned >= -_TURN_ERROR else Loop(corners[::-1])

    def crosses_itself(self) -> bool:
        edges = list(self.edges())
        return any(
            crossing(*edge, *other) > 0 for position, edge in enumerate(edges) for other in edges[position + 2 :]
        )

    def distance_to(self, place: Vector) -> float:
        """Return the angle to the nearest place of the way itself."""
        return min(distance_to_edge(place, a, b) for a, b in self.edges())

    def touches(self, place: Vector) -> bool:
        return self.distance_to(place) <= TOUCH_RADIANS


class Polygon:
    """A loop with holes."""

    __slots__ = ("holes", "is_big", "outer")

    def __init__(self, outer: Loop, holes: Sequence[Loop] = (), *, is_big: bool = False) -> None:
        self.outer = outer
        self.holes = tuple(holes)
        # May be larger than half the sphere.
        self.is_big = is_big

    @property
    def loops(self) -> tuple[Loop, ...]:
        return self.outer, *self.holes

    def edges(self) -> Iterator[Edge]:
        for loop in self.loops:
            yield from loop.edges()

    def corners(self) -> Iterator[Vector]:
        for loop in self.loops:
            yield from loop.corners

    def contains(self, place: Vector) -> bool:
        return self.outer.contains(place) and not any(hole.contains(place) for hole in self.holes)

    def holds(self, place: Vector) -> bool:
        """Return whether a place is inside, or on a loop as exactly as coordinates can say."""
        return self.contains(place) or self.outer.distance_to(place) <= _SAME_RADIANS

    def touches(self, place: Vector) -> bool:
        """Return whether a place lies on one of the loops."""
        return any(loop.touches(place) for loop in self.loops)

    def covers(self, place: Vector) -> bool:
        return self.contains(place) or self.touches(place)

    def distance_to(self, place: Vector) -> float:
        return 0.0 if self.contains(place) else min(loop.distance_to(place) for loop in self.loops)

    def contains_line(self, line: Sequence[Vector]) -> bool:
        edges = list(itertools.pairwise(line))
        if not all(self.covers(place) for place in line):
            return False
        if any(crossing(*edge, *own) > 0 for edge in edges for own in self.edges()):
            return False
        return all(self.covers(middle(a, b)) for a, b in edges)

    def contains_polygon(self, other: Polygon) -> bool:
        if not self.contains_line((*other.outer.corners, other.outer.corners[0])):
            return False
        # Nothing that this polygon leaves out may be inside of the other.
        return not any(
            other.contains(place) and not other.touches(place) for hole in self.holes for place in hole.corners
        )

    def intersects_line(self, line: Sequence[Vector]) -> bool:
        if any(self.covers(place) for place in line):
            return True
        edges = list(itertools.pairwise(line))
        return any(crossing(*edge, *own) >= 0 for edge in edges for own in self.edges())

    def intersects_polygon(self, other: Polygon) -> bool:
        """Return whether the insides have a place in common: a common corner or edge is not enough."""
        if any(self.encloses(place) for place in other.inner_places()):
            return True
        if any(other.encloses(place) for place in self.inner_places()):
            return True
        own_edges = list(self.edges())
        return any(crossing(*edge, *own) > 0 for edge in other.edges() for own in own_edges)

    def encloses(self, place: Vector) -> bool:
        return self.contains(place) and not self.touches(place)

    def inner_places(self) -> Iterator[Vector]:
        """Yield the corners of the outer loop, and some places inside of it."""
        corners = self.outer.corners
        yield from corners
        for position, corner in enumerate(corners):
            place = middle(corners[position - 2], corner)
            if self.encloses(place):
                yield place


def lines_intersect(line: Sequence[Vector], other: Sequence[Vector]) -> bool:
    edges = list(itertools.pairwise(other))
    for a, b in itertools.pairwise(line):
        if any(crossing(a, b, c, d) >= 0 for c, d in edges):
            return True
    return any(line_touches(line, place) for place in other) or any(line_touches(other, place) for place in line)


def line_touches(line: Sequence[Vector], place: Vector) -> bool:
    return line_distance(line, place) <= TOUCH_RADIANS


def line_distance(line: Sequence[Vector], place: Vector) -> float:
    return min(distance_to_edge(place, a, b) for a, b in itertools.pairwise(line))

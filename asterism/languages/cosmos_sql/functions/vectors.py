"""Places on the Earth as unit vectors, and the arcs between them.

Without angles there is no date line and there are no poles to treat apart. A latitude is taken as if the Earth were a
sphere; only distances and areas need its true shape.
"""

from __future__ import annotations

import math
from typing import Final

Vector = tuple[float, float, float]
Arc = tuple[Vector, Vector]

# Half a millimetre on the ground: closer than this is the same place.
SAME_PLACE: Final = 1e-10


def vector_of(longitude_degrees: float, latitude_degrees: float) -> Vector:
    longitude, latitude = math.radians(longitude_degrees), math.radians(latitude_degrees)
    shadow = math.cos(latitude)
    return shadow * math.cos(longitude), shadow * math.sin(longitude), math.sin(latitude)


def degrees_of(place: Vector) -> tuple[float, float]:
    """Longitude and latitude."""
    x, y, z = place
    return math.degrees(math.atan2(y, x)), math.degrees(math.atan2(z, math.hypot(x, y)))


def dot(one: Vector, other: Vector) -> float:
    return one[0] * other[0] + one[1] * other[1] + one[2] * other[2]


def cross(one: Vector, other: Vector) -> Vector:
    return (
        one[1] * other[2] - one[2] * other[1],
        one[2] * other[0] - one[0] * other[2],
        one[0] * other[1] - one[1] * other[0],
    )


def gap(one: Vector, other: Vector) -> float:
    """The length of the straight line between two places, through the Earth."""
    return math.dist(one, other)


def midpoint(arc: Arc) -> Vector:
    (ax, ay, az), (bx, by, bz) = arc
    return _unit((ax + bx, ay + by, az + bz))


def _unit(vector: Vector) -> Vector:
    length = math.hypot(*vector)
    return (vector[0] / length, vector[1] / length, vector[2] / length) if length else (1.0, 0.0, 0.0)


def nearest_on_arc(place: Vector, arc: Arc) -> Vector:
    start, end = arc
    normal = cross(start, end)
    square = dot(normal, normal)
    # An arc shorter than what counts as one place has no direction that rounding leaves true.
    if square > SAME_PLACE * SAME_PLACE:
        height = dot(place, normal) / square
        foot = (place[0] - height * normal[0], place[1] - height * normal[1], place[2] - height * normal[2])
        # Whether the foot of the perpendicular lies after the start and before the end.
        if dot(cross(normal, start), foot) >= 0.0 and dot(cross(end, normal), foot) >= 0.0 and dot(foot, foot) > 0.0:
            found = _unit(foot)
            # Of a short arc and a place far away, rounding decides the test above; a place on the arc is no farther
            # from either end than they are from each other.
            length = gap(start, end) + SAME_PLACE
            if gap(found, start) <= length and gap(found, end) <= length:
                return found
    return start if gap(place, start) <= gap(place, end) else end


def is_on_arc(place: Vector, arc: Arc) -> bool:
    return gap(place, nearest_on_arc(place, arc)) < SAME_PLACE


def arcs_cross(one: Arc, other: Arc) -> bool:
    """Whether two arcs cross at a place inside of both."""
    (a, b), (c, d) = one, other
    across_one, across_other = cross(a, b), cross(c, d)
    c_side, d_side = -dot(across_one, c), dot(across_one, d)
    if c_side * d_side <= 0.0:
        return False
    # The last two tell a crossing from one on the far side of the Earth.
    return c_side * -dot(across_other, b) > 0.0 and c_side * dot(across_other, a) > 0.0


def arcs_touch(one: Arc, other: Arc) -> bool:
    """Whether two arcs have a place in common."""
    return (
        arcs_cross(one, other)
        or is_on_arc(one[0], other)
        or is_on_arc(one[1], other)
        or is_on_arc(other[0], one)
        or is_on_arc(other[1], one)
    )

"""Places on the Earth as unit vectors, and the arcs between them.

Without angles, the date line and the poles are not special cases. Latitudes are those of a sphere; only distances and
areas need the true shape of the Earth.
"""

from __future__ import annotations

import math
from typing import Final

Vector = tuple[float, float, float]
Arc = tuple[Vector, Vector]

# Half a millimeter on the ground: nearer places are the same place.
SAME_PLACE: Final = 1e-10


def vector_of(longitude_degrees: float, latitude_degrees: float) -> Vector:
    longitude, latitude = math.radians(longitude_degrees), math.radians(latitude_degrees)
    radius = math.cos(latitude)
    return radius * math.cos(longitude), radius * math.sin(longitude), math.sin(latitude)


def degrees_of(place: Vector) -> tuple[float, float]:
    """Return longitude and latitude."""
    x, y, z = place
    return math.degrees(math.atan2(y, x)), math.degrees(math.atan2(z, math.hypot(x, y)))


def dot(left: Vector, right: Vector) -> float:
    return left[0] * right[0] + left[1] * right[1] + left[2] * right[2]


def cross(left: Vector, right: Vector) -> Vector:
    return (
        left[1] * right[2] - left[2] * right[1],
        left[2] * right[0] - left[0] * right[2],
        left[0] * right[1] - left[1] * right[0],
    )


def gap(start: Vector, end: Vector) -> float:
    """Return the length of the straight line between two places, through the Earth."""
    return math.dist(start, end)


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
    # An arc within one place has no direction that rounding preserves.
    if square > SAME_PLACE * SAME_PLACE:
        height = dot(place, normal) / square
        foot = (place[0] - height * normal[0], place[1] - height * normal[1], place[2] - height * normal[2])
        # The foot of the perpendicular lies after the start and before the end.
        if dot(cross(normal, start), foot) >= 0.0 and dot(cross(end, normal), foot) >= 0.0 and dot(foot, foot) > 0.0:
            found = _unit(foot)
            # For a short arc and a place far away, rounding decides the test above; a place on the arc is no farther
            # from either end than the ends are from each other.
            length = gap(start, end) + SAME_PLACE
            if gap(found, start) <= length and gap(found, end) <= length:
                return found
    return start if gap(place, start) <= gap(place, end) else end


def is_on_arc(place: Vector, arc: Arc) -> bool:
    return gap(place, nearest_on_arc(place, arc)) < SAME_PLACE


def arcs_cross(left: Arc, right: Arc) -> bool:
    """Return whether two arcs cross at a place inside both."""
    (a, b), (c, d) = left, right
    left_normal, right_normal = cross(a, b), cross(c, d)
    c_side, d_side = -dot(left_normal, c), dot(left_normal, d)
    if c_side * d_side <= 0.0:
        return False
    # These distinguish a crossing from one on the far side of the Earth.
    return c_side * -dot(right_normal, b) > 0.0 and c_side * dot(right_normal, a) > 0.0


def arcs_touch(left: Arc, right: Arc) -> bool:
    """Return whether two arcs have a place in common."""
    return (
        arcs_cross(left, right)
        or is_on_arc(left[0], right)
        or is_on_arc(left[1], right)
        or is_on_arc(right[0], left)
        or is_on_arc(right[1], left)
    )

"""Vectors on the unit sphere: places, arcs of great circles between them, and exact answers about their sides.

Edges are arcs of great circles. Two edges either cross, touch at a common end, or do neither; three places that lie on
one great circle are told apart by a tiny displacement of each that is always the same, so that every place belongs to
exactly one of the polygons around it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

Vector = tuple[float, float, float]

# A determinant of unit vectors that is larger than this has the right sign in spite of its rounding errors.
_DETERMINANT_ERROR: Final = 4e-15


def from_degrees(longitude: float, latitude: float) -> Vector:
    phi, theta = math.radians(latitude), math.radians(longitude)
    flat = math.cos(phi)
    return math.cos(theta) * flat, math.sin(theta) * flat, math.sin(phi)


def to_degrees(place: Vector) -> tuple[float, float]:
    x, y, z = place
    return math.degrees(math.atan2(y, x)), math.degrees(math.atan2(z, math.hypot(x, y)))


def dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def norm(a: Vector) -> float:
    return math.sqrt(dot(a, a))


def normalized(a: Vector) -> Vector:
    length = norm(a)
    return (a[0] / length, a[1] / length, a[2] / length) if length else a


def negative(a: Vector) -> Vector:
    return -a[0], -a[1], -a[2]


def angle(a: Vector, b: Vector) -> float:
    """Return the angle between two places in radians."""
    return math.atan2(norm(cross(a, b)), dot(a, b))


# A fixed place that no client uses by accident: containment is decided by counting crossings on the way from it.
ORIGIN: Final = normalized((0.00457, 1.0, 0.0321))


def side(a: Vector, b: Vector, c: Vector) -> int:
    """Return 1 if three places are in counterclockwise order, -1 if clockwise, and 0 only if two are the same."""
    determinant = dot(cross(a, b), c)
    if abs(determinant) > _DETERMINANT_ERROR:
        return 1 if determinant > 0 else -1
    if a == b or b == c or c == a:
        return 0
    return _exact_side(a, b, c)


def _exact_side(a: Vector, b: Vector, c: Vector) -> int:
    order = sorted((a, b, c))
    # The sign of the permutation that sorts them.
    turned = order in ([a, b, c], [b, c, a], [c, a, b])
    p, q, r = ([Fraction(part) for part in place] for place in order)
    qr = (q[1] * r[2] - q[2] * r[1], q[2] * r[0] - q[0] * r[2], q[0] * r[1] - q[1] * r[0])
    # The determinant, then the coefficients of a displacement in which each coordinate is infinitely smaller than the
    # one before; the first that is not zero decides.
    candidates = (
        qr[0] * p[0] + qr[1] * p[1] + qr[2] * p[2],
        *(qr[2], qr[1], qr[0]),
        *(r[0] * p[1] - r[1] * p[0], r[0], -r[1]),
        *(r[2] * p[0] - r[0] * p[2], r[2]),
        *(p[0] * q[1] - p[1] * q[0], -q[0], q[1], p[0]),
    )
    sign = next((1 if value > 0 else -1 for value in candidates if value), 1)
    return sign if turned else -sign


def crossing(a: Vector, b: Vector, c: Vector, d: Vector) -> int:
    """Return 1 if the edges ab and cd cross inside of both, 0 if they share an end, -1 if neither."""
    if a in (c, d) or b in (c, d):
        return 0
    acb = -side(a, b, c)
    if side(a, b, d) != acb or a == b or c == d:
        return -1
    return 1 if -side(c, d, b) == acb and side(c, d, a) == acb else -1


def _perpendicular(a: Vector) -> Vector:
    largest = max(range(3), key=lambda axis: abs(a[axis]))
    other = [0.012, 0.0053, 0.00457]
    other[largest - 1] = 1.0
    return normalized(cross(a, (other[0], other[1], other[2])))


def ordered(a: Vector, b: Vector, c: Vector, around: Vector) -> bool:
    """Return whether the rays from a place to a, b and c are met in this order, counterclockwise."""
    passed = (side(b, around, a) >= 0) + (side(c, around, b) >= 0) + (side(a, around, c) > 0)
    return passed >= 2


def counts_as_crossing(a: Vector, b: Vector, c: Vector, d: Vector) -> bool:
    """Return whether the way ab crosses the edge cd; of edges that share an end, exactly so many that a place is inside
    of one polygon of those around it."""
    kind = crossing(a, b, c, d)
    if kind:
        return kind > 0
    if a == b or c == d:
        return False
    if a == d:
        return ordered(_perpendicular(a), c, b, a)
    if b == c:
        return ordered(_perpendicular(b), d, a, b)
    if a == c:
        return ordered(_perpendicular(a), d, b, a)
    return ordered(_perpendicular(b), c, a, b)


def inside_at_corner(before: Vector, corner: Vector, after: Vector) -> bool:
    """Return whether the corner of a loop is inside of it: its fixed direction lies to the left of the loop there."""
    return ordered(_perpendicular(corner), before, after, corner)


def distance_to_edge(place: Vector, a: Vector, b: Vector) -> float:
    """Return the angle between a place and the nearest place of an edge."""
    return angle(place, _nearest_on_edge(place, a, b))


def _nearest_on_edge(place: Vector, a: Vector, b: Vector) -> Vector:
    # The product of sum and difference keeps its digits where both ends are close together.
    plane = cross(_sum(b, a), _difference(b, a))
    square = dot(plane, plane)
    if square:
        share = dot(place, plane) / square
        on_circle = _difference(place, (share * plane[0], share * plane[1], share * plane[2]))
        if dot(cross(plane, a), on_circle) > 0 and dot(cross(b, plane), on_circle) > 0:
            return normalized(on_circle)
    from_a, from_b = _difference(place, a), _difference(place, b)
    return a if dot(from_a, from_a) <= dot(from_b, from_b) else b


def _sum(a: Vector, b: Vector) -> Vector:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _difference(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def middle(a: Vector, b: Vector) -> Vector:
    return normalized((a[0] + b[0], a[1] + b[1], a[2] + b[2]))


def turn(a: Vector, b: Vector, c: Vector) -> float:
    """Return the angle by which the way abc turns at b, positive to the left."""
    value = angle(cross(a, b), cross(b, c))
    return value if side(a, b, c) > 0 else -value

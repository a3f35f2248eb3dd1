"""Distances and areas on the ellipsoid of WGS-84, in meters."""

from __future__ import annotations

import math
from typing import Final

from geographiclib.geodesic import Geodesic

from asterism.languages.cosmos_sql.functions.geometry import Ring
from asterism.languages.cosmos_sql.functions.vectors import Vector, degrees_of
from asterism.reading.turns import pause

_EQUATOR_RADIUS_METERS: Final = 6_378_137.0
_FLATTENING: Final = 1 / 298.257223563
_POLE_RADIUS_METERS: Final = _EQUATOR_RADIUS_METERS * (1 - _FLATTENING)

# Vincenty's formula converges in a few rounds, except between places nearly opposite each other.
_ROUNDS_MAX = 30
_CONVERGED = 1e-12


def distance_meters(start: Vector, end: Vector) -> float:
    start_longitude, start_latitude = degrees_of(start)
    end_longitude, end_latitude = degrees_of(end)
    found = _vincenty_meters(start_latitude, end_latitude, math.radians(end_longitude - start_longitude))
    if found is not None:
        return found
    geodesic = Geodesic.WGS84.Inverse(start_latitude, start_longitude, end_latitude, end_longitude, Geodesic.DISTANCE)
    return float(geodesic["s12"])


def _vincenty_meters(start_latitude: float, end_latitude: float, longitudes_apart: float) -> float | None:
    """Vincenty's inverse formula, exact to less than a millimeter; None where it does not converge."""
    start = math.atan((1 - _FLATTENING) * math.tan(math.radians(start_latitude)))
    end = math.atan((1 - _FLATTENING) * math.tan(math.radians(end_latitude)))
    sin_start, cos_start, sin_end, cos_end = math.sin(start), math.cos(start), math.sin(end), math.cos(end)
    turn = longitudes_apart
    for _ in range(_ROUNDS_MAX):
        sin_turn, cos_turn = math.sin(turn), math.cos(turn)
        sin_angle = math.hypot(cos_end * sin_turn, cos_start * sin_end - sin_start * cos_end * cos_turn)
        if sin_angle == 0.0:
            # The same place, or the opposite place, for which the formula does not work.
            return 0.0 if cos_turn > 0.0 and start == end else None
        cos_angle = sin_start * sin_end + cos_start * cos_end * cos_turn
        angle = math.atan2(sin_angle, cos_angle)
        sin_azimuth = cos_start * cos_end * sin_turn / sin_angle
        cos_azimuth_squared = 1 - sin_azimuth * sin_azimuth
        # Along the equator the middle has no latitude.
        cos_middle = cos_angle - 2 * sin_start * sin_end / cos_azimuth_squared if cos_azimuth_squared > 0.0 else 0.0
        scale = _FLATTENING / 16 * cos_azimuth_squared * (4 + _FLATTENING * (4 - 3 * cos_azimuth_squared))
        inner = cos_middle + scale * cos_angle * (2 * cos_middle * cos_middle - 1)
        previous = turn
        turn = longitudes_apart + (1 - scale) * _FLATTENING * sin_azimuth * (angle + scale * sin_angle * inner)
        if abs(turn - previous) < _CONVERGED:
            return _meters(angle, sin_angle, cos_angle, cos_middle, cos_azimuth_squared)
    return None


def _meters(angle: float, sin_angle: float, cos_angle: float, cos_middle: float, cos_azimuth_squared: float) -> float:
    """Return the length on the ellipsoid of an angle on the auxiliary sphere: the last step of the formula."""
    squared = cos_azimuth_squared * (_EQUATOR_RADIUS_METERS**2 / _POLE_RADIUS_METERS**2 - 1)
    a = 1 + squared / 16384 * (4096 + squared * (-768 + squared * (320 - 175 * squared)))
    b = squared / 1024 * (256 + squared * (-128 + squared * (74 - 47 * squared)))
    double = 2 * cos_middle * cos_middle - 1
    third = b / 6 * cos_middle * (4 * sin_angle * sin_angle - 3) * (4 * cos_middle * cos_middle - 3)
    correction = b * sin_angle * (cos_middle + b / 4 * (cos_angle * double - third))
    return _POLE_RADIUS_METERS * a * (angle - correction)


def area_square_meters(polygon: list[Ring]) -> float:
    """Return the area to the left of the outer ring, less the holes."""
    outer, *holes = polygon
    # Holes are drawn clockwise, so their own areas come out negative.
    return _area_square_meters(outer, signed=False) + sum(_area_square_meters(hole, signed=True) for hole in holes)


def _area_square_meters(ring: Ring, *, signed: bool) -> float:
    traverse = Geodesic.WGS84.Polygon()
    for place in ring[:-1]:
        pause()
        longitude, latitude = degrees_of(place)
        traverse.AddPoint(latitude, longitude)
    _count, _perimeter, area = traverse.Compute(False, signed)
    return float(area)

"""Boxes of longitudes and latitudes around circles and geometries on the sphere."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from asterism.languages.mongo.geo.geometry import Geometry
from asterism.languages.mongo.geo.vectors import Vector, angle, normalized, to_degrees

# More than all rounding errors and than the distance at which two places count as the same: a tenth of a meter.
_ROOM_DEGREES: Final = 1e-6
# Wider than this, a circle might not hold the arcs between its places any more.
_CAP_RADIANS_MAX: Final = math.radians(85.0)


class Box(NamedTuple):
    """Ranges of both coordinates; the bounds belong to it."""

    west: float
    south: float
    east: float
    north: float

    def meets(self, other: Box) -> bool:
        return (
            self.west <= other.east
            and other.west <= self.east
            and self.south <= other.north
            and other.south <= self.north
        )

    def holds(self, other: Box) -> bool:
        return (
            self.west <= other.west
            and other.east <= self.east
            and self.south <= other.south
            and other.north <= self.north
        )


def boxes_of_cap(center: Vector, radians: float) -> list[Box] | None:
    """Return at most two boxes around a circle; None for one that is most of the sphere."""
    if radians > _CAP_RADIANS_MAX:
        return None
    longitude, latitude = to_degrees(center)
    reach = math.degrees(radians) + _ROOM_DEGREES
    south, north = latitude - reach, latitude + reach
    if south <= -90 or north >= 90:
        return [Box(-180, max(south, -90), 180, min(north, 90))]
    width = math.degrees(math.asin(min(1.0, math.sin(math.radians(reach)) / math.cos(math.radians(latitude)))))
    west, east = longitude - width - _ROOM_DEGREES, longitude + width + _ROOM_DEGREES
    if east - west >= 360:
        return [Box(-180, south, 180, north)]
    if west < -180:
        return [Box(west + 360, south, 180, north), Box(-180, south, east, north)]
    if east > 180:
        return [Box(west, south, 180, north), Box(-180, south, east - 360, north)]
    return [Box(west, south, east, north)]


def boxes_of_geometry(geometry: Geometry) -> list[Box] | None:
    """Return boxes around all parts of a geometry; None for one that may be everywhere."""
    if geometry.is_big:
        return None
    parts: list[tuple[Vector, ...]] = [(point.vector,) for point in geometry.points]
    parts += geometry.lines
    parts += [polygon.outer.corners for polygon in geometry.polygons]
    found: list[Box] = []
    for corners in parts:
        center = normalized(
            (sum(place[0] for place in corners), sum(place[1] for place in corners), sum(place[2] for place in corners))
        )
        boxes = boxes_of_cap(center, max(angle(center, place) for place in corners))
        if boxes is None:
            return None
        found += boxes
    return found

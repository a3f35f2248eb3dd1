from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from geographiclib.geodesic import Geodesic
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql.functions import FUNCTIONS
from asterism.languages.cosmos_sql.functions.vectors import (
    degrees_of,
    gap,
    is_on_arc,
    midpoint,
    nearest_on_arc,
    vector_of,
)
from asterism.values.undefined import UNDEFINED

RUN: dict[str, Callable[..., Any]] = {name: function.run for name, function in FUNCTIONS.items()}
LONGITUDES = st.floats(-180, 180)
LATITUDES = st.floats(-90, 90)
POSITIONS = st.tuples(LONGITUDES, LATITUDES)
# The area of the whole Earth, in square meters.
EARTH_AREA = 510065621724088.0
# A distance that is larger than any rounding error.
CLEARLY = 1e-3

Geometry = dict[str, Any]


def point(position: tuple[float, float]) -> Geometry:
    return {"type": "Point", "coordinates": list(position)}


def box(west: float, south: float, width: float, height: float) -> Geometry:
    ring = [[west, south], [west + width, south], [west + width, south + height], [west, south + height], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def circle(corners: int, radius_degrees: float, longitude: float = 0.0) -> Geometry:
    angles = [2 * math.pi * corner / corners for corner in range(corners)]
    ring = [[longitude + radius_degrees * math.cos(angle), radius_degrees * math.sin(angle)] for angle in angles]
    return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}


BOXES = st.builds(box, st.floats(-170, 150), st.floats(-60, 50), st.floats(1, 20), st.floats(1, 10))


@given(POSITIONS, POSITIONS)
def test_distance_does_not_depend_on_the_direction(left: tuple[float, float], right: tuple[float, float]) -> None:
    there, back = RUN["ST_DISTANCE"](point(left), point(right)), RUN["ST_DISTANCE"](point(right), point(left))
    assert there == pytest.approx(back, abs=1e-3)


@settings(max_examples=50)
@given(POSITIONS, POSITIONS)
def test_distance_is_that_of_the_exact_method(left: tuple[float, float], right: tuple[float, float]) -> None:
    exact = Geodesic.WGS84.Inverse(left[1], left[0], right[1], right[0])["s12"]
    assert RUN["ST_DISTANCE"](point(left), point(right)) == pytest.approx(exact, abs=2e-3)


@given(POSITIONS)
def test_a_point_is_at_no_distance_from_itself(position: tuple[float, float]) -> None:
    assert RUN["ST_DISTANCE"](point(position), point(position)) == 0
    assert RUN["ST_INTERSECTS"](point(position), point(position)) is True
    assert RUN["ST_WITHIN"](point(position), point(position)) is True


@pytest.mark.parametrize(
    ("left", "right", "meters"),
    [
        # A degree along the equator and along a meridian, a quarter and a half of the way around.
        ((0, 0), (1, 0), 111319.4908),
        ((0, 0), (0, 1), 110574.3886),
        ((0, 0), (0, 90), 10001965.7293),
        ((0, 90), (0, -90), 20003931.4586),
        # Nearly opposite places, where the fast formula does not converge.
        ((0, 0), (179.5, 0.5), 19936288.579),
    ],
)
def test_known_distances(left: tuple[float, float], right: tuple[float, float], meters: float) -> None:
    assert RUN["ST_DISTANCE"](point(left), point(right)) == pytest.approx(meters, abs=1e-2)


@given(BOXES, BOXES)
def test_two_shapes_are_at_no_distance_exactly_when_they_meet(left: Geometry, right: Geometry) -> None:
    meet = RUN["ST_INTERSECTS"](left, right)
    assert meet is RUN["ST_INTERSECTS"](right, left)
    assert (RUN["ST_DISTANCE"](left, right) == 0) is meet
    assert RUN["ST_DISTANCE"](left, right) == pytest.approx(RUN["ST_DISTANCE"](right, left), rel=1e-6)


# A border that is nearer than rounding counts as inside.
@example(box(0.0, 0.0, 1.0, 1.0000000000000002), box(0.0, 0.0, 1.0, 1.0))
@given(BOXES, BOXES)
def test_a_shape_within_another_intersects_it_and_is_smaller(left: Geometry, right: Geometry) -> None:
    within = RUN["ST_WITHIN"](left, right)
    assert not within or RUN["ST_INTERSECTS"](left, right) is True
    assert not within or RUN["ST_AREA"](left) <= RUN["ST_AREA"](right) * (1 + 1e-12)


@given(BOXES)
def test_a_polygon_is_within_itself(polygon: Geometry) -> None:
    assert RUN["ST_WITHIN"](polygon, polygon) is True
    assert RUN["ST_INTERSECTS"](polygon, polygon) is True


@given(BOXES)
def test_a_ring_drawn_the_other_way_is_the_rest_of_the_earth(polygon: Geometry) -> None:
    ring = polygon["coordinates"][0]
    rest = {"type": "Polygon", "coordinates": [ring[::-1]]}
    areas = RUN["ST_AREA"](polygon) + RUN["ST_AREA"](rest)
    assert areas == pytest.approx(EARTH_AREA, rel=1e-9)


@given(st.floats(-170, 150), st.floats(-10, 5), POSITIONS)
def test_a_place_is_in_a_polygon_or_in_the_rest(west: float, south: float, position: tuple[float, float]) -> None:
    polygon = box(west, south, 10, 5)
    rest = {"type": "Polygon", "coordinates": [polygon["coordinates"][0][::-1]]}
    place = point(position)
    border = {"type": "LineString", "coordinates": polygon["coordinates"][0]}
    assume(RUN["ST_DISTANCE"](place, border) > 1)
    assert RUN["ST_WITHIN"](place, polygon) is not RUN["ST_WITHIN"](place, rest)


@given(st.floats(-180, 180), st.floats(0, 0.99), st.integers(3, 40))
def test_places_near_the_middle_are_in_a_circle(angle: float, share: float, corners: int) -> None:
    reach = share * math.cos(math.pi / corners)
    near = (reach * math.cos(angle), reach * math.sin(angle))
    far = (1.02 * math.cos(angle), 1.02 * math.sin(angle))
    assert RUN["ST_WITHIN"](point(near), circle(corners, 1.0)) is True
    assert RUN["ST_WITHIN"](point(far), circle(corners, 1.0)) is False


@given(POSITIONS, POSITIONS)
def test_the_middle_of_an_arc_is_on_it(start: tuple[float, float], end: tuple[float, float]) -> None:
    arc = (vector_of(*start), vector_of(*end))
    assume(CLEARLY < gap(*arc) < 2 - CLEARLY)
    assert is_on_arc(midpoint(arc), arc)
    assert gap(arc[0], midpoint(arc)) == pytest.approx(gap(arc[1], midpoint(arc)))


@given(POSITIONS, POSITIONS, POSITIONS)
def test_nothing_on_an_arc_is_nearer_than_the_nearest(
    start: tuple[float, float], end: tuple[float, float], position: tuple[float, float]
) -> None:
    arc, place = (vector_of(*start), vector_of(*end)), vector_of(*position)
    nearest = gap(place, nearest_on_arc(place, arc))
    assume(gap(*arc) < 2 - CLEARLY)
    assert nearest <= min(gap(place, arc[0]), gap(place, arc[1]), gap(place, midpoint(arc))) + 1e-9


@given(LONGITUDES, st.floats(-89, 89))
def test_a_vector_has_the_degrees_it_was_made_of(longitude: float, latitude: float) -> None:
    found_longitude, found_latitude = degrees_of(vector_of(longitude, latitude))
    assert found_latitude == pytest.approx(latitude, abs=1e-9)
    assert abs((found_longitude - longitude + 180) % 360 - 180) < 1e-9


def test_geometries_too_large_to_compare_are_refused() -> None:
    with pytest.raises(MalformedRequest):
        RUN["ST_INTERSECTS"](circle(400, 1.0), circle(400, 2.0))
    with pytest.raises(MalformedRequest):
        RUN["ST_DISTANCE"](circle(400, 1.0), circle(400, 1.0, 30.0))


def test_a_geometry_of_too_many_positions_is_not_valid() -> None:
    assert RUN["ST_ISVALID"](circle(4000, 1.0)) is True
    assert RUN["ST_ISVALID"](circle(5000, 1.0)) is False
    assert RUN["ST_AREA"](circle(5000, 1.0)) is UNDEFINED

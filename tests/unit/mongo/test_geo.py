"""Geometry of MongoDB's queries, without a server: what lies where, how far, and by which cells an index finds it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import MATCH_FEATURES, compile_filter
from asterism.languages.mongo.geo.near import parse_near
from asterism.languages.mongo.geo.regions import parse_region
from asterism.languages.mongo.index_profile import compile_index
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.values.bson.types import DatetimeMS, Document, Timestamp

pytestmark = pytest.mark.pure

CONTEXT = new_context(DatetimeMS(0), Timestamp(1, 1))
SQUARE = [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]
WITH_HOLE = [*SQUARE, [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]]
STRICT = {"type": "name", "properties": {"name": "urn:x-mongodb:crs:strictwinding:EPSG:4326"}}


def shape(kind: str, coordinates: Any, **more: Any) -> Document:
    return {"type": kind, "coordinates": coordinates, **more}


def point(x: float, y: float) -> Document:
    return shape("Point", [x, y])


def matches(operand: Document, location: Any) -> bool:
    return compile_filter({"loc": operand}, CONTEXT).matches({"loc": location})


def within(location: Any, **region: Any) -> bool:
    ((name, value),) = region.items()
    return matches({"$geoWithin": {f"${name}": value}}, location)


def intersects(location: Any, geometry: Document) -> bool:
    return matches({"$geoIntersects": {"$geometry": geometry}}, location)


def refusal(operand: Document, **options: Any) -> int:
    with pytest.raises(MongoFailure) as refused:
        compile_filter({"loc": operand}, CONTEXT, **options)
    return refused.value.code


def test_a_polygon_holds_what_is_inside_of_it_and_not_in_its_holes() -> None:
    polygon = shape("Polygon", WITH_HOLE)
    assert within(point(2, 2), geometry=polygon)
    assert not within(point(5, 5), geometry=polygon)
    assert not within(point(11, 5), geometry=polygon)
    assert within(shape("LineString", [[1, 1], [3, 3]]), geometry=polygon)
    assert not within(shape("LineString", [[1, 5], [9, 5]]), geometry=polygon)
    assert within(shape("Polygon", [[[1, 1], [3, 1], [3, 3], [1, 3], [1, 1]]]), geometry=polygon)
    assert not within(shape("Polygon", [[[3, 3], [7, 3], [7, 7], [3, 7], [3, 3]]]), geometry=polygon)
    two = shape("MultiPolygon", [WITH_HOLE, [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]])
    assert within(shape("MultiPoint", [[2, 2], [25, 5]]), geometry=two)


def test_edges_are_arcs_of_great_circles_and_the_smaller_part_is_inside() -> None:
    # On the map a parallel of latitude bounds this polygon; on the sphere its upper edge bends towards the pole.
    polygon = shape("Polygon", [[[0, 40], [90, 40], [90, 50], [0, 50], [0, 40]]])
    assert within(point(45, 55), geometry=polygon)
    assert not within(point(45, 45), geometry=polygon)
    clockwise = shape("Polygon", [SQUARE[0][::-1]])
    assert within(point(5, 5), geometry=clockwise)
    assert not within(point(50, 50), geometry=clockwise)
    everything_else = shape("Polygon", [SQUARE[0][::-1]], crs=STRICT)
    assert within(point(50, 50), geometry=everything_else)
    assert not within(point(5, 5), geometry=everything_else)


def test_old_shapes_lie_in_a_plane_and_hold_their_bounds() -> None:
    assert within([10, 10], box=[[0, 0], [10, 10]])
    assert within({"lng": 3, "lat": 4}, center=[[0, 0], 5])
    assert not within([3, 4.001], center=[[0, 0], 5])
    triangle = [[0, 0], [3, 6], [6, 0]]
    assert [within(place, polygon=triangle) for place in ([3, 3], [0, 0], [3, 0], [1, 5])] == [True, True, True, False]
    assert within(point(5, 5), box=[[0, 0], [10, 10]])
    assert not within(shape("MultiPoint", [[5, 5]]), box=[[0, 0], [10, 10]])
    # A circle on the sphere reaches over the date line.
    assert within([-179.9, 0], centerSphere=[[179.9, 0], math.radians(1)])


def test_geometries_intersect_where_they_have_a_place_in_common() -> None:
    square = shape("Polygon", SQUARE)
    assert intersects(point(10, 10), square)
    assert intersects(shape("LineString", [[-5, 5], [15, 5]]), square)
    assert not intersects(shape("LineString", [[-5, -5], [-5, 15]]), square)
    assert intersects(shape("LineString", [[0, -1], [0, 1]]), shape("LineString", [[-1, 0], [1, 0]]))
    assert intersects(square, square)
    assert not intersects(square, shape("Polygon", [[[10, 0], [20, 0], [20, 10], [10, 10], [10, 0]]]))
    collection = {"type": "GeometryCollection", "geometries": [point(50, 50), shape("LineString", [[1, 1], [2, 2]])]}
    assert intersects(collection, point(50, 50))
    assert not intersects([500, 5], square)


@pytest.mark.parametrize(
    "geometry",
    [
        shape("Polygon", [[[0, 0], [1, 0], [1, 1]]]),
        shape("Polygon", [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]),
        shape("Polygon", [[[0, 0], [1, 0], [0, 0]]]),
        shape("Polygon", [*SQUARE, [[50, 50], [51, 50], [51, 51], [50, 51], [50, 50]]]),
        shape("Polygon", [[[0, 91], [1, 91], [1, 92], [0, 91]]]),
        shape("Point", [float("nan"), 0]),
        shape("Point", ["0", 0]),
        shape("LineString", [[1, 1]]),
        shape("point", [0, 0]),
        shape("Point", [0, 0], crs={"type": "name"}),
        shape("Point", [0, 0], crs=STRICT),
        {"type": "Point"},
        {"type": "GeometryCollection", "geometries": []},
        7,
    ],
)
def test_geometries_that_cannot_be_are_refused_in_queries_and_match_nothing_in_documents(geometry: Any) -> None:
    assert refusal({"$geoIntersects": {"$geometry": geometry}}) == 2
    assert not within(geometry, centerSphere=[[0, 0], 4])


def test_regions_that_cannot_be_are_refused() -> None:
    assert refusal({"$geoWithin": {"$geometry": point(0, 0)}}) == 2
    assert refusal({"$geoWithin": {"$box": [[0, 0]]}}) == 2
    assert refusal({"$geoWithin": {"$center": [[0, 0], -1]}}) == 2
    assert refusal({"$geoWithin": {"$polygon": [[0, 0], [1, 1]]}}) == 2
    assert refusal({"$geoWithin": {"$centerSphere": [[0, 91], 1]}}) == 2
    assert refusal({"$geoWithin": {"$box": [[0, 0], [1, 1]], "$center": [[0, 0], 1]}}) == 2
    assert refusal({"$geoIntersects": {"$box": [[0, 0], [1, 1]]}}) == 2
    assert refusal({"$geoWithin": {"$box": [[0, 0], [1, 1]]}, "$exists": True}) == 2


def test_searches_are_refused_where_they_cannot_order_the_results() -> None:
    near = {"$near": {"$geometry": point(0, 0)}}
    assert refusal(near, features=MATCH_FEATURES) == 5626500
    assert refusal({**near, "$eq": 1}) == 34413
    assert refusal({"$near": [0, 0], "$maxDistance": "far"}) == 16895
    assert refusal({"$near": [0, 0], "$minDistance": -1}) == 16894
    assert refusal({"$near": {"$geometry": point(0, 0), "$maxDistance": -1}}) == 2
    assert refusal({"$nearSphere": [0, 91]}) == 2
    for filter in ({"$or": [{"a": near}, {"b": 1}]}, {"a": near, "b": near}, {"a": {"$elemMatch": {"b": near}}}):
        with pytest.raises(MongoFailure) as refused:
            compile_filter(filter, CONTEXT)
        assert refused.value.code == 2


def test_distances_are_meters_on_the_sphere_and_units_in_the_plane() -> None:
    sphere = parse_near("loc", {"$near": {"$geometry": point(0, 0)}})
    found = sphere.find({"loc": point(1, 0)})
    assert found is not None
    assert found.distance == pytest.approx(math.radians(1) * 6_378_100)
    line = sphere.find({"loc": shape("LineString", [[-1, 1], [1, 1]])})
    assert line is not None
    assert line.distance < math.radians(1.001) * 6_378_100
    inside = sphere.find({"loc": shape("Polygon", [[[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]])})
    assert inside is not None
    assert inside.distance == 0
    radians = parse_near("loc", {"$nearSphere": [0, 0], "$maxDistance": math.radians(2)})
    near = radians.find({"loc": [[3, 3], [0, 1]]})
    assert near is not None
    assert (near.distance, near.location) == (pytest.approx(math.radians(1)), [0, 1])
    assert radians.find({"loc": [0, 3]}) is None
    plane = parse_near("loc", {"$near": [0, 0], "$minDistance": 5})
    assert [plane.find({"loc": place}) for place in ([3, 3], "nowhere", None)] == [None, None, None]
    assert plane.find({"loc": {"x": 300, "y": 400}}) == (500, {"x": 300, "y": 400})


# --- cells ------------------------------------------------------------------------------------------------------------

COLLECTION = CollectionRecord("d", "c", 1, bytes(16))
SPHERE_INDEX = compile_index(COLLECTION, IndexRecord(1, "loc_2dsphere", {"loc": "2dsphere"}))
PLANE_INDEX = compile_index(COLLECTION, IndexRecord(2, "loc_2d", {"loc": "2d"}))

LONGITUDES = st.one_of(st.floats(-180, 180), st.sampled_from([-180, -90, 0, 90, 179.999999, 180]))
LATITUDES = st.one_of(st.floats(-90, 90), st.sampled_from([-90, -89.999999, 0, 45, 90]))
PLACES = st.tuples(LONGITUDES, LATITUDES).map(list)
POINTS = st.one_of(PLACES, PLACES.map(lambda place: shape("Point", place)))
LINES = st.lists(PLACES, min_size=2, max_size=4).map(lambda places: shape("LineString", places))


@st.composite
def rings(draw: st.DrawFn) -> list[list[float]]:
    """Draw a ring around a center, whose corners are in the order of their directions: it does not cross itself."""
    x, y = draw(st.floats(-170, 170)), draw(st.floats(-70, 70))
    directions = sorted(
        draw(st.lists(st.floats(0, 6.2), min_size=3, max_size=6, unique_by=lambda turn: round(turn, 1)))
    )
    reach = draw(st.sampled_from([0.0001, 0.5, 8]))
    corners = [[x + reach * math.cos(turn), y + reach * math.sin(turn)] for turn in directions]
    return [*corners, corners[0]]


POLYGONS = rings().map(lambda ring: shape("Polygon", [ring]))
REGIONS = st.one_of(
    POLYGONS.map(lambda polygon: {"$geometry": polygon}),
    st.tuples(PLACES, st.floats(0, 3.2)).map(lambda circle: {"$centerSphere": list(circle)}),
    st.tuples(PLACES, st.floats(0, 90)).map(lambda circle: {"$center": list(circle)}),
    st.lists(PLACES, min_size=2, max_size=2).map(lambda corners: {"$box": corners}),
    st.lists(PLACES, min_size=3, max_size=6).map(lambda corners: {"$polygon": corners}),
)


def finds(profile: Any, document: Document, region: Document) -> bool:
    """Return whether the cells of a region lead to the document."""
    condition = type("Condition", (), {"value": parse_region(region)})
    wanted = profile.special_fields[0](condition)
    keys, _ = profile.keys_of(document)
    return any(cell.startswith(text) if is_prefix else cell == text for (cell,) in keys for text, is_prefix in wanted)


def can_be(document: Document, region: Document) -> bool:
    """Return whether document and region are sound; random ones are not always."""
    try:
        SPHERE_INDEX.keys_of(document)
        parse_region(region)
    except MongoFailure:
        return False
    return True


@settings(max_examples=400)
@given(location=st.one_of(POINTS, LINES, POLYGONS), region=REGIONS)
def test_the_cells_of_a_region_lead_to_everything_in_it(location: Any, region: Document) -> None:
    document = {"loc": location}
    for operator in ("$geoWithin", "$geoIntersects"):
        try:
            is_match = can_be(document, region) and matches({operator: region}, location)
        except MongoFailure:
            is_match = False
        assert not is_match or finds(SPHERE_INDEX, document, region)


@settings(max_examples=200)
@given(location=PLACES, region=REGIONS)
def test_the_cells_of_a_plane_lead_to_everything_in_a_region(location: Any, region: Document) -> None:
    is_match = can_be({}, region) and matches({"$geoWithin": region}, location)
    assert not is_match or finds(PLANE_INDEX, {"loc": location}, region)


@settings(max_examples=200)
@given(start=PLACES, location=st.one_of(PLACES, POLYGONS))
def test_the_rings_of_a_search_reach_every_document_by_its_distance(start: Any, location: Any) -> None:
    search = parse_near("loc", {"$nearSphere": shape("Point", start)})
    document = {"loc": location}
    nearest = search.find(document)
    assert nearest is not None
    reach = next(reach for reach in search.rings() if nearest.distance <= reach)
    condition = type("Condition", (), {"value": search.within(reach)})
    wanted = SPHERE_INDEX.special_fields[0](condition)
    assert wanted is not None
    cells = [cell for (cell,) in SPHERE_INDEX.keys_of(document)[0]]
    assert any(cell.startswith(text) if is_prefix else cell == text for cell in cells for text, is_prefix in wanted)


def test_an_index_refuses_what_it_cannot_place() -> None:
    for location in ("x", 5, [], [200, 0], point(0, 91), [point(0, 0)], shape("Polygon", SQUARE, crs=STRICT)):
        with pytest.raises(MongoFailure) as refused:
            SPHERE_INDEX.keys_of({"loc": location})
        assert refused.value.code == 16755
    for location, code in (("x", 13026), ([200, 0], 13027), ([1], 13068)):
        with pytest.raises(MongoFailure) as refused:
            PLANE_INDEX.keys_of({"loc": location})
        assert refused.value.code == code
    assert SPHERE_INDEX.keys_of({"loc": None}) == ((), False)
    assert PLANE_INDEX.keys_of({"other": 1}) == ((), False)

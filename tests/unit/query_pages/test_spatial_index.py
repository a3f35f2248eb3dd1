"""Spatial indexes: what an index finds is what a scan finds, wherever on Earth, and with far fewer items loaded."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.languages.cosmos_sql.functions.spatial import SPATIAL_FUNCTIONS
from asterism.models.documents.container import Container
from asterism.models.documents.indexes.cells import index_values, region_of, spans_touching
from asterism.models.documents.results import Scope
from asterism.reading.conditions import Touches
from asterism.reading.execute import run_page
from asterism.reading.pinned_scopes import scopes_of
from asterism.reading.query_page import QueryPage
from asterism.values.json.text import dumps
from asterism.values.undefined import UNDEFINED
from tests.support.world import World, open_world

EVERYTHING = Scope(b"", b"\xff")
INDEXED = {"includedPaths": [{"path": "/*"}], "spatialIndexes": [{"path": "/place/*", "types": ["Point"]}]}
CORNER_LONGITUDES = [-180.0, 180.0, 0.0, -179.999, 179.999, 90.0]
CORNER_LATITUDES = [-90.0, 90.0, 0.0, 89.99, -89.99, 45.0]

longitudes = st.sampled_from(CORNER_LONGITUDES) | st.floats(-180, 180, allow_subnormal=False)
latitudes = st.sampled_from(CORNER_LATITUDES) | st.floats(-90, 90, allow_subnormal=False)


def point(longitude: float, latitude: float) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [longitude, latitude]}


def _around(longitude: float, latitude: float, width: float, height: float, *, clockwise: bool) -> dict[str, Any]:
    """A four-sided polygon around a place, kept on the map."""
    west, east = max(longitude - width, -180.0), min(longitude + width, 180.0)
    south, north = max(latitude - height, -90.0), min(latitude + height, 90.0)
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [ring[::-1] if clockwise else ring]}


sizes = st.sampled_from([0.001, 0.5, 5.0, 40.0]) | st.floats(0.01, 60)
points = st.builds(point, longitudes, latitudes)
polygons = st.builds(_around, longitudes, latitudes, sizes, sizes, clockwise=st.booleans())
lines = st.builds(
    lambda *places: {"type": "LineString", "coordinates": [list(place) for place in places]},
    st.tuples(longitudes, latitudes),
    st.tuples(longitudes, latitudes),
)
multi_polygons = st.lists(polygons, min_size=1, max_size=2).map(
    lambda found: {"type": "MultiPolygon", "coordinates": [polygon["coordinates"] for polygon in found]}
)
geometries = points | polygons | lines | multi_polygons


def touches_in_index(item: dict[str, Any], text: str, parameters: dict[str, object]) -> bool:
    """Return True if the index offers an item to a filter, or if the filter cannot use the index."""
    condition = compile_query(parse_query(f"SELECT * FROM c WHERE {text}"), parameters).index_conditions()
    if not isinstance(condition, Touches):
        return True
    spans = spans_touching(condition.boxes)
    # The number of its item follows a value.
    return any(
        all(low <= value + number < high for number in (bytes(8), b"\xff" * 8))
        for value in index_values(item)
        for low, high in spans
    )


@settings(max_examples=300, deadline=None)
@given(item=geometries, other=geometries, name=st.sampled_from(["ST_WITHIN", "ST_INTERSECTS"]), turned=st.booleans())
def test_what_meets_is_offered_by_the_index(
    item: dict[str, Any], other: dict[str, Any], name: str, turned: bool
) -> None:
    arguments = (other, item) if turned else (item, other)
    text = f"{name}(@p, c.place)" if turned else f"{name}(c.place, @p)"
    holds = SPATIAL_FUNCTIONS[name].run(*arguments) is True
    assert not holds or touches_in_index(item, text, {"@p": other})


@settings(max_examples=300, deadline=None)
@example(
    item={"type": "Point", "coordinates": [0.0, 0.0]},
    other={"type": "LineString", "coordinates": [[0.0, 90.0], [4.5e-29, 90.0]]},
    slack=1.0,
)
@given(item=geometries, other=geometries, slack=st.sampled_from([1.0, 1.0001, 2.0]))
def test_what_is_near_is_offered_by_the_index(item: dict[str, Any], other: dict[str, Any], slack: float) -> None:
    distance = SPATIAL_FUNCTIONS["ST_DISTANCE"].run(item, other)
    meters = 0.0 if distance is UNDEFINED else float(str(distance)) * slack
    holds = distance is not UNDEFINED
    assert not holds or touches_in_index(item, "ST_DISTANCE(@p, c.place) <= @m", {"@p": other, "@m": meters})


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        {},
        {"type": "Point"},
        {"type": "Point", "coordinates": [1]},
        {"type": "Point", "coordinates": [200, 0]},
        {"type": "Point", "coordinates": ["a", "b"]},
        {"type": "Polygon", "coordinates": [1, 2]},
        {"type": "MultiPolygon", "coordinates": [1, [2]]},
        {"type": "Circle", "coordinates": [1, 2]},
        {"type": ["Point"], "coordinates": [1, 2]},
    ],
)
def test_what_is_no_geometry_has_no_entries(value: Any) -> None:
    assert index_values(value) == []
    assert region_of(value) is None


def test_entries_have_one_length_and_are_few() -> None:
    values = index_values(_around(10, 50, 3, 3, clockwise=False))
    assert 1 <= len(values) <= 16
    assert {len(value) for value in values} == {9}
    assert len(index_values(point(10, 50))) == 1


async def page_of(world: World, container: Container, text: str) -> QueryPage:
    query = compile_query(parse_query(text), {})
    scopes = scopes_of(container, query, EVERYTHING)
    return await run_page(
        world.router, container, query, scopes, items_max=1000, monotonic_seconds=lambda: 0.0, encode_result=dumps
    )


def test_queries_by_place_load_only_what_is_near() -> None:
    texts = [
        "SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.place, {'type':'Point','coordinates':[10,10]}) < 150000",
        "SELECT VALUE c.id FROM c WHERE 150000 >= ST_DISTANCE({'type':'Point','coordinates':[10,10]}, c.place)",
        f"SELECT VALUE c.id FROM c WHERE ST_WITHIN(c.place, {json.dumps(_around(10, 10, 2, 2, clockwise=False))})",
        f"SELECT VALUE c.id FROM c WHERE ST_INTERSECTS(c.place, {json.dumps(_around(10, 10, 2, 2, clockwise=False))})",
        "SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.place, {'type':'Point','coordinates':[180,0]}) < 150000",
    ]

    async def scenario(directory: Path, policy: dict[str, Any]) -> list[QueryPage]:
        async with open_world(directory) as world:
            container = await world.container(indexingPolicy=policy)
            for longitude in range(-180, 181, 20):
                for latitude in range(-80, 81, 10):
                    await container.create_item(
                        {"id": f"{longitude} {latitude}", "pk": latitude, "place": point(longitude, latitude)}, None
                    )
            await container.create_item({"id": "area", "pk": 1, "place": _around(10, 10, 1, 1, clockwise=False)}, None)
            await container.create_item({"id": "rest", "pk": 1, "place": _around(10, 10, 1, 1, clockwise=True)}, None)
            await container.create_item({"id": "none", "pk": 1, "place": "somewhere"}, None)
            return [await page_of(world, container, text) for text in texts]

    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        with_index = asyncio.run(scenario(Path(first), INDEXED))
        without = asyncio.run(scenario(Path(second), {"includedPaths": [{"path": "/*"}]}))
    assert [sorted(page.results) for page in with_index] == [sorted(page.results) for page in without]
    assert all(page.indexes_used == ("/place/*",) and page.items_loaded < 12 for page in with_index)
    assert all(page.items_loaded > 300 for page in without)
    assert [len(page.results) for page in with_index] == [2, 2, 1, 2, 3]

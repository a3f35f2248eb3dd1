"""Values as texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.numbers import Float, Long
from asterism.languages.gremlin.values.printing import round_to_float, text_of
from asterism.languages.gremlin.values.results import Path
from asterism.languages.gremlin.values.structures import MapEntry

VERTEX = Vertex("a", "person", "p", None, key_name="pk")
EDGE = Edge({"id": "e", "label": "knows", "_vertexId": "a", "_sink": "b"}, key_name=None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        ("x", "x"),
        (Long(5), "5"),
        (1.0, "1.0"),
        (1e10, "1.0E10"),
        (1.25e-5, "1.25E-5"),
        (1234567.5, "1234567.5"),
        (-12345678.0, "-1.2345678E7"),
        (0.0, "0.0"),
        (round_to_float(0.1), "0.1"),
        (round_to_float(1e10), "1.0E10"),
        (Float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
        (Decimal("1.50"), "1.50"),
        ([1, "a", [2.0]], "[1, a, [2.0]]"),
        ({"a": 1, "b": [True]}, "{a=1, b=[true]}"),
        (MapEntry("a", 1), "a=1"),
        (VERTEX, "v[a]"),
        (EDGE, "e[e][a-knows->b]"),
        (VertexProperty("i", "name", "x" * 30, VERTEX, {}), "vp[name->xxxxxxxxxxxxxxxxx...]"),
        (Property("since", 1, EDGE), "p[since->1]"),
        (Path([set(), set()], [VERTEX, 1]), "path[v[a], 1]"),
        (Token("T", "id"), "id"),
        (datetime(2023, 8, 2, tzinfo=UTC), "2023-08-02T00:00Z"),
        (datetime(2023, 8, 2, 1, 2, 3, tzinfo=timezone(timedelta(hours=-2))), "2023-08-02T01:02:03-02:00"),
        (datetime(2023, 8, 2, 1, 2, 3, 500000, tzinfo=UTC), "2023-08-02T01:02:03.500Z"),
    ],
)
def test_values_print_as_in_java(value: Any, text: str) -> None:
    assert text_of(value) == text


@given(st.floats(allow_nan=False))
def test_a_fraction_prints_as_a_text_that_reads_back(value: float) -> None:
    assert float(text_of(value)) == value


@given(st.floats(width=32, allow_nan=False))
def test_a_float_of_32_bits_prints_as_a_text_that_reads_back(value: float) -> None:
    assert round_to_float(float(text_of(Float(value)))) == value

"""The shape of a query: equal for queries that differ in constants alone, and without any of them."""

from __future__ import annotations

import pytest

from asterism.languages.cosmos_sql import parse_query
from asterism.languages.cosmos_sql.shape import SHAPE_CHARACTERS_MAX, shape_of


def shape(text: str) -> str:
    return shape_of(parse_query(text), text=text)


def test_constants_are_numbered_and_parameters_stay() -> None:
    found = shape("SELECT c.id, 'secret' AS label FROM c WHERE c.n > 12.5 AND c.name = @name ORDER BY c.n DESC")
    assert found == ("SELECT c.id, @1 AS label FROM c WHERE ((c.n > @2) AND (c.name = @name)) ORDER BY c.n DESC")


def test_lists_of_any_length_have_one_shape() -> None:
    assert shape("SELECT * FROM c WHERE c.n IN (1, 2, 3)") == shape("SELECT * FROM c WHERE c.n IN (4)")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE {'a': 'secret', 'b': ['secret']} FROM c",
        "SELECT * FROM c WHERE CONTAINS(c.name, 'secret')",
        "SELECT * FROM c WHERE c.name LIKE 'secret%'",
        "SELECT * FROM c WHERE c['a'].b NOT IN ('secret', c.x)",
        "SELECT * FROM c JOIN t IN c.tags WHERE EXISTS (SELECT VALUE t FROM t WHERE t = 'secret')",
        "SELECT c.a ?? 'secret' FROM c WHERE c.n BETWEEN 'secret' AND c.m GROUP BY c.a",
    ],
)
def test_a_shape_shows_no_constant(text: str) -> None:
    assert "secret" in text
    assert "secret" not in shape(text)
    assert "\n" not in shape(text)


def test_a_shape_is_bounded() -> None:
    wide = "SELECT * FROM c WHERE " + " AND ".join(f"c.property{number} = {number}" for number in range(100))
    assert len(shape(wide)) == SHAPE_CHARACTERS_MAX
    assert shape(wide * 1 + " AND c.x = 1" * 1000) == "(a long query)"

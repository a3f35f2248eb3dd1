"""Terms of many items at once are the terms of each."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from asterism.models.documents.cosmos.index_rules import compile_rules

POLICY = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/b/*"}, {"path": "/c/d/?"}]}
COMPOSITE = {**POLICY, "compositeIndexes": [[{"path": "/a"}, {"path": "/b", "order": "descending"}]]}

names = st.sampled_from(["id", "a", "b", "c", "d", "_etag"])
scalars = st.one_of(
    st.none(), st.booleans(), st.sampled_from([0, 1, 1.0, -0.0, 0.5, 2**60]), st.text(max_size=40), st.just("x" * 300)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)
of_any_shape = st.lists(st.dictionaries(names, values, max_size=5), max_size=6)


@st.composite
def of_one_shape(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Items with the same names, whose values come from few enough that they are often all alike."""
    shape = draw(st.lists(names, unique=True, max_size=5))
    pools = {name: draw(st.lists(values, min_size=1, max_size=2)) for name in shape}
    return [{name: draw(st.sampled_from(pools[name])) for name in shape} for _ in range(draw(st.integers(1, 5)))]


@given(st.one_of(of_any_shape, of_one_shape()), st.sampled_from([POLICY, COMPOSITE, {"indexingMode": "none"}]))
def test_many_items_have_the_terms_that_each_of_them_has(items: list[dict[str, Any]], policy: dict[str, Any]) -> None:
    rules = compile_rules(policy)
    found = rules.terms_of_many(items)
    assert [sorted(terms) for terms in found] == [sorted(compile_rules(policy).terms(item)) for item in items]


def test_true_and_one_keep_their_terms_apart() -> None:
    items: list[dict[str, Any]] = [{"a": 1}, {"a": True}, {"a": [1]}, {"a": [True]}]
    found = compile_rules(POLICY).terms_of_many(items)
    assert len({terms[-1] for terms in found}) == 4


def test_terms_of_one_path_have_the_same_place_in_items_of_one_shape() -> None:
    items = [{"id": f"i{number}", "a": {"x": number}, "n": number} for number in range(3)]
    columns = list(zip(*compile_rules(POLICY).terms_of_many(items), strict=True))
    assert [len({term[:9] for term in column}) for column in columns] == [1, 1, 1, 1]

"""The sketch of the hottest keys."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from asterism.metrics import HeavyHitters

amounts = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=400)


@given(amounts)
def test_a_key_above_its_share_is_never_missed_and_no_sum_is_too_small(added: list[tuple[int, int]]) -> None:
    sketch: HeavyHitters[int] = HeavyHitters(4)
    true: Counter[int] = Counter()
    for key, amount in added:
        sketch.add(key, amount)
        true[key] += amount
    found = dict(sketch.top(100))
    assert len(found) <= 16
    assert all(found[key] >= true[key] for key in found)
    assert {key for key, amount in true.items() if amount > sum(true.values()) / 4} <= found.keys()


def test_what_was_hot_fades() -> None:
    sketch: HeavyHitters[str] = HeavyHitters(4)
    sketch.add("old", 100.0)
    sketch.halve()
    sketch.add("new", 60.0)
    assert sketch.top(1) == [("new", 60.0)]

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


def test_a_formerly_hot_key_fades() -> None:
    sketch: HeavyHitters[str] = HeavyHitters(4)
    sketch.add("old", 100.0)
    sketch.halve()
    sketch.add("new", 60.0)
    assert sketch.top(1) == [("new", 60.0)]


def test_keys_that_are_all_alike_do_not_stand_out_and_one_with_more_does() -> None:
    sketch: HeavyHitters[int] = HeavyHitters(4)
    for number in range(1000):
        sketch.add(number, 5.0)
    assert sketch.standing_out(10) == []
    for _ in range(500):
        sketch.add(-1, 5.0)
    ((key, amount),) = sketch.standing_out(10)
    assert (key, amount >= 2500.0) == (-1, True)


def test_few_keys_all_stand_out_with_what_they_have() -> None:
    sketch: HeavyHitters[str] = HeavyHitters(4)
    sketch.add("a", 5.0)
    sketch.add("b", 7.0)
    assert sketch.standing_out(10) == [("b", 7.0), ("a", 5.0)]

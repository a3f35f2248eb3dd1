"""Division of one budget among processes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.throughput.shares import IDLE_FRACTION, fair_shares, smoothed
from asterism.throughput.token_bucket import Admitted, TokenBucket

budgets = st.floats(1.0, 1e6)
demands = st.lists(st.floats(0.0, 1e7), min_size=1, max_size=20)


@given(budgets, demands)
def test_shares_add_up_to_the_budget_and_every_process_has_one(budget: float, demands_ru: list[float]) -> None:
    shares = fair_shares(budget, demands_ru)
    assert sum(shares) == pytest.approx(budget)
    assert min(shares) >= budget * IDLE_FRACTION / len(demands_ru) * 0.999


@given(budgets, demands)
def test_no_process_gets_less_than_its_demand_while_another_gets_more(budget: float, demands_ru: list[float]) -> None:
    shares = fair_shares(budget, demands_ru)
    for demand, share in zip(demands_ru, shares, strict=True):
        is_short = share < min(demand, budget) * 0.999
        assert not is_short or share >= max(shares) * 0.999


@given(budgets, demands, st.randoms())
def test_shares_do_not_depend_on_the_order_of_processes(
    budget: float, demands_ru: list[float], random: st.DataObject
) -> None:
    positions = list(range(len(demands_ru)))
    random.shuffle(positions)  # type: ignore[attr-defined]  # hypothesis's Random
    shares = fair_shares(budget, demands_ru)
    again = fair_shares(budget, [demands_ru[position] for position in positions])
    assert again == pytest.approx([shares[position] for position in positions])


@given(budgets, demands)
def test_asking_more_never_gives_less(budget: float, demands_ru: list[float]) -> None:
    louder = [demands_ru[0] * 2 + 1, *demands_ru[1:]]
    assert fair_shares(budget, louder)[0] >= fair_shares(budget, demands_ru)[0] * 0.999


def test_one_process_has_all_of_it() -> None:
    assert fair_shares(400.0, [0.0]) == [400.0]


def test_a_single_large_request_pulls_the_shares_only_a_little() -> None:
    assert smoothed(100.0, 500.0, seconds=0.1) == pytest.approx(200.0)


def test_a_share_of_a_bucket_fills_so_much_slower() -> None:
    bucket = TokenBucket(4_000.0, burst=True, now=0.0, share=0.25)
    granted = sum(isinstance(bucket.take(10.0, now=tick / 1000), Admitted) * 10.0 for tick in range(10_000))
    # A second's worth that it starts with, and ten seconds of a thousand.
    assert granted == pytest.approx(11_000, rel=0.01)
    bucket.set_share(0.5, now=10.0)
    granted = sum(isinstance(bucket.take(10.0, now=10 + tick / 1000), Admitted) * 10.0 for tick in range(10_000))
    assert granted == pytest.approx(20_000, rel=0.01)


def test_the_bursts_of_all_shares_together_are_those_of_the_whole() -> None:
    def granted(shares: list[float]) -> float:
        buckets = [TokenBucket(400.0, burst=True, now=0.0, share=share) for share in shares]
        return sum(
            isinstance(bucket.take(1.0, now=tick / 1000), Admitted)
            for tick in range(5_000)
            for bucket in buckets
            for _ in range(6)
        )

    assert granted([0.5, 0.25, 0.25]) == pytest.approx(granted([1.0]), rel=0.02)

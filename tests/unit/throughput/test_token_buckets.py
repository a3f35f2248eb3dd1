from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from asterism.throughput.token_bucket import (
    ADMITTED,
    BURST_RESERVE_SECONDS,
    BURST_RU_PER_SECOND_MAX,
    BudgetSpent,
    TakeResult,
    TokenBucket,
)


def test_a_second_of_budget_is_available_at_once_and_no_more() -> None:
    bucket = TokenBucket(10, burst=False, now=0.0)
    answers = [bucket.take(1.0, now=0.0) for _ in range(11)]
    assert answers[:10] == [ADMITTED] * 10
    assert isinstance(answers[10], BudgetSpent)


def test_idle_time_saves_one_second_only() -> None:
    bucket = TokenBucket(10, burst=False, now=0.0)
    answers = [bucket.take(1.0, now=1000.0) for _ in range(11)]
    assert answers[9] is ADMITTED
    assert isinstance(answers[10], BudgetSpent)


def test_a_cost_above_a_seconds_budget_is_admitted_and_paid_off_later() -> None:
    bucket = TokenBucket(10, burst=False, now=0.0)
    assert bucket.take(50.0, now=0.0) is ADMITTED
    answer = bucket.take(1.0, now=0.0)
    assert isinstance(answer, BudgetSpent)
    assert answer.retry_after_seconds == pytest.approx(4.0, abs=0.01)


def test_a_throttled_request_costs_nothing() -> None:
    bucket = TokenBucket(10, burst=False, now=0.0)
    bucket.take(20.0, now=0.0)
    waits = {bucket.take(1.0, now=0.5) for _ in range(100)}
    assert len(waits) == 1


def test_costs_known_afterwards_are_owed() -> None:
    bucket = TokenBucket(10, burst=False, now=0.0)
    bucket.spend(25.0, now=0.0)
    assert isinstance(bucket.take(1.0, now=1.0), BudgetSpent)
    assert bucket.take(1.0, now=1.6) is ADMITTED


def test_a_clock_that_goes_back_gives_nothing() -> None:
    bucket = TokenBucket(10, burst=False, now=100.0)
    bucket.take(10.0, now=100.0)
    assert isinstance(bucket.take(1.0, now=50.0), BudgetSpent)
    assert isinstance(bucket.take(1.0, now=100.0), BudgetSpent)


def test_a_bucket_needs_a_rate() -> None:
    with pytest.raises(ValueError, match="rate"):
        TokenBucket(0, burst=False, now=0.0)


# --- bursts ---------------------------------------------------------------------------------------------------------


def test_a_new_bucket_has_a_full_reserve_that_runs_at_3000_a_second() -> None:
    bucket = TokenBucket(400, burst=True, now=0.0)
    assert bucket.reserve_ru == 400 * BURST_RESERVE_SECONDS
    admitted = sum(bucket.take(10.0, now=0.0) is ADMITTED for _ in range(1000)) * 10.0
    assert admitted == BURST_RU_PER_SECOND_MAX


def test_a_spent_reserve_leaves_the_ordinary_rate() -> None:
    bucket = TokenBucket(100, burst=True, now=0.0)
    for tick in range(2000):
        bucket.take(300.0, now=tick / 10)
    assert bucket.reserve_ru < 1.0
    admitted = sum(bucket.take(10.0, now=200.0 + tick / 100) is ADMITTED for tick in range(1000))
    assert admitted * 10.0 == pytest.approx(1000.0, abs=400.0)


def test_idle_units_fill_the_reserve_again() -> None:
    bucket = TokenBucket(100, burst=True, now=0.0)
    for tick in range(2000):
        bucket.take(300.0, now=tick / 10)
    bucket.spend(0.0, now=250.0)
    assert bucket.reserve_ru == pytest.approx(100 * 50, rel=0.1)
    bucket.spend(0.0, now=10_000.0)
    assert bucket.reserve_ru == 100 * BURST_RESERVE_SECONDS


@pytest.mark.parametrize("rate", [3000, 10_000])
def test_large_partitions_do_not_burst(rate: int) -> None:
    assert TokenBucket(rate, burst=True, now=0.0).reserve_ru == 0.0


def test_another_rate_applies_at_once_and_grants_nothing_saved() -> None:
    bucket = TokenBucket(1000, burst=True, now=0.0)
    bucket.set_rate(100, now=0.0)
    assert (bucket.ru_per_second, bucket.balance_ru, bucket.reserve_ru) == (100.0, 100.0, 30_000.0)
    bucket.set_rate(5000, now=0.0)
    assert (bucket.balance_ru, bucket.reserve_ru) == (100.0, 0.0)
    bucket.spend(0.0, now=1.0)
    assert bucket.balance_ru == 5000.0


# --- any sequence of requests ---------------------------------------------------------------------------------------

rates = st.integers(1, 12_000)
steps = st.lists(
    st.tuples(st.floats(0.0, 20.0, allow_subnormal=False), st.floats(0.01, 5_000.0)), min_size=1, max_size=60
)


def ru_when_admitted(admission: TakeResult, cost: float) -> float:
    return {True: cost, False: 0.0}[admission is ADMITTED]


@given(rates, st.booleans(), steps)
def test_no_sequence_gets_more_than_rate_and_reserve_and_one_cost(
    rate: int, burst: bool, requests: list[tuple[float, float]]
) -> None:
    bucket = TokenBucket(rate, burst=burst, now=0.0)
    reserve = bucket.reserve_ru
    now = admitted = 0.0
    for wait_seconds, cost in requests:
        now += wait_seconds
        admitted += ru_when_admitted(bucket.take(cost, now=now), cost)
    largest = max(cost for _, cost in requests)
    assert admitted <= rate * (now + 1.0) + reserve + largest + 1e-6


@given(st.integers(1, 2999), steps)
def test_no_burst_runs_faster_than_3000_a_second(rate: int, requests: list[tuple[float, float]]) -> None:
    bucket = TokenBucket(rate, burst=True, now=0.0)
    now = admitted = 0.0
    for wait_seconds, cost in requests:
        now += wait_seconds
        admitted += ru_when_admitted(bucket.take(cost, now=now), cost)
    largest = max(cost for _, cost in requests)
    assert admitted <= BURST_RU_PER_SECOND_MAX * (now + 1.0) + largest + 1e-6


@settings(max_examples=200)
@given(rates, st.booleans(), steps)
def test_a_client_that_waits_for_retry_after_is_admitted(
    rate: int, burst: bool, requests: list[tuple[float, float]]
) -> None:
    bucket = TokenBucket(rate, burst=burst, now=0.0)
    now = 0.0
    for wait_seconds, cost in requests:
        now += wait_seconds / 20
        bucket.spend(cost, now=now)
    first = bucket.take(1.0, now=now)
    assume(isinstance(first, BudgetSpent))
    assert isinstance(first, BudgetSpent)
    assert first.retry_after_seconds > 0.0
    assert bucket.take(1.0, now=now + first.retry_after_seconds) is ADMITTED

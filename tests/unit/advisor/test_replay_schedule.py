"""The choice of requests, their times, and the throughput that fits to them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.replay_schedule import SECONDS_MAX, Bounds, Schedule, make_schedule


def reads(count: int, *, seconds: float) -> list[CapturedRequest]:
    return [
        CapturedRequest(1000.0 + seconds * n / max(count - 1, 1), "read", item_id=f"{n}", key=(n,))
        for n in range(count)
    ]


def schedule_of(
    requests: list[CapturedRequest], *, ru: int = 4000, partitions: int = 1, requests_max: int = 5000, items: int = 5000
) -> Schedule:
    bounds = Bounds(requests_max, items)
    return make_schedule(requests, ru_per_second=ru, partitions=partitions, bounds=bounds, draw=random.Random(1))


@given(
    count=st.integers(1, 300),
    seconds=st.floats(0.5, 100_000),
    ru=st.integers(4, 1000).map(lambda hundreds: hundreds * 100),
    partitions=st.integers(1, 20),
    requests_max=st.integers(1, 200),
)
def test_a_replay_is_bounded_and_to_scale_unless_it_says_otherwise(
    count: int, seconds: float, ru: int, partitions: int, requests_max: int
) -> None:
    found = schedule_of(reads(count, seconds=seconds), ru=ru, partitions=partitions, requests_max=requests_max)
    assert 1 <= len(found.units) <= min(count, requests_max)
    assert found.seconds <= SECONDS_MAX * 1.001
    assert found.ru_per_second % 100 == 0
    assert 400 <= found.ru_per_second <= max(10_000 * partitions, 400)
    exact = found.load_factor * ru
    assert found.is_to_scale == (exact <= found.ru_per_second * 1.01)
    assert exact >= found.ru_per_second * 0.99
    assert list(found.due_seconds) == sorted(found.due_seconds)


def test_the_operations_of_a_batch_are_one_unit() -> None:
    operations = [CapturedRequest(1.0 + n, "create", item_id=f"{n}", batch="b") for n in range(3)]
    found = schedule_of([*operations, CapturedRequest(9.0, "read", item_id="0", key=("a",))])
    assert [len(unit) for unit in found.units] == [3, 1]


def test_requests_are_left_out_when_their_queries_need_too_many_items() -> None:
    queries = [CapturedRequest(float(n), "query", equal={"/a": (n,)}, results=50) for n in range(100)]
    found = schedule_of(queries, items=1000)
    assert len(found.units) == 20
    assert found.kept == pytest.approx(0.2)


def test_items_that_several_requests_need_count_once() -> None:
    queries = [CapturedRequest(float(n), "query", equal={"/a": (n % 2,)}, results=50) for n in range(100)]
    assert len(schedule_of(queries, items=1000).units) == 100


def test_the_sampling_of_the_capture_counts_as_left_out() -> None:
    found = make_schedule(
        reads(100, seconds=10.0),
        ru_per_second=4000,
        partitions=1,
        bounds=Bounds(5000, 5000),
        draw=random.Random(1),
        sampling=0.1,
    )
    assert found.kept == pytest.approx(0.1)


def test_a_capture_without_requests_has_an_empty_schedule() -> None:
    assert schedule_of([]).units == ()

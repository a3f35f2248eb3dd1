"""Figures of a replay, scaled back to the captured workload."""

from __future__ import annotations

import random

import pytest

from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.replay_figures import Measured, Reply, error_of
from asterism.advisor.replay_schedule import Bounds, Unit, make_schedule

REQUESTS = [CapturedRequest(float(second), "read", item_id="1", key=("a",)) for second in range(101)]
SCHEDULE = make_schedule(
    REQUESTS, ru_per_second=1000, partitions=2, bounds=Bounds(1000, 1000), draw=random.Random(1), sampling=0.5
)


def unit(operation: str, at: float = 0.0, *, operations: int = 1) -> Unit:
    return (CapturedRequest(at, operation),) * operations


def served(charge: float, range_id: str | None = "0") -> Reply:
    return Reply(200, charge, range_id)


def test_refused_requests_count_as_dear_as_the_others_of_their_kind() -> None:
    measured = Measured(partitions=2)
    measured.add(unit("read"), [served(2.0)])
    measured.add(unit("read"), [Reply(429, 0.0, None)])
    measured.add(unit("query"), [served(3.0), served(4.0, "1")])
    assert measured.demanded_ru == pytest.approx(11.0)
    assert measured.throttled_share == pytest.approx(1 / 3)


def test_the_operations_of_a_batch_share_its_charge() -> None:
    measured = Measured(partitions=2)
    measured.add(unit("create", operations=3), [served(15.0)])
    assert measured.kinds["create"].charge == pytest.approx(5.0)
    assert measured.requests == 3


def test_rates_are_those_of_all_requests_of_the_container() -> None:
    measured = Measured(partitions=2)
    measured.add(unit("read"), [served(100.0)])
    assert measured.ru_per_second(SCHEDULE) == pytest.approx(2.0)


def test_the_needed_throughput_is_that_of_the_busiest_second_of_a_partition() -> None:
    measured = Measured(partitions=2)
    for second in range(10):
        measured.add(unit("read", float(second)), [served(10.0, "0"), served(10.0, "1")])
    measured.add(unit("read", 5.0), [served(30.0, "1")])
    needed = measured.as_prediction(SCHEDULE).ru_needed or 0.0
    assert 10.0 <= needed * SCHEDULE.kept / 2 <= 40.0


def test_the_busiest_partition_is_compared_with_the_mean_of_all() -> None:
    measured = Measured(partitions=4, by_range={"0": 3.0, "1": 1.0, "2": 0.0, "3": 0.0})
    assert measured.skew == pytest.approx(3.0)
    assert measured.shares() == [0.75, 0.25, 0.0, 0.0]


def test_refusals_that_the_workload_does_not_expect_are_counted() -> None:
    measured = Measured(partitions=1)
    for status in (404, 409, 409, 429):
        measured.add(unit("create"), [Reply(status, 0.0, None)])
    assert dict(measured.refused) == {409: 2}


@pytest.mark.parametrize(("predicted", "found", "expected"), [(11, 10, 0.1), (9, 10, 0.1), (0, 0, 0.0), (1, 0, 1.0)])
def test_an_error_is_a_fraction_of_what_was_measured(predicted: float, found: float, expected: float) -> None:
    assert error_of(predicted, found) == pytest.approx(expected)

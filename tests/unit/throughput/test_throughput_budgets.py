from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import ThroughputRefused
from asterism.limits import GIB, Limits
from asterism.throughput.budgets import (
    Autoscale,
    Manual,
    Throughput,
    effective_ru,
    from_json,
    minimum_autoscale_max_ru,
    minimum_ru,
    scaled_ru,
    share_per_partition,
    to_json,
    validate,
)

LIMITS = Limits()
throughputs = st.one_of(
    st.integers(4, 100_000).map(lambda hundreds: Manual(hundreds * 100)),
    st.builds(Autoscale, st.integers(1, 10_000).map(lambda thousands: thousands * 1000), st.integers(0, 100)),
)


def test_18000_over_3_partitions_is_6000_each() -> None:
    assert share_per_partition(Manual(18_000), 3) == 6000.0
    assert share_per_partition(Autoscale(20_000), 2) == 10_000.0


@given(throughputs, st.integers(1, 1000))
def test_shares_sum_to_the_whole(throughput: Throughput, partitions: int) -> None:
    assert share_per_partition(throughput, partitions) * partitions == pytest.approx(effective_ru(throughput))


@given(throughputs)
def test_throughput_survives_its_json(throughput: Throughput) -> None:
    assert from_json(json.loads(json.dumps(to_json(throughput)))) == throughput


@given(throughputs)
def test_throughput_in_range_and_in_increments_is_accepted(throughput: Throughput) -> None:
    validate(throughput, LIMITS, 400)


@pytest.mark.parametrize(
    ("throughput", "minimum", "words"),
    [
        (Manual(300), 400, "less than required minimum throughput 400"),
        (Manual(450), 400, "increments of 100"),
        (Manual(400), 500, "less than required minimum throughput 500"),
        (Manual(0), 400, "less than required minimum throughput 400"),
        (Manual(-400), 400, "less than required minimum throughput 400"),
        (Manual(20_000_000), 400, "10000000"),
        (Autoscale(900), 1000, "less than required minimum throughput 1000"),
        (Autoscale(1500), 1000, "increments of 1000"),
        (Autoscale(4000), 5000, "less than required minimum throughput 5000"),
        (Autoscale(20_000_000), 1000, "10000000"),
        (Autoscale(1000, -1), 1000, "percent"),
    ],
)
def test_throughput_that_the_service_refuses_is_refused_with_a_reason(
    throughput: Throughput, minimum: int, words: str
) -> None:
    with pytest.raises(ThroughputRefused) as refused:
        validate(throughput, LIMITS, minimum)
    assert words in refused.value.reason


@pytest.mark.parametrize(
    ("stored_gib", "highest", "containers", "minimum"),
    [
        (0, 400, 0, 400),
        (450, 400, 0, 500),
        (0, 100_000, 0, 1000),
        (0, 40_100, 0, 500),
        (0, 400, 25, 400),
        (0, 400, 30, 900),
    ],
)
def test_the_minimum_follows_storage_history_and_sharing(
    stored_gib: int, highest: int, containers: int, minimum: int
) -> None:
    stored_bytes = stored_gib * GIB
    found = minimum_ru(stored_bytes=stored_bytes, highest_ever_ru=highest, databases_containers=containers)
    assert found == minimum


@pytest.mark.parametrize(
    ("stored_gib", "highest", "minimum"), [(0, 1000, 1000), (450, 1000, 5000), (0, 100_000, 10_000)]
)
def test_the_minimum_of_autoscale_is_ten_times_that_of_its_data(stored_gib: int, highest: int, minimum: int) -> None:
    assert minimum_autoscale_max_ru(stored_bytes=stored_gib * GIB, highest_ever_ru=highest) == minimum


@pytest.mark.parametrize(("observed", "billed"), [(0.0, 400), (399.0, 400), (1234.5, 1235), (9999.0, 4000)])
def test_autoscale_is_billed_between_a_tenth_and_its_maximum(observed: float, billed: int) -> None:
    assert scaled_ru(Autoscale(4000), observed_ru_per_second=observed) == billed
    assert scaled_ru(Manual(700), observed_ru_per_second=observed) == 700

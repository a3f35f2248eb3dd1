"""The counts of requests by door, operation and status, with their latencies."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from asterism.metrics import LATENCY_SECONDS, DoorRequests, RequestCounts

Ended = tuple[str, str, int, float]
ended = st.lists(
    st.tuples(
        st.sampled_from(["nosql", "table"]),
        st.sampled_from(["read", "write", "query"]),
        st.sampled_from([200, 404, 429]),
        st.floats(0, 100),
    ),
    max_size=60,
)


def counts_of(requests: list[Ended]) -> RequestCounts:
    counts = RequestCounts()
    for door, operation, status, seconds in requests:
        counts.of_door(door).add(operation, status, seconds)
    return counts


def bucket_of(seconds: float) -> int:
    door = DoorRequests()
    door.add("read", 200, seconds)
    return door.operations["read"].by_latency.index(1)


def test_a_latency_falls_into_the_first_bucket_whose_bound_it_does_not_exceed() -> None:
    assert bucket_of(0.0) == 0
    assert bucket_of(LATENCY_SECONDS[0]) == 0
    assert bucket_of(LATENCY_SECONDS[0] * 1.01) == 1
    assert bucket_of(LATENCY_SECONDS[-1]) == len(LATENCY_SECONDS) - 1
    assert bucket_of(3600.0) == len(LATENCY_SECONDS)


def test_the_bounds_rise() -> None:
    assert list(LATENCY_SECONDS) == sorted(set(LATENCY_SECONDS))


@given(ended)
def test_every_request_is_counted_once_by_status_and_once_by_latency(requests: list[Ended]) -> None:
    counts = counts_of(requests)
    counted = [each for door in counts.doors.values() for each in door.operations.values()]
    assert sum(sum(each.by_status.values()) for each in counted) == len(requests)
    assert sum(sum(each.by_latency) for each in counted) == len(requests)


@given(ended, ended)
def test_the_sum_of_two_processes_is_that_of_all_their_requests(mine: list[Ended], others: list[Ended]) -> None:
    total, expected = RequestCounts(), RequestCounts()
    for counts in (counts_of(mine), counts_of(others)):
        total.add_json(json.loads(json.dumps(counts.to_json())))
    expected.add_json(counts_of([*mine, *others]).to_json())
    assert rounded(total) == rounded(expected)


def rounded(counts: RequestCounts) -> dict[tuple[str, str], tuple[dict[int | str, int], list[int], float]]:
    return {
        (name, operation): (counted.by_status, counted.by_latency, round(counted.seconds, 6))
        for name, door in counts.doors.items()
        for operation, counted in door.operations.items()
    }


def test_the_counts_of_a_process_with_other_bounds_are_left_out() -> None:
    total = RequestCounts()
    other = {"by_status": {"200": 1}, "by_latency": [1, 0], "seconds": 1.0}
    total.add_json({"nosql": {"in_flight": 2, "operations": {"read": other}}})
    assert total.doors["nosql"].in_flight == 2
    assert total.doors["nosql"].operations == {}

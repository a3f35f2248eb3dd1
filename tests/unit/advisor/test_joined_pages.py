"""Queries out of the pages that clients read."""

from __future__ import annotations

from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.joined_pages import join_pages


def page(at: float, *, of_range: bool = False, continued: bool = False, value: str = "x") -> CapturedRequest:
    return CapturedRequest(
        at,
        "query",
        equal={"/a": (value,)},
        results=5,
        loaded=6,
        partitions=1,
        charge=2.5,
        status=200,
        of_range=of_range,
        continued=continued,
    )


def joined(
    *pages: CapturedRequest, sampling: float = 1.0, partitions: int | None = 3
) -> list[tuple[float, int | None]]:
    return [(found.at, found.results) for found in join_pages(pages, sampling=sampling, partitions=partitions)]


def test_the_pages_of_a_fan_out_are_one_query() -> None:
    (query,) = join_pages([page(1.0 + n / 10, of_range=True) for n in range(3)], sampling=1.0, partitions=3)
    assert (query.results, query.loaded, query.partitions, query.charge) == (15, 18, 3, 7.5)
    assert not query.of_range


def test_two_fan_outs_of_the_same_query_stay_two() -> None:
    assert joined(*(page(1.0 + n / 10, of_range=True) for n in range(6))) == [(1.0, 15), (1.3, 15)]


def test_fan_outs_of_different_values_stay_apart() -> None:
    pages = [page(1.0 + n / 10, of_range=True, value="xy"[n % 2]) for n in range(6)]
    assert joined(*pages) == [(1.0, 15), (1.1, 15)]


def test_further_pages_belong_to_the_query_before_them() -> None:
    assert joined(page(1.0), page(2.0, continued=True), page(20.0, continued=True)) == [(1.0, 10), (20.0, 5)]


def test_queries_that_are_no_pages_of_ranges_stay_as_they_are() -> None:
    assert joined(page(1.0), page(1.0), page(1.1)) == [(1.0, 5), (1.0, 5), (1.1, 5)]


def test_without_the_number_of_partitions_pages_of_one_moment_are_one_query() -> None:
    pages = [page(at, of_range=True) for at in (1.0, 1.1, 1.2, 3.0, 3.1)]
    assert joined(*pages, partitions=None) == [(1.0, 15), (3.0, 10)]


def test_of_a_sample_one_page_stands_for_a_fan_out() -> None:
    pages = [page(float(n), of_range=True) for n in range(9)]
    assert joined(*pages, page(9.0), sampling=0.1) == [(2.0, 15), (5.0, 15), (8.0, 15), (9.0, 5)]


def test_other_requests_keep_their_place_in_time() -> None:
    read = CapturedRequest(1.05, "read", item_id="1")
    found = join_pages([page(1.1, of_range=True), read, page(1.0, of_range=True)], sampling=1.0, partitions=2)
    assert [request.operation for request in found] == ["query", "read"]

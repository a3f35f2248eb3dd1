"""The summary of a capture: what its requests were, and what they cost."""

from __future__ import annotations

import pytest

from asterism.advisor.capture_summary import Filter, summarize
from asterism.advisor.captured_request import BadLine, CapturedRequest, CaptureHeader


def query(at: float, charge: float, **paths: object) -> CapturedRequest:
    return CapturedRequest(at=at, operation="query", charge=charge, results=2, loaded=5, **paths)  # type: ignore[arg-type]  # fields by name


def test_operations_are_counted_by_kind_with_their_charges() -> None:
    summary = summarize(
        [
            CaptureHeader(sampling=0.5, dropped=2),
            CapturedRequest(at=20.0, operation="read", charge=1.0, status=200),
            CapturedRequest(at=10.0, operation="read", charge=0.38, status=429),
            CapturedRequest(at=30.0, operation="create", charge=5.5, status=201, batch="b"),
            CapturedRequest(at=30.0, operation="delete", charge=5.5, status=204, batch="b"),
            CaptureHeader(sampling=0.5, dropped=3),
            BadLine(7, "not JSON"),
        ]
    )
    assert {name: totals.count for name, totals in summary.by_operation.items()} == {
        "read": 2,
        "create": 1,
        "delete": 1,
    }
    assert summary.totals.request_units == pytest.approx(12.38)
    assert summary.totals.throttled == 1
    assert (summary.first_at, summary.last_at) == (10.0, 30.0)
    assert (summary.batches, summary.dropped, summary.sampling) == (1, 5, 0.5)
    assert len(summary.bad_lines) == 1


def test_queries_are_counted_by_the_paths_of_their_filters() -> None:
    summary = summarize(
        [
            query(1.0, 3.0, equal={"/b": (1,), "/a": (2,)}, between={"/at": (1, None)}, order=("/at",)),
            query(2.0, 4.0, equal={"/a": (5,), "/b": (6,)}, between={"/at": (None, 9)}, order=("/at",)),
            query(3.0, 2.0, key=("ada",)),
        ]
    )
    wanted = Filter(("/a", "/b"), ("/at",), ("/at",), names_key=False)
    assert set(summary.by_filter) == {wanted, Filter((), (), (), names_key=True)}
    assert summary.by_filter[wanted].request_units == 7.0
    assert (summary.by_filter[wanted].results, summary.by_filter[wanted].loaded) == (4, 10)


def test_a_capture_without_requests_has_no_totals() -> None:
    summary = summarize([CaptureHeader()])
    assert (summary.totals.count, summary.first_at) == (0, None)

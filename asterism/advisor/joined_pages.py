"""Whole queries out of the pages that a capture has.

Clients send a query that crosses partitions as one request for each partition, and read further pages with a
continuation; the server captures each of them. An advice counts queries: under another key the same query may be a
single page.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from asterism.advisor.captured_request import CapturedRequest

# Pages of one query follow each other. A client that works on a page for longer begins another query, as far as can be
# seen.
_PAUSE_SECONDS: Final = 5.0
# The same of the pages of several partitions, if it is not known how many there are.
_FAN_OUT_SECONDS: Final = 0.25


@dataclass(slots=True)
class _Query:
    """A query whose pages still come: its place in the result, and the partitions that it has asked."""

    place: int
    began_at: float
    latest_at: float
    ranges: int

    def takes(self, page: CapturedRequest, partitions: int | None) -> bool:
        """Return whether a page may belong to the query."""
        if page.continued:
            return page.at - self.latest_at <= _PAUSE_SECONDS
        if partitions is None:
            return page.at - self.began_at <= _FAN_OUT_SECONDS
        return self.ranges < partitions and page.at - self.latest_at <= _PAUSE_SECONDS


def join_pages(
    requests: Iterable[CapturedRequest], *, sampling: float, partitions: int | None
) -> list[CapturedRequest]:
    """Return the requests in the order of time, with the pages of each query as one. `partitions` are those of the
    container, if they are known. Of a sampled capture, where pages are missing, one page of each fan-out stands for
    all of it."""
    in_time = sorted(requests, key=lambda request: request.at)
    if sampling < 1:
        return _one_of_each_fan_out(in_time, partitions or 1)
    whole: list[CapturedRequest] = []
    open_queries: dict[Hashable, _Query] = {}
    for request in in_time:
        if request.operation not in ("query", "feed"):
            whole.append(request)
            continue
        identity = _identity(request)
        query = open_queries.get(identity)
        if (request.continued or request.of_range) and query is not None and query.takes(request, partitions):
            whole[query.place] = _joined(whole[query.place], request)
            query.latest_at = request.at
            query.ranges += not request.continued
        else:
            open_queries[identity] = _Query(len(whole), request.at, request.at, ranges=1)
            is_page = request.of_range or request.continued
            whole.append(replace(request, of_range=False, continued=False) if is_page else request)
    return whole


def _identity(request: CapturedRequest) -> Hashable:
    return (
        request.operation,
        request.key,
        request.shape,
        request.of_range,
        tuple(request.equal.items()),
        tuple(request.between.items()),
        request.order,
    )


def _joined(query: CapturedRequest, page: CapturedRequest) -> CapturedRequest:
    return replace(
        query,
        size_bytes=_sum(query.size_bytes, page.size_bytes),
        results=_sum(query.results, page.results),
        loaded=_sum(query.loaded, page.loaded),
        partitions=_sum(query.partitions, page.partitions),
        charge=None if query.charge is None or page.charge is None else query.charge + page.charge,
        status=max(query.status or 0, page.status or 0) or None,
    )


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _one_of_each_fan_out(requests: Sequence[CapturedRequest], partitions: int) -> list[CapturedRequest]:
    """Keep every n-th page of a range, with the figures of n: a query has as many chances to be sampled as pages."""
    kept: list[CapturedRequest] = []
    pages = 0
    for request in requests:
        if not request.of_range or request.continued:
            kept.append(request)
            continue
        pages += 1
        if pages % partitions == 0:
            kept.append(_times(request, partitions))
    return kept


def _times(page: CapturedRequest, count: int) -> CapturedRequest:
    return replace(
        page,
        of_range=False,
        size_bytes=None if page.size_bytes is None else page.size_bytes * count,
        results=None if page.results is None else page.results * count,
        loaded=None if page.loaded is None else page.loaded * count,
        partitions=count,
        charge=None if page.charge is None else page.charge * count,
    )

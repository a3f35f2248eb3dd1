"""Metrics as text, and the choice of the format."""

from __future__ import annotations

import pytest

from asterism.apis.admin.exposition import (
    Family,
    labels_of,
    openmetrics_text,
    prefers_openmetrics,
    prometheus_text,
)

FAMILIES = {
    "door_requests_total": Family("counter", "Requests.", ["door_requests_total 3"]),
    "bytes": Family("gauge", "Bytes.", ["bytes 7"]),
}


def test_a_page_for_prometheus_names_counters_as_their_samples() -> None:
    assert prometheus_text(FAMILIES) == (
        "# HELP door_requests_total Requests.\n# TYPE door_requests_total counter\ndoor_requests_total 3\n"
        "# HELP bytes Bytes.\n# TYPE bytes gauge\nbytes 7\n"
    )


def test_a_page_of_openmetrics_names_counters_without_their_suffix_and_says_where_it_ends() -> None:
    assert openmetrics_text(FAMILIES) == (
        "# HELP door_requests Requests.\n# TYPE door_requests counter\ndoor_requests_total 3\n"
        "# HELP bytes Bytes.\n# TYPE bytes gauge\nbytes 7\n# EOF\n"
    )


def test_labels_are_escaped() -> None:
    assert labels_of(name='a"b\\c\nd') == '{name="a\\"b\\\\c\\nd"}'


@pytest.mark.parametrize(
    "accept",
    [
        "application/openmetrics-text",
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
        "Application/OpenMetrics-Text;version=1.0.0",
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
        "text/plain;q=0.5, application/openmetrics-text;version=1.0.0;q=0.5",
        "application/openmetrics-text;version=0.0.1,application/openmetrics-text;version=1.0.0;q=0.1",
    ],
)
def test_clients_that_prefer_openmetrics_get_it(accept: str) -> None:
    assert prefers_openmetrics(accept)


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "",
        "*/*",
        "text/plain",
        "application/openmetrics-text;version=0.0.1",
        "application/openmetrics-text;version=2.0.0",
        "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=x",
        "application/openmetrics-text;q=0.1,text/plain;q=0.9",
        ";;,=,;q==;",
    ],
)
def test_all_others_get_the_text_of_prometheus(accept: str | None) -> None:
    assert not prefers_openmetrics(accept)

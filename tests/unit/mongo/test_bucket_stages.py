"""$bucket and $bucketAuto: every document is in exactly one bucket."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.mongo.stages.preferred_numbers import GRANULARITIES, rounder_of
from asterism.values.bson.types import Decimal128, Int64
from tests.support.mongo_pipelines import refusal_of, run_stages

pytestmark = pytest.mark.pure

numbers = st.one_of(st.integers(-50, 50), st.integers(-50, 50).map(Int64), st.floats(-50, 50, allow_nan=False))


@given(st.lists(numbers, max_size=60), st.lists(st.integers(-60, 60), min_size=2, max_size=8, unique=True).map(sorted))
def test_a_bucket_holds_what_lies_between_its_edges_and_the_default_the_rest(
    values: list[Any], boundaries: list[int]
) -> None:
    documents = [{"v": value} for value in values]
    stage = {"groupBy": "$v", "boundaries": boundaries, "default": "rest", "output": {"all": {"$push": "$v"}}}
    buckets = {bucket["_id"]: bucket["all"] for bucket in run_stages(documents, {"$bucket": stage})}
    expected: dict[Any, list[Any]] = {}
    for value in values:
        below = [edge for edge in boundaries if edge <= value]
        inside = below and value < boundaries[-1]
        expected.setdefault(below[-1] if inside else "rest", []).append(value)
    assert buckets == expected
    assert list(buckets) == sorted(buckets, key=lambda key: (key == "rest", key))


@given(st.lists(numbers, max_size=80), st.integers(1, 12))
def test_automatic_buckets_divide_all_documents_and_part_no_equal_values(values: list[Any], count: int) -> None:
    stage = {"groupBy": "$v", "buckets": count, "output": {"all": {"$push": "$v"}}}
    buckets = run_stages([{"v": value} for value in values], {"$bucketAuto": stage})
    assert len(buckets) <= count
    assert [value for bucket in buckets for value in bucket["all"]] == sorted(values)
    for earlier, later in pairwise(buckets):
        assert max(earlier["all"]) < min(later["all"])
        assert earlier["_id"]["max"] == later["_id"]["min"] == later["all"][0]
    if buckets:
        assert buckets[0]["_id"]["min"] == min(values)
        assert buckets[-1]["_id"]["max"] == max(values)


@pytest.mark.parametrize("name", sorted(GRANULARITIES))
@given(value=st.one_of(st.integers(1, 10**9), st.floats(1e-6, 1e9)))
def test_preferred_numbers_lie_strictly_around_a_number_and_are_stable(name: str, value: float) -> None:
    rounder = rounder_of(name)
    below, above = rounder.down(value), rounder.up(value)
    assert below < value < above
    assert rounder.up(below) in (value, above)
    assert rounder.down(above) in (value, below)
    assert rounder.up(0) == rounder.down(0) == 0


def test_granularities_round_the_edges() -> None:
    documents = [{"x": 10**power} for power in range(4)]
    stage = {"groupBy": "$x", "buckets": 3, "granularity": "R5"}
    edges = [tuple(bucket["_id"].values()) for bucket in run_stages(documents, {"$bucketAuto": stage})]
    assert edges == [(0.63, 1.6), (1.6, 16.0), (16.0, 1600.0)]
    assert rounder_of("E24").up(Decimal128("91")) == Decimal128("100")


@pytest.mark.parametrize(
    ("stage", "code"),
    [
        ({"$bucket": []}, 40201),
        ({"$bucket": {"groupBy": "x", "boundaries": [0, 1]}}, 40202),
        ({"$bucket": {"groupBy": "$x", "boundaries": [0]}}, 40192),
        ({"$bucket": {"groupBy": "$x", "boundaries": [0, "a"]}}, 40193),
        ({"$bucket": {"groupBy": "$x", "boundaries": [0, 0]}}, 40194),
        ({"$bucket": {"groupBy": "$x", "boundaries": [0, "$y"]}}, 40191),
        ({"$bucket": {"groupBy": "$x", "boundaries": [0, 9], "default": 3}}, 40199),
        ({"$bucket": {"groupBy": "$x", "boundaries": [0, 9], "other": 3}}, 40197),
        ({"$bucket": {"boundaries": [0, 9]}}, 40198),
        ({"$bucket": {"groupBy": "$x", "boundaries": [0, 1]}}, 40066),
        ({"$bucketAuto": {"groupBy": "$x"}}, 40246),
        ({"$bucketAuto": {"groupBy": "$x", "buckets": 0}}, 40243),
        ({"$bucketAuto": {"groupBy": "$x", "buckets": 1.5}}, 40242),
        ({"$bucketAuto": {"groupBy": "$x", "buckets": 1, "granularity": "R6"}}, 40257),
        ({"$bucketAuto": {"groupBy": {"$toString": "$x"}, "buckets": 1, "granularity": "R5"}}, 40258),
    ],
)
def test_wrong_buckets_are_refused(stage: dict[str, Any], code: int) -> None:
    assert refusal_of([{"x": 5}], stage) == code

"""$setWindowFields, $fill and $densify, against plain computations."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.values.bson.types import DatetimeMS, Decimal128, Int64
from tests.support.mongo_pipelines import refusal_of, run_stages

pytestmark = pytest.mark.pure

integers = st.integers(-(2**33), 2**33)
values = st.one_of(
    integers.filter(lambda n: abs(n) < 2**31),
    integers.map(Int64),
    st.floats(-1e6, 1e6),
    st.none(),
    st.text(max_size=2),
)
bounds = st.tuples(
    st.one_of(st.just("unbounded"), st.integers(-5, 5)), st.one_of(st.just("unbounded"), st.integers(-5, 5))
).filter(lambda pair: "unbounded" in pair or pair[0] <= pair[1])


def window(functions: dict[str, Any], **stage: Any) -> dict[str, Any]:
    return {"$setWindowFields": {"sortBy": {"k": 1}, "output": functions, **stage}}


def frame_of(members: list[Any], place: int, lower: Any, upper: Any) -> list[Any]:
    start = 0 if lower == "unbounded" else max(0, place + lower)
    stop = len(members) if upper == "unbounded" else max(0, place + upper + 1)
    return members[start:stop]


@given(st.lists(values, max_size=25), bounds)
def test_functions_over_documents_see_exactly_their_frame(members: list[Any], window_bounds: tuple[Any, Any]) -> None:
    documents = [{"k": place, "v": value} for place, value in enumerate(members)]
    frame = {"window": {"documents": list(window_bounds)}}
    functions = {
        "all": {"$push": "$v", **frame},
        "count": {"$count": {}, **frame},
        "sum": {"$sum": "$v", **frame},
        "avg": {"$avg": "$v", **frame},
        "least": {"$min": "$v", **frame},
    }
    for place, result in enumerate(run_stages(documents, window(functions))):
        expected = frame_of(members, place, *window_bounds)
        numbers = [value for value in expected if isinstance(value, int | float)]
        assert result["all"] == expected
        assert result["count"] == len(expected)
        assert result["sum"] == pytest.approx(math.fsum(numbers))
        assert isinstance(result["sum"], float) is any(isinstance(number, float) for number in numbers)
        assert result["avg"] == (pytest.approx(math.fsum(numbers) / len(numbers)) if numbers else None)
        known = [value for value in expected if value is not None]
        assert result["least"] == (min(known, key=lambda value: (isinstance(value, str), value)) if known else None)


@given(st.lists(st.integers(-20, 20), max_size=25), st.integers(-6, 6), st.integers(0, 6))
def test_ranges_go_by_the_distance_of_sort_values(keys: list[int], lower: int, width: int) -> None:
    documents = [{"k": key} for key in keys]
    stage = window({"near": {"$push": "$k", "window": {"range": [lower, lower + width]}}})
    for result in run_stages(documents, stage):
        low, high = result["k"] + lower, result["k"] + lower + width
        assert result["near"] == sorted(key for key in keys if low <= key <= high)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30))
def test_ranks_count_within_their_partition(pairs: list[tuple[int, int]]) -> None:
    documents = [{"p": part, "k": key} for part, key in pairs]
    functions: dict[str, Any] = {"rank": {"$rank": {}}, "dense": {"$denseRank": {}}, "number": {"$documentNumber": {}}}
    results = run_stages(documents, window(functions, partitionBy="$p"))
    assert [(result["p"], result["k"]) for result in results] == sorted(pairs)
    for result in results:
        keys = [key for part, key in pairs if part == result["p"]]
        assert result["rank"] == 1 + sum(key < result["k"] for key in keys)
        assert result["dense"] == 1 + len({key for key in keys if key < result["k"]})
    assert all(result["number"] >= result["rank"] for result in results)


@given(st.lists(st.floats(-1000, 1000), min_size=2, max_size=15), st.integers(1, 4))
def test_deviations_and_covariances_agree_with_their_definitions(numbers: list[float], back: int) -> None:
    documents = [{"k": place, "v": number} for place, number in enumerate(numbers)]
    frame = {"window": {"documents": [-back, 0]}}
    functions = {
        "deviation": {"$stdDevPop": "$v", **frame},
        "covariance": {"$covarianceSamp": ["$k", "$v"], **frame},
    }
    for place, result in enumerate(run_stages(documents, window(functions))):
        members = frame_of(numbers, place, -back, 0)
        assert result["deviation"] == pytest.approx(statistics.pstdev(members), abs=1e-6)
        if len(members) > 1:
            keys = [float(key) for key in range(place - len(members) + 1, place + 1)]
            assert result["covariance"] == pytest.approx(statistics.covariance(keys, members), abs=1e-6)
        else:
            assert result["covariance"] is None


def test_series_functions() -> None:
    day = 86_400_000
    documents = [{"k": DatetimeMS(place * day), "v": value} for place, value in enumerate([2, 4, None, 10])]
    frame = {"window": {"documents": [-1, 0]}}
    functions: dict[str, Any] = {
        "shift": {"$shift": {"output": "$v", "by": 1, "default": "end"}},
        "slope": {"$derivative": {"input": "$v", "unit": "day"}, **frame},
        "area": {"$integral": {"input": "$v", "unit": "day"}, "window": {"documents": ["unbounded", "current"]}},
        "line": {"$linearFill": "$v"},
        "last": {"$locf": "$v"},
        "moving": {"$expMovingAvg": {"input": "$v", "alpha": 0.5}},
    }
    results = run_stages(documents, window(functions))
    columns = {name: [result[name] for result in results] for name in functions}
    assert columns == {
        "shift": [4, None, 10, "end"],
        "slope": [None, 2.0, None, None],
        "area": [0.0, 3.0, 3.0, 17.0],
        "line": [2, 4, 7.0, 10],
        "last": [2, 4, 4, 10],
        "moving": [2.0, 3.0, None, 6.5],
    }


def test_windows_of_dates_go_by_the_calendar() -> None:
    day = 86_400_000
    # The 31st of January, the 28th of February and the 31st of March of 2023.
    moments = [DatetimeMS((19388 + days) * day) for days in (0, 28, 59)]
    stage = window({"n": {"$count": {}, "window": {"range": [-1, 0], "unit": "month"}}})
    assert [result["n"] for result in run_stages([{"k": moment} for moment in moments], stage)] == [1, 2, 2]


def test_results_go_to_paths_inside_documents() -> None:
    stage = window({"a.n": {"$documentNumber": {}}})
    assert run_stages([{"k": 1, "a": {"b": 2}}], stage) == [{"k": 1, "a": {"b": 2, "n": 1}}]


@pytest.mark.parametrize(
    ("stage", "code"),
    [
        ({"$setWindowFields": 1}, 9),
        ({"$setWindowFields": {}}, 40414),
        ({"$setWindowFields": {"output": {}, "other": 1}}, 40415),
        (window({"n": {"$sum": 1, "window": None}}), 9),
        (window({"n": {"$sum": 1, "window": {"documents": [1, 0]}}}), 5339900),
        (window({"n": {"$nothing": 1}}), 9),
        (window({"n": {"$sum": 1, "window": {"range": [0, 1]}}}, sortBy={"k": -1}), 8947401),
        (window({"n": {"$sum": 1, "window": {"range": [0, 1]}}}, sortBy={"s": 1}), 5429414),
        (window({"n": {"$rank": {}}}, sortBy={"k": 1, "s": 1}), 5371602),
        (window({"n": {"$sum": 1}}, partitionBy="$list"), 14),
    ],
)
def test_wrong_windows_are_refused(stage: dict[str, Any], code: int) -> None:
    assert refusal_of([{"k": 1, "s": "text", "list": [1]}], stage) == code


def test_windows_respect_the_limit_of_memory() -> None:
    documents = [{"k": place, "text": "x" * 1000} for place in range(200)]
    stage = window({"n": {"$count": {}}})
    assert refusal_of(documents, stage, memory_bytes_max=50_000) == 292
    assert len(run_stages(documents, stage, memory_bytes_max=None)) == 200


def test_fill_takes_constants_and_neighbors() -> None:
    documents = [{"k": 1, "a": None, "b": 1}, {"k": 2, "b": None}, {"k": 3, "a": 5, "b": 3}]
    output = {"a": {"value": 0}, "b": {"method": "linear"}}
    assert run_stages(documents, {"$fill": {"sortBy": {"k": 1}, "output": output}}) == [
        {"k": 1, "a": 0, "b": 1},
        {"k": 2, "b": 2.0, "a": 0},
        {"k": 3, "a": 5, "b": 3},
    ]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-10, 10)), min_size=1, max_size=15), st.integers(1, 4))
def test_densify_adds_every_missing_step_and_nothing_else(pairs: list[tuple[int, int]], step: int) -> None:
    documents = [{"p": part, "k": key, "own": True} for part, key in pairs]
    stage = {"field": "k", "partitionByFields": ["p"], "range": {"step": step, "bounds": "full"}}
    results = run_stages(documents, {"$densify": stage})
    keys = [key for _, key in pairs]
    grid = set(range(min(keys), max(keys) + 1, step))
    for part in {part for part, _ in pairs}:
        found = [result["k"] for result in results if result["p"] == part]
        own = [key for other, key in pairs if other == part]
        assert found == sorted(found)
        assert sorted(found) == sorted([*own, *(grid - set(own))])


def test_densify_steps_through_dates_and_explicit_bounds() -> None:
    hour = 3_600_000
    stage = {"field": "at", "range": {"step": 1, "unit": "hour", "bounds": [DatetimeMS(0), DatetimeMS(3 * hour)]}}
    results = run_stages([{"at": DatetimeMS(hour), "x": 1}, {"y": 1}], {"$densify": stage})
    assert results == [{"y": 1}, {"at": DatetimeMS(0)}, {"at": DatetimeMS(hour), "x": 1}, {"at": DatetimeMS(2 * hour)}]
    assert refusal_of([{"at": 5}], {"$densify": stage}) == 5733201
    endless = {"field": "k", "range": {"step": 1, "bounds": [0, 10**7]}}
    assert refusal_of([{"k": 5}], {"$densify": endless}) == 5897900


def test_decimals_in_sliding_sums_are_exact() -> None:
    documents = [{"k": place, "v": Decimal128(text)} for place, text in enumerate(["1E+20", "0.1", "0.2"])]
    stage = window({"s": {"$sum": "$v", "window": {"documents": [-1, 0]}}})
    assert [str(result["s"]) for result in run_stages(documents, stage)] == [
        "100000000000000000000",
        "100000000000000000000.1",
        "0.3",
    ]


def test_groups_by_decimals_meet_their_equals() -> None:
    documents = [{"v": 1}, {"v": Decimal128("1")}, {"v": Decimal128("NaN")}, {"v": math.nan}]
    results = run_stages(documents, {"$group": {"_id": "$v", "n": {"$sum": 1}}})
    assert [result["n"] for result in results] == [2, 2]

"""Results, profiles and refusals of traversals as `asterism gremlin` shows them."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.cli.failure import CommandFailed
from asterism.cli.graph_profile import bar, partition_map, print_profile, step_rows
from asterism.cli.graph_results import row_of
from asterism.cli.graph_server import sentence_of
from asterism.cli.gremlin import read_bindings, with_profile

PROFILE: dict[str, Any] = {
    "gremlin": "g.V('anna').out().executionProfile()",
    "totalTime": 28,
    "metrics": [
        {
            "name": "GetVertices",
            "time": 24,
            "annotations": {"percentTime": 85.71},
            "counts": {"resultCount": 1},
            "storeOps": [
                {"fanoutFactor": 3, "count": 1, "size": 696, "time": 0.4, "partitions": ["0", "10", "2"]}
                | {"requestCharge": 6.75, "index": "id"}
            ],
        },
        {
            "name": "GetNeighborVertices",
            "time": 3,
            "counts": {"resultCount": 2},
            "storeOps": [
                {"fanoutFactor": 1, "count": 1, "size": 10, "time": 0.1, "partitions": ["2"], "requestCharge": 1.0},
                {"fanoutFactor": 1, "count": 1, "size": 10, "time": 0.1, "partitions": ["0"], "requestCharge": 1.0},
            ],
        },
        {"name": "ProjectOperator", "time": 1, "counts": {"resultCount": 2}},
    ],
    "advice": ["V('anna') was looked for in 3 partitions; give the partition key"],
}


@pytest.mark.parametrize(
    "text",
    ["g.V()", " g.V();\n", "g.V().toList()", "g.V().next( ) ;", "g.V().executionProfile()", "g.V().executionprofile()"],
)
def test_a_profile_takes_the_place_of_the_call_that_asks_for_results(text: str) -> None:
    assert with_profile(text).strip() == "g.V().executionProfile()"


def test_the_store_operations_of_a_step_are_added_up() -> None:
    first, second, third = step_rows(PROFILE)
    assert (first.partitions, first.charge, first.indexes, first.fan_out) == (("0", "2", "10"), 6.75, ("id",), 3)
    assert (second.operations, second.items, second.bytes, second.charge) == (2, 2, 20, 2.0)
    assert (third.operations, third.partitions, third.results) == (0, (), 2)


def test_a_profile_is_printed_with_its_partitions_and_its_advice(capsys: pytest.CaptureFixture[str]) -> None:
    print_profile(PROFILE)
    printed = capsys.readouterr().out
    assert "■■■ 0, 2, 10" in printed
    assert "Advice: V('anna') was looked for in 3 partitions; give the partition key\n" in printed


@pytest.mark.parametrize(("share", "drawn"), [(0, ""), (1, "████"), (0.5, "██"), (0.0625, "▎"), (7, "████"), (-1, "")])
def test_a_bar_is_as_long_as_its_share(share: float, drawn: str) -> None:
    assert bar(share, 4) == drawn


def test_partitions_that_do_not_fit_a_line_are_counted() -> None:
    assert partition_map(("1",), [str(number) for number in range(100)]) == "1 of 100"
    assert partition_map((), ["0"]) == "-"


@pytest.mark.parametrize(
    ("result", "row"),
    [
        (
            {
                "id": "a",
                "label": "person",
                "type": "vertex",
                "properties": {"pk": [{"id": "a|pk", "value": "p"}], "n": [{"value": 1}, {"value": 2}]},
            },
            {"id": "a", "label": "person", "pk": "p", "n": [1, 2]},
        ),
        (
            {"id": "e", "label": "knows", "type": "edge", "inV": "b", "outV": "a", "properties": {"since": 1}},
            {"id": "e", "label": "knows", "from": "a", "to": "b", "since": 1},
        ),
        (
            {
                "labels": [[], [], [], []],
                "objects": [{"id": "a", "type": "vertex"}, {"id": "e", "label": "knows", "type": "edge"}, "b", 7],
            },
            {"path": "a —knows→ b → 7"},
        ),
        ({"name": ["x"]}, {"name": ["x"]}),
        (7, 7),
    ],
)
def test_elements_and_paths_become_rows(result: Any, row: Any) -> None:
    assert row_of(result) == row


def test_a_refusal_is_its_sentence_without_the_lines_around_it() -> None:
    message = (
        "\r\n\nActivityId : 1\nExceptionType : GraphCompileException\nExceptionMessage : \r\n\t"
        "Gremlin Query Compilation Error: no\r\n\t1 Error(s)\n\tGremlinRequestId : 2\n\tContext : graphcompute\n"
    )
    failure = CommandFailed(sentence_of(message, {"x-ms-status-code": 1000}, 597))
    assert str(failure) == "1000: Gremlin Query Compilation Error: no 1 Error(s)"
    waiting = {"x-ms-status-code": 429, "x-ms-retry-after-ms": "00:00:00.0330000"}
    assert sentence_of("Too much.", waiting, 500) == "429: Too much. Try again after 00:00:00.0330000."


@pytest.mark.parametrize("text", ["{", "[1]", "5"])
def test_bindings_that_are_no_object_are_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="the bindings are"):
        read_bindings(text)

"""Runs the scenario files in `query/`: items, a query with its parameters, and the results or the error.

A file has items that its cases share. A case has `query`, `parameters` if it needs any, and either `results` or an
`error` with the code, the place in the text and the reason.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asterism.languages.cosmos_sql import Collector, CompiledQuery, compile_query, parse_query
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax.printer import to_text

_FILES = sorted((Path(__file__).parent / "query").glob("*.json"))


def _cases(outcome: str) -> list[Any]:
    """Every case with that outcome, each with the items of its file."""
    files = [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in _FILES]
    return [
        pytest.param(file["items"], case, id=f"{stem}: {case['name']}")
        for stem, file in files
        for case in file["cases"]
        if outcome in case
    ]


def _fed(compiled: CompiledQuery, items: list[tuple[int, dict[str, object]]]) -> Collector:
    collector = compiled.new_collector()
    for number, item in items:
        collector.feed(item, number)
    return collector


def _run(items: list[dict[str, object]], case: dict[str, Any]) -> list[object]:
    compiled = compile_query(parse_query(case["query"]), case.get("parameters", {}))
    return list(_fed(compiled, list(enumerate(items if compiled.reads_items else [{}]))).results())


@pytest.mark.parametrize(("items", "case"), _cases("results"))
def test_a_query_gives_the_results_of_its_scenario(items: list[dict[str, object]], case: dict[str, Any]) -> None:
    # Compared as text, so that true is not 1 and the order of properties counts.
    assert json.dumps(_run(items, case)) == json.dumps(case["results"])


@pytest.mark.parametrize(("items", "case"), _cases("results"))
def test_a_query_gives_the_same_when_each_item_is_a_partition(
    items: list[dict[str, object]], case: dict[str, Any]
) -> None:
    compiled = compile_query(parse_query(case["query"]), case.get("parameters", {}))
    merged = compiled.new_collector()
    for numbered in enumerate(items if compiled.reads_items else [{}]):
        merged.merge(_fed(compiled, [numbered]))
    assert json.dumps(list(merged.results())) == json.dumps(case["results"])


@pytest.mark.parametrize(("items", "case"), _cases("results"))
def test_the_printed_tree_of_a_scenario_is_read_as_the_same_tree(
    items: list[dict[str, object]], case: dict[str, Any]
) -> None:
    query = parse_query(case["query"])
    assert parse_query(to_text(query)) == query


@pytest.mark.parametrize(("items", "case"), _cases("error"))
def test_a_query_is_refused_as_its_scenario_says(items: list[dict[str, object]], case: dict[str, Any]) -> None:
    with pytest.raises(MalformedQuery) as refusal:
        _run(items, case)
    error = refusal.value
    found = {"code": error.code, "start": error.start, "end": error.end, "reason": error.reason}
    assert found == case["error"]


def test_the_name_of_every_scenario_is_its_own() -> None:
    names = [case.id for outcome in ("results", "error") for case in _cases(outcome)]
    assert len(names) == len(set(names))

"""Queries written in JavaScript: filter, map, pluck, flatten, unwind, sorting and chains of them."""

from __future__ import annotations

import json

import pytest

from asterism.scripts.operations import FeedOptions
from asterism.scripts.results import ScriptFailed
from asterism.scripts.runtime import TriggerKind
from tests.unit.scripts.dict_operations import DictOperations, ScriptBench

PEOPLE = (
    {"id": "1", "name": "Ada", "age": 36, "tags": ["x", ["y"]], "kids": [{"name": "B", "pets": ["cat"]}]},
    {"id": "2", "name": "Bob", "age": 17, "tags": ["z"], "kids": []},
    {"id": "3", "name": "Cyd", "age": 64, "tags": [], "kids": [{"name": "D", "pets": ["dog", "fish"]}]},
    {"id": "4", "name": "Dan", "tags": "none"},
)


@pytest.fixture
def people(bench: ScriptBench) -> ScriptBench:
    bench.operations = DictOperations(*PEOPLE)
    return bench


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("__.filter(function (d) { return d.age > 30; }, cb)", ["1", "3"]),
        ("__.filter(function (d) { return d.age > 30; }, {}, cb)", ["1", "3"]),
        ("__.map(function (d) { return d.id; }, cb)", ["1", "2", "3", "4"]),
        ("__.pluck('name', cb)", ["Ada", "Bob", "Cyd", "Dan"]),
        ("__.pluck('age', cb)", [36, 17, 64]),
        ("__.sortBy(function (d) { return d.age; }, cb)", ["2", "1", "3"]),
        ("__.sortByDescending(function (d) { return d.name; }, cb)", ["4", "3", "2", "1"]),
        ("__.unwind(function (d) { return d.kids; }, function (d, k) { return d.id + k.name; }, cb)", ["1B", "3D"]),
        ("__.chain().map(function (d) { return d.tags; }).flatten().value(cb)", ["x", "y", "z", "none"]),
        ("__.chain().map(function (d) { return d.tags; }).flatten(true).value(cb)", ["x", ["y"], "z", "none"]),
        ("__.chain().filter(d => d.kids).unwind(d => d.kids).unwind(k => k.pets).value(cb)", ["cat", "dog", "fish"]),
        ("__.chain().sortBy(d => d.age).pluck('name').value({}, cb)", ["Bob", "Ada", "Cyd"]),
        ("__.chain().value(cb)", ["1", "2", "3", "4"]),
    ],
)
async def test_a_query_gives_its_results_to_the_callback(
    people: ScriptBench, query: str, expected: list[object]
) -> None:
    inside = f"""function cb(e, feed) {{ reply(feed.map(function (v) {{ return v.id || v; }})); }}
        if (!{query}.isAccepted) throw new Error('not accepted');"""
    assert await people.answer(inside) == expected


async def test_without_a_callback_the_results_are_appended_to_the_response(people: ScriptBench) -> None:
    assert json.loads(str(await people.answer("__.chain().pluck('name').value();"))) == ["Ada", "Bob", "Cyd", "Dan"]


async def test_a_filter_works_on_one_page_and_gives_its_continuation(people: ScriptBench) -> None:
    inside = """__.filter(function (d) { return d.age; }, {pageSize: 2},
        function (e, f, o) { reply([f.length, o.continuation]); });"""
    assert await people.answer(inside) == [2, "2"]


@pytest.mark.parametrize(
    ("page_size", "pages"),
    [(1, [["3"], ["7"]]), (2, [["3", "7"]]), (5, [["3", "7"]]), (0, [["3", "7"]]), (-1, [["3", "7"]])],
)
async def test_a_page_of_a_filter_is_filled_from_further_documents(
    bench: ScriptBench, page_size: int, pages: list[list[str]]
) -> None:
    bench.operations = DictOperations(*({"id": str(number), "odd": number in (3, 7)} for number in range(10)))
    inside = f"""var pages = [];
        (function next(from) {{
            __.filter(function (d) {{ return d.odd; }}, {{pageSize: {page_size}, continuation: from}},
                function (e, f, o) {{
                    if (f.length) pages.push(f.map(function (d) {{ return d.id; }}));
                    if (o.continuation) next(o.continuation); else reply(pages);
                }});
        }})();"""
    assert await bench.answer(inside) == pages


async def test_sorting_reads_every_page_first(people: ScriptBench) -> None:
    inside = "__.sortBy(function (d) { return d.age; }, {pageSize: 3}, function (e, f, o) { reply(f.length); });"
    assert await people.answer(inside) == 3
    assert [name for name, _ in people.operations.calls] == ["feed", "feed"]
    assert people.operations.calls[1] == ("feed", FeedOptions(3, "3"))


async def test_an_exception_in_a_predicate_arrives_at_the_callback(people: ScriptBench) -> None:
    inside = "__.filter(function (d) { return d.none.x; }, function (e) { reply(e instanceof TypeError); });"
    assert await people.answer(inside) is True


@pytest.mark.parametrize(
    "query", ["__.filter(5)", "__.pluck('')", "__.unwind(5)", "__.sortBy()", "__.chain().filter(d => d, {})"]
)
async def test_an_invalid_query_throws_a_bad_request(people: ScriptBench, query: str) -> None:
    assert await people.answer(f"try {{ {query}; }} catch (e) {{ reply(e.number); }}") == 400


async def test_a_query_in_a_pre_trigger_needs_a_callback(people: ScriptBench) -> None:
    result = await people.trigger("function () { __.filter(function () { return true; }); }", TriggerKind.PRE, {})
    assert isinstance(result, ScriptFailed)


async def test_shapes_are_measured_and_compared(bench: ScriptBench) -> None:
    inside = """var here = {type: 'Point', coordinates: [0, 0]}, there = {type: 'Point', coordinates: [0, 1]};
        var box = {type: 'Polygon', coordinates: [[[-1, -1], [1, -1], [1, 0.5], [-1, 0.5], [-1, -1]]]};
        var s = __.spatial;
        reply([Math.round(s.distance(here, there)), s.distance(here, box), s.within(here, box), s.within(there, box),
               s.intersects(box, here), s.intersects(box, there), s.isValid(box), s.isValidDetailed({}).valid]);"""
    assert await bench.answer(inside) == [111195, 0, True, False, True, False, True, False]

"""Calls of users' functions that are made ahead: which calls, and that the results are the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.errors import AsterismError, MalformedRequest
from asterism.languages.cosmos_sql import CompiledQuery, compile_query, parse_query
from asterism.languages.cosmos_sql.compiling.certain_calls import certain_calls
from asterism.languages.cosmos_sql.syntax.printer import to_text
from asterism.values.undefined import UNDEFINED

Item = dict[str, object]
Entries = list[tuple[bytes, bytes]]


def one_more(*arguments: object) -> object:
    """Return a number, undefined, or raise an error: all kinds of outcomes."""
    (value,) = arguments or (0,)
    if value == 3:
        raise MalformedRequest(reason="A user defined function failed: three.")
    return value + 1 if type(value) is int else UNDEFINED


class BatchFunction:
    """A function that takes many calls at once, and that records its calls."""

    def __init__(self, function: Callable[..., object] = one_more, *, calls_at_once_max: int = 1000) -> None:
        self._function = function
        self._calls_at_once_max = calls_at_once_max
        self.batches: list[list[object]] = []
        self.single_calls: list[object] = []

    def __call__(self, *arguments: object) -> object:
        self.single_calls += arguments
        return self._function(*arguments)

    def results_ahead(self, calls: Iterable[tuple[object, ...]]) -> list[object]:
        calls = list(calls)
        self.batches.append([argument for arguments in calls for argument in arguments])
        results: list[object] = []
        try:
            for arguments in calls[: self._calls_at_once_max]:
                results.append(self._function(*arguments))  # noqa: PERF401 - the results before an error count
        except MalformedRequest:
            pass
        return results


def compiled(text: str, function: Callable[..., object]) -> CompiledQuery:
    return compile_query(parse_query(text), {}, udfs={"f": function})


def entries_of(items: Sequence[Item]) -> Entries:
    return [(b"", json.dumps(item).encode()) for item in items]


def outcomes(query: CompiledQuery, entries: Entries, *, wanted: int = 1000) -> list[object]:
    """Return the rows of each item, up to the first error, and its text."""
    foreseen = query.foreseen
    read = json.loads if foreseen is None else foreseen.reader(entries, json.loads, wanted)
    found: list[object] = []
    try:
        for _, body in entries:
            found.append(list(query.rows(read(body))))
    except AsterismError as error:
        found.append(str(error))
    return found


# --- which ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "certain"),
    [
        ("udf.f(c.a) = 1", ["udf.f(c.a)"]),
        ("1 < udf.f(c.a) + udf.g()", ["udf.f(c.a)", "udf.g()"]),
        ("NOT IS_DEFINED([{x: udf.f(c.a)}][0].x)", ["udf.f(c.a)"]),
        ("udf.f(c.a) BETWEEN udf.g(1) AND udf.g(2)", ["udf.f(c.a)", "udf.g(1)", "udf.g(2)"]),
        ("udf.f(c.a) LIKE udf.g(c.b)", ["udf.f(c.a)", "udf.g(c.b)"]),
        ("udf.f(UPPER(c.a)) AND udf.g(c.b)", ["udf.f(UPPER(c.a))"]),
        ("udf.f(c.a) OR udf.g(c.b)", ["udf.f(c.a)"]),
        ("c.a = 1 AND udf.f(c.a) = 1", []),
        ("c.a = 1 OR udf.f(c.a) = 1", []),
        ("udf.f(c.a) ? udf.g(1) : udf.g(2)", ["udf.f(c.a)"]),
        ("udf.f(c.a) ?? udf.g(1)", ["udf.f(c.a)"]),
        ("udf.f(c.a) IN (udf.g(1), udf.g(2))", ["udf.f(c.a)"]),
        ("EXISTS(SELECT VALUE udf.f(x) FROM x IN c.a)", []),
        ("(SELECT VALUE udf.f(c.a))", []),
        ("udf.f(udf.g(c.a))", ["udf.g(c.a)"]),
        ("udf.f(ARRAY(SELECT VALUE x FROM x IN c.a))", []),
        ("VECTORDISTANCE(c.a, [udf.f(1)]) > 0", []),
        ("UPPER(c.a) = 'X'", []),
    ],
)
def test_a_call_is_certain_if_every_row_makes_it_and_its_arguments_need_only_the_row(
    condition: str, certain: list[str]
) -> None:
    where = parse_query(f"SELECT * FROM c WHERE {condition}").where
    assert where is not None
    assert sorted(to_text(call) for call in certain_calls(where)) == certain


@pytest.mark.parametrize(
    ("text", "is_foreseen"),
    [
        ("SELECT * FROM c WHERE udf.f(c.n) = 1", True),
        ("SELECT VALUE COUNT(1) FROM c WHERE udf.f(c.n) = 1", True),
        ("SELECT DISTINCT c.n FROM c WHERE udf.f(c.n) = 1 ORDER BY c.n", True),
        ("SELECT VALUE udf.f(c.n) FROM c", True),
        ("SELECT c.n, udf.f(c.n) AS more FROM c", True),
        # The selection is evaluated only for items that pass.
        ("SELECT VALUE udf.f(c.n) FROM c WHERE c.n > 1", False),
        ("SELECT VALUE udf.f(c.n) FROM c ORDER BY c.n", False),
        ("SELECT * FROM c ORDER BY udf.f(c.n)", False),
        ("SELECT VALUE SUM(udf.f(c.n)) FROM c", False),
        # Rows that are not items, or not of every item.
        ("SELECT * FROM c.a WHERE udf.f(a.n) = 1", False),
        ("SELECT * FROM x IN c.a WHERE udf.f(x.n) = 1", False),
        ("SELECT VALUE c.n FROM c JOIN x IN c.a WHERE udf.f(c.n) = 1", False),
        ("SELECT VALUE udf.f(1)", False),
        ("SELECT * FROM c WHERE udf.f(c.n) = 1 ORDER BY RANK FullTextScore(c.n, 'x')", False),
    ],
)
def test_calls_of_these_queries_are_foreseen(text: str, is_foreseen: bool) -> None:
    assert (compiled(text, BatchFunction()).foreseen is not None) is is_foreseen


def test_calls_of_a_function_without_batches_are_not_foreseen() -> None:
    assert compiled("SELECT * FROM c WHERE udf.f(c.n) = 1", one_more).foreseen is None


# --- the same results -----------------------------------------------------------------------------------------------

_VALUES = st.sampled_from(["c.n", "c.m", "1", "2", "udf.f(c.n)", "udf.f(c.m)", "udf.f()", "udf.f(c.none)"])


def _composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    templates = [
        "({} AND {})",
        "({} OR {})",
        "({} = {})",
        "({} < {})",
        "({} + {})",
        "({} ?? {})",
        "({} IN ({}, 2))",
        "(NOT {} ? {} : 1)",
        "({} BETWEEN 1 AND {})",
        "IS_DEFINED([{}, {}][0])",
        "(udf.f({}) != {})",
        "(SELECT VALUE {} = {})",
    ]
    return st.builds(
        lambda template, left, right: template.format(left, right), st.sampled_from(templates), inner, inner
    )


_CONDITIONS = st.recursive(_VALUES, _composed, max_leaves=6)
_ITEMS = st.lists(st.fixed_dictionaries({"n": st.integers(0, 4)}, optional={"m": st.integers(0, 4)}), max_size=30)


@settings(max_examples=300)
@given(
    where=st.just("") | _CONDITIONS.map(" WHERE {}".format),
    selected=st.just("c.n") | _CONDITIONS,
    items=_ITEMS,
    calls_at_once_max=st.integers(0, 40),
    wanted=st.integers(1, 200),
)
def test_a_query_answers_and_fails_as_if_nothing_were_foreseen(
    where: str, selected: str, items: list[Item], calls_at_once_max: int, wanted: int
) -> None:
    text = f"SELECT VALUE {selected} FROM c{where}"
    expected = outcomes(compiled(text, one_more), entries_of(items))
    function = BatchFunction(calls_at_once_max=calls_at_once_max)
    assert outcomes(compiled(text, function), entries_of(items), wanted=wanted) == expected


def test_a_slice_of_items_is_one_batch_and_no_single_call() -> None:
    function = BatchFunction(lambda n: n * 2)
    query = compiled("SELECT VALUE c.n FROM c WHERE udf.f(c.n) >= 100", function)
    found = outcomes(query, entries_of([{"n": n} for n in range(128)]))
    assert function.batches == [list(range(128))]
    assert function.single_calls == []
    assert found == [[]] * 50 + [[n] for n in range(50, 128)]


def test_each_item_has_its_own_call_though_the_arguments_are_the_same() -> None:
    numbers = iter(range(100))
    query = compiled("SELECT VALUE c.n FROM c WHERE udf.f(1) % 2 = 0", BatchFunction(lambda _: next(numbers)))
    assert outcomes(query, entries_of([{"n": n} for n in range(6)])) == [[0], [], [2], [], [4], []]


def test_an_error_behind_a_false_condition_is_not_raised() -> None:
    function = BatchFunction()
    query = compiled("SELECT VALUE c.n FROM c WHERE c.n != 3 AND udf.f(c.n) > 0", function)
    assert outcomes(query, entries_of([{"n": n} for n in range(6)])) == [[0], [1], [2], [], [4], [5]]
    assert 3 not in function.single_calls


def test_a_page_with_little_room_makes_few_calls_ahead_and_more_as_it_continues() -> None:
    function = BatchFunction(lambda n: n)
    query = compiled("SELECT VALUE c.n FROM c WHERE udf.f(c.n) < 0", function)
    outcomes(query, entries_of([{"n": n} for n in range(128)]), wanted=1)
    assert [len(batch) for batch in function.batches] == [8, 16, 32, 64, 8]
    outcomes(query, entries_of([{"n": n} for n in range(128)]), wanted=1)
    assert [len(batch) for batch in function.batches[5:]] == [128]


def test_large_items_are_not_all_read_ahead() -> None:
    function = BatchFunction(lambda n: n)
    query = compiled("SELECT VALUE c.n FROM c WHERE udf.f(c.n) < 0", function)
    outcomes(query, entries_of([{"n": n, "text": "x" * 100_000} for n in range(5)]))
    assert [len(batch) for batch in function.batches] == [2, 2, 1]


def test_an_item_that_cannot_be_read_fails_when_it_is_reached() -> None:
    function = BatchFunction(lambda n: n)
    query = compiled("SELECT VALUE c.n FROM c WHERE udf.f(c.n) = 1", function)

    def item_of(body: bytes) -> Item:
        if body == b"2":
            raise MalformedRequest(reason="no item")
        return {"n": int(body)}

    assert query.foreseen is not None
    read = query.foreseen.reader([(b"", b"%d" % n) for n in range(4)], item_of, 100)
    assert [list(query.rows(read(b""))) for _ in range(2)] == [[], [1]]
    with pytest.raises(MalformedRequest, match="no item"):
        read(b"")


def test_results_for_items_that_were_not_reached_are_dropped() -> None:
    function = BatchFunction(lambda n: n)
    query = compiled("SELECT VALUE c.n FROM c WHERE udf.f(c.n) = 1", function)
    assert query.foreseen is not None
    read = query.foreseen.reader(entries_of([{"n": n} for n in range(9)]), json.loads, 100)
    first = read(b"")
    del read
    assert list(query.rows(first)) == []
    assert function.single_calls == [0]

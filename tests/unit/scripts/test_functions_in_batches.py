"""Many calls of a user-defined function in one exchange: the result of each, and the end of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.scripts import frames
from asterism.scripts.limits import ScriptLimits
from asterism.scripts.processes import BlockingHostProcess
from asterism.scripts.runtime import ScriptRuntime
from asterism.scripts.udf import BATCH_BYTES_MAX, UserFunction
from asterism.values.json.text import dumps, loads
from asterism.values.undefined import UNDEFINED
from tests.unit.scripts.dict_operations import kill_hosts
from tests.unit.scripts.test_user_functions import FAILING_CALLS, JSON_VALUES

RUNTIME = ScriptRuntime(ScriptLimits(memory_bytes_max=16 * 1024 * 1024))
# Its batches end for every reason but time, however busy the machine is.
PATIENT_RUNTIME = ScriptRuntime(ScriptLimits(udf_call_seconds=10.0))


@pytest.fixture(scope="module", autouse=True)
def _closing() -> Iterator[None]:
    yield
    RUNTIME.close()
    PATIENT_RUNTIME.close()


def compiled(body: str, runtime: ScriptRuntime = RUNTIME) -> UserFunction:
    function = runtime.compile_udf(body)
    assert isinstance(function, UserFunction)
    return function


def outcomes(text: str, function: object, items: list[dict[str, Any]]) -> list[object]:
    """Return True for each matching item, as a page of the query would, up to the first error."""
    query = compile_query(parse_query(text), {}, udfs={"f": function})  # type: ignore[dict-item]  # wrapped or not
    read: Any = loads
    entries = [(b"", dumps(item)) for item in items]
    if query.foreseen is not None:
        read = query.foreseen.reader(entries, loads, 1000)  # type: ignore[arg-type]  # items are objects
    found: list[object] = []
    try:
        for _, body in entries:
            found.append(query.matches(read(body)))
    except MalformedRequest as error:
        found.append(str(error))
    return found


@pytest.fixture
def verbs(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Record the first byte of each further message to a host."""
    sent: list[bytes] = []
    exchange = BlockingHostProcess.exchange

    def noting(self: BlockingHostProcess, payload: bytes) -> bytes:
        sent.append(payload[:1])
        return exchange(self, payload)

    monkeypatch.setattr(BlockingHostProcess, "exchange", noting)
    return sent


# Numbers that JSON cannot represent, or not exactly.
STRANGE_NUMBERS = st.sampled_from([2**64, -(2**70), 1e300, float("inf"), float("nan")])


def results_one_by_one(function: UserFunction, calls: list[tuple[object, ...]]) -> list[object]:
    results: list[object] = []
    with suppress(MalformedRequest):
        results.extend(function(*arguments) for arguments in calls)
    return results


@given(st.lists(st.lists(JSON_VALUES | STRANGE_NUMBERS | st.just(UNDEFINED), max_size=3).map(tuple), max_size=10))
def test_a_batch_returns_the_results_of_single_calls(calls: list[tuple[object, ...]]) -> None:
    function = compiled("function (a, b) { return b === undefined ? a : [b, arguments.length, a === undefined]; }")
    assert function.results_ahead(calls) == results_one_by_one(function, calls)


def test_a_slice_of_items_is_one_exchange(verbs: list[bytes]) -> None:
    function = compiled("function (n) { return n * 2; }")
    items = [{"n": number} for number in range(128)]
    verbs.clear()
    assert outcomes("SELECT * FROM c WHERE udf.f(c.n) = 84", function, items) == [n == 42 for n in range(128)]
    assert verbs == [frames.CALLS]


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        *FAILING_CALLS,
        ("throw '\\ud800';", "cannot be read"),
    ],
)
def test_a_call_that_fails_fails_in_its_turn_and_as_it_does_alone(inside: str, message: str) -> None:
    function = compiled(f"function (n) {{ if (n === 3) {{ {inside} }} return n; }}")
    items = [{"n": number} for number in range(6)]
    text = "SELECT * FROM c WHERE udf.f(c.n) = 1"
    found = outcomes(text, function, items)
    assert found == outcomes(text, lambda n: function(n), items)
    assert found[:-1] == [False, True, False]
    assert message in str(found[-1])
    # Behind a condition that is false, it is not called.
    assert outcomes("SELECT * FROM c WHERE c.n != 3 AND udf.f(c.n) = 1", function, items) == [n == 1 for n in range(6)]


def test_a_failing_call_behind_the_end_of_a_page_is_not_an_error() -> None:
    function = compiled("function (n) { if (n === 5) { while (true); } return n; }")
    query = compile_query(parse_query("SELECT * FROM c WHERE udf.f(c.n) < 9"), {}, udfs={"f": function})
    assert query.foreseen is not None
    entries = [(b"", dumps({"n": number})) for number in range(8)]
    read: Any = query.foreseen.reader(entries, loads, 3)  # type: ignore[arg-type]  # items are objects
    assert [query.matches(read(body)) for _, body in entries[:5]] == [True] * 5


def test_a_batch_ends_before_a_call_that_throws() -> None:
    function = compiled("function (n) { if (n === 3) { throw 'three'; } return n; }", PATIENT_RUNTIME)
    assert function.results_ahead([(number,) for number in range(6)]) == [0, 1, 2]


def test_a_batch_ends_when_its_calls_have_taken_long() -> None:
    body = "function (n) { var end = Date.now() + 4; while (Date.now() < end); return n; }"
    found = compiled(body).results_ahead([(number,) for number in range(100)])
    assert 0 < len(found) < 20
    assert found == list(range(len(found)))


def test_calls_that_take_long_together_are_not_stopped() -> None:
    function = compiled("function (n) { var end = Date.now() + 3; while (Date.now() < end); return n; }")
    items = [{"n": number} for number in range(40)]
    assert outcomes("SELECT * FROM c WHERE udf.f(c.n) >= 0", function, items) == [True] * 40


def test_large_arguments_go_in_several_exchanges(verbs: list[bytes]) -> None:
    function = compiled("function (text, n) { return n; }", PATIENT_RUNTIME)
    calls: list[tuple[object, ...]] = [("x" * (BATCH_BYTES_MAX // 3), number) for number in range(5)]
    verbs.clear()
    assert function.results_ahead(calls) == list(range(5))
    assert verbs == [frames.CALLS] * 3


def test_arguments_are_asked_for_and_results_kept_only_within_bounds(verbs: list[bytes]) -> None:
    function = compiled("function (text) { return text; }", PATIENT_RUNTIME)
    asked: list[int] = []

    def calls() -> Iterator[tuple[object, ...]]:
        for number in range(100):
            asked.append(number)
            yield ("x" * 100_000,)

    verbs.clear()
    assert len(function.results_ahead(calls())) == 3
    assert verbs == [frames.CALLS] * 3
    assert len(asked) <= 4


def test_large_results_end_a_batch() -> None:
    function = compiled("function (n) { return 'x'.repeat(200000) + n; }", PATIENT_RUNTIME)
    items = [{"n": number} for number in range(100)]
    assert len(function.results_ahead([(number,) for number in range(100)])) == 2
    assert outcomes("SELECT * FROM c WHERE LENGTH(udf.f(c.n)) = 200001", function, items) == [
        n < 10 for n in range(100)
    ]


def test_a_batch_that_loses_its_host_foresees_nothing_and_calls_are_made_one_by_one(verbs: list[bytes]) -> None:
    function = compiled("function (n) { return n; }")
    kill_hosts()
    items = [{"n": number} for number in range(4)]
    assert outcomes("SELECT * FROM c WHERE udf.f(c.n) = 1", function, items) == [False, True, False, False]
    assert verbs[-5:] == [frames.COMPILE, *[frames.CALL] * 4]


def test_a_function_that_changes_the_built_ins_harms_only_itself() -> None:
    body = """function (n) {
        Array.prototype.push = Array.prototype.join = null;
        Object.defineProperty(Array.prototype, 0, {set: function () { throw 'no'; }, configurable: true});
        Date.now = function () { return 'soon'; };
        return n;
    }"""
    assert compiled(body).results_ahead([(number,) for number in range(6)]) == list(range(6))

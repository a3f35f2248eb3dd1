"""User-defined functions: values in, values out, and their limits."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import MalformedRequest
from asterism.scripts.limits import ScriptLimits
from asterism.scripts.runtime import ScriptRuntime
from asterism.values.undefined import UNDEFINED
from tests.unit.scripts.dict_operations import kill_hosts

RUNTIME = ScriptRuntime(ScriptLimits(memory_bytes_max=16 * 1024 * 1024))
NAMES = st.text()
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-(2.0**53), 2.0**53) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text().filter(lambda k: k != "__proto__"), inner, max_size=4)
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module", autouse=True)
def _closing() -> Iterator[None]:
    yield
    RUNTIME.close()


@given(JSON_VALUES)
def test_any_json_value_is_returned_unchanged(value: object) -> None:
    assert RUNTIME.compile_udf("function (x) { return x; }")(value) == value


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        ("function tax(n) { return n * 0.5; }", (3,), 1.5),
        ("function (a, b) { return a + b; }", ("x", "y"), "xy"),
        ("function (a) { return typeof a; }", (UNDEFINED,), "undefined"),
        (
            "function (a, b, c) { return [a === undefined, b, arguments.length]; }",
            (UNDEFINED, 2, UNDEFINED),
            [True, 2, 3],
        ),
        ("function () { }", (), UNDEFINED),
        ("function () { return null; }", (), None),
        ("function () { return 0 / 0; }", (), None),
        ("function () { return function () {}; }", (), UNDEFINED),
        ("function () { return {a: undefined, b: [undefined]}; }", (), {"b": [None]}),
        ("function () { return 4294967296; }", (), 4294967296),
        ("x => x.length", ("é😀",), 3),
        ("function (s, p) { return s.match(p) !== null; }", ("abc", "b+"), True),
        ("function a(x) { return b(x); } function b(x) { return x + 1; }", (1,), 2),
        ("function () { return typeof getContext + typeof __; }", (), "undefinedundefined"),
    ],
)
def test_a_function_answers(body: str, arguments: tuple[object, ...], expected: object) -> None:
    assert RUNTIME.compile_udf(body)(*arguments) == expected


@pytest.mark.parametrize("body", ["function (", "5", ""])
def test_a_body_that_is_not_a_function_is_refused(body: str) -> None:
    with pytest.raises(MalformedRequest):
        RUNTIME.compile_udf(body)


# Calls that fail, and a part of the message.
FAILING_CALLS = [
    ("throw new Error('oops');", "Error: oops"),
    ("while (true);", "time limit of a call"),
    ("/(a+)+b/.test('a'.repeat(50));", "time limit of a call"),
    ("new ArrayBuffer(1e9);", "out of memory"),
    ("(function deeper() { deeper(); })();", "stack overflow"),
    ("return '\\ud800';", "JSON"),
]


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        *FAILING_CALLS,
        ("throw {toJSON: function () { while (true); }};", "time limit of a call"),
    ],
)
def test_a_call_that_fails_gives_the_reason_and_the_next_one_works(inside: str, message: str) -> None:
    function = RUNTIME.compile_udf(f"function (isBad) {{ if (isBad) {{ {inside} }} return 1; }}")
    with pytest.raises(MalformedRequest, match=message):
        function(True)
    assert function(False) == 1


def test_functions_are_compiled_again_after_their_host_ended() -> None:
    function = RUNTIME.compile_udf("function () { return 1; }")
    kill_hosts()
    with pytest.raises(MalformedRequest, match="memory limit"):
        function()
    assert function() == 1


def test_more_functions_than_one_host_holds_can_be_used() -> None:
    functions = [RUNTIME.compile_udf(f"function () {{ return {number}; }}") for number in range(120)]
    assert [function() for function in functions] == list(range(120))


def test_the_speed_of_calls_is_printed() -> None:
    function = RUNTIME.compile_udf("function (n) { return n * 2; }")
    function(1)
    began = time.perf_counter()
    results = [function(number) for number in range(5000)]
    print(f"user-defined function: {5000 / (time.perf_counter() - began):,.0f} calls/s")
    assert results[-1] == 9998

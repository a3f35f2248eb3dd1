"""The expressions of math()."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.values.math_expression import FUNCTIONS, MathExpression

NUMBERS = st.integers(0, 99).map(str) | st.floats(0, 1e6).map(lambda value: f"{value:f}")
# Only where both languages mean the same.
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-({text})"),
        st.tuples(inner, st.sampled_from(["+", "-", "*", " + ", " * "]), inner).map("".join),
    ),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("8 / 2 / 2", 2),
        ("-2 ^ 2", -4),
        ("2 ^ 3 ^ 2", 512),
        ("2 ^ -1", 0.5),
        ("--3", 3),
        ("+3", 3),
        ("-7 % 4", -3),
        ("1e3 + .5", 1000.5),
        ("ceil(1.2) + floor(1.8)", 3),
        ("sqrt 16 + 9", 5),
        ("2 * abs 1 - 5", 8),
        ("sqrt(16) + 9", 13),
        ("signum(-9) + signum(0)", -1),
        ("log(0)", -math.inf),
        ("exp(1000)", math.inf),
        ("sinh(-1000)", -math.inf),
        ("0 ^ -1", math.inf),
        ("10 ^ 400", math.inf),
        ("ceil(1e308 * 10)", math.inf),
        ("cbrt(-27)", -3),
        ("log10(100) + log2(8)", 5),
    ],
)
def test_an_expression_has_a_value(text: str, expected: float) -> None:
    assert MathExpression(text).evaluate({}) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["sqrt(-1)", "log(-1)", "acos(2)", "(-8) ^ .5", "sin(1e308 * 10)", "1e308 * 10 % 2"])
def test_a_value_outside_of_a_domain_is_no_number(text: str) -> None:
    assert math.isnan(MathExpression(text).evaluate({}))


def test_variables_come_in_the_order_of_the_text() -> None:
    expression = MathExpression("b + _ * sin(a) - b")
    assert expression.variables == ("b", "_", "a")
    assert expression.evaluate({"a": math.pi / 2, "b": 10.0, "_": 5.0}) == pytest.approx(5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a value is missing at the end"),
        ("1 +", "a value is missing at the end"),
        ("* 2", "a value is missing before"),
        ("(1", "a parenthesis is not closed"),
        ("1)", "was not opened"),
        ("()", "a value is missing before"),
        ("2a", "an operator is missing"),
        ("1 2", "an operator is missing"),
        ("1 & 2", "the character '&' means nothing, at character 3"),
        ("sin", "a value is missing at the end"),
    ],
)
def test_a_text_that_is_no_expression_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ExecutionFailure, match=reason):
        MathExpression(text)


def test_division_by_zero_is_refused() -> None:
    for text in ("1 / 0", "1 % 0"):
        with pytest.raises(ExecutionFailure, match="Division by zero"):
            MathExpression(text).evaluate({})


def test_depth_has_no_limit() -> None:
    depth = 20_000
    assert MathExpression("(" * depth + "1" + ")" * depth).evaluate({}) == 1
    assert MathExpression("-" * depth + "1").evaluate({}) == 1
    assert MathExpression("abs " * depth + "1").evaluate({}) == 1


@given(EXPRESSIONS)
def test_expressions_have_the_value_that_python_gives_them(text: str) -> None:
    expected = float(eval(text))
    assert MathExpression(text).evaluate({}) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(st.text(alphabet="ab1.+-*/%^() sin", max_size=30))
def test_any_text_is_an_expression_or_is_refused(text: str) -> None:
    try:
        expression = MathExpression(text)
        value = expression.evaluate(dict.fromkeys(expression.variables, 1.5))
    except ExecutionFailure:
        return
    assert isinstance(value, float)


@given(st.sampled_from(sorted(FUNCTIONS)), st.floats())
def test_functions_answer_every_number(name: str, value: float) -> None:
    assert isinstance(MathExpression(f"{name}(_)").evaluate({"_": value}), float)

"""The expressions of `math()`, such as `a + sin(_ * 2)`: read once into a program for a stack, then run for each value.

Reading and running take time in proportion to the text, and nothing here calls itself, so that depth has no limit. A
function without parentheses takes everything up to the end of the expression around it: `sin a + b` is `sin(a + b)`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from asterism.languages.gremlin.failure import ExecutionFailure

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)"
    r"|(?P<operator>[-+*/%^])|(?P<open>\()|(?P<close>\)))",
    re.ASCII,
)
_SPACE = re.compile(r"\s*")


def _guarded(function: Callable[[float], float]) -> Callable[[float], float]:
    """Return a function that answers as Java's where Python's raises: NaN outside of its domain, else infinity."""

    def apply(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return apply


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    guarded = _guarded(function)
    return lambda value: -math.inf if value == 0 else guarded(value)


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda value: float(function(value)) if math.isfinite(value) else value


def _hyperbolic_sine(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _sign(value: float) -> float:
    return math.copysign(1.0, value) if value != 0 and value == value else 0.0


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "acos": _guarded(math.acos),
    "asin": _guarded(math.asin),
    "atan": math.atan,
    "cbrt": math.cbrt,
    "ceil": _whole(math.ceil),
    "cos": _guarded(math.cos),
    "cosh": _guarded(math.cosh),
    "exp": _guarded(math.exp),
    "floor": _whole(math.floor),
    "log": _logarithm(math.log),
    "log10": _logarithm(math.log10),
    "log2": _logarithm(math.log2),
    "signum": _sign,
    "sin": _guarded(math.sin),
    "sinh": _hyperbolic_sine,
    "sqrt": _guarded(math.sqrt),
    "tan": _guarded(math.tan),
    "tanh": math.tanh,
}


def _divide(left: float, right: float) -> float:
    if right == 0:
        raise ExecutionFailure("Division by zero!")
    return left / right


def _remainder(left: float, right: float) -> float:
    if right == 0:
        raise ExecutionFailure("Division by zero!")
    try:
        return math.fmod(left, right)
    except ValueError:
        return math.nan


def _power(left: float, right: float) -> float:
    try:
        return math.pow(left, right)
    except ValueError:
        # A root of a negative number, or 0 to a negative power.
        return math.inf if left == 0 else math.nan
    except OverflowError:
        return -math.inf if left < 0 and right % 2 == 1 else math.inf


# Precedence, whether it binds to the right, function.
_BINARY: dict[str, tuple[int, bool, Callable[[float, float], float]]] = {
    "+": (1, False, lambda left, right: left + right),
    "-": (1, False, lambda left, right: left - right),
    "*": (2, False, lambda left, right: left * right),
    "/": (2, False, _divide),
    "%": (2, False, _remainder),
    "^": (4, True, _power),
}
# Weaker than a power, stronger than a product: -2 ^ 2 is -4.
_SIGN_PRECEDENCE = 3


# A number, a variable, or a function with the number of values that it takes from the stack.
_Instruction = float | str | tuple[int, Callable[..., float]]


@dataclass(frozen=True, slots=True)
class _Waiter:
    """An operator, a function or a parenthesis that waits for what stands behind it."""

    # 0 for a parenthesis and a function, which no operator takes from the stack.
    precedence: int
    instruction: _Instruction | None
    is_function: bool = False


_PARENTHESIS = _Waiter(0, None)


class MathExpression:
    """An expression; `variables` are its names in the order in which they come first. `_` is the current value."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._program = _Reader(text).read()
        names = (found["name"] for found in _TOKEN.finditer(text) if found["name"] is not None)
        self.variables: tuple[str, ...] = tuple(dict.fromkeys(name for name in names if name not in FUNCTIONS))

    def evaluate(self, values: Mapping[str, float]) -> float:
        """Return the result for the values of the variables."""
        stack: list[float] = []
        for instruction in self._program:
            if isinstance(instruction, float):
                stack.append(instruction)
            elif isinstance(instruction, str):
                stack.append(values[instruction])
            elif instruction[0] == 1:
                stack.append(instruction[1](stack.pop()))
            else:
                right = stack.pop()
                stack.append(instruction[1](stack.pop(), right))
        return stack.pop()


class _Reader:
    """Reads an expression: operators wait on a stack until one that binds less comes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._program: list[_Instruction] = []
        self._waiting: list[_Waiter] = []
        self._expects_value = True

    def read(self) -> list[_Instruction]:
        place, end = 0, len(self._text)
        while (place := _skip_space(self._text, place)) < end:
            found = _TOKEN.match(self._text, place)
            if found is None:
                raise self._refused(f"the character '{self._text[place]}' means nothing", place)
            self._take(found, place)
            place = found.end()
        if self._expects_value:
            raise self._refused("a value is missing at the end", end)
        while self._waiting:
            pending = self._waiting.pop()
            if pending is _PARENTHESIS:
                raise self._refused("a parenthesis is not closed", end)
            self._emit(pending)
        return self._program

    def _take(self, found: re.Match[str], place: int) -> None:
        kind = found.lastgroup
        if kind == "operator":
            self._take_operator(found["operator"], place)
        elif kind == "close":
            self._close(place)
        elif not self._expects_value:
            raise self._refused("an operator is missing", place)
        elif kind == "open":
            self._waiting.append(_PARENTHESIS)
        elif kind == "number":
            self._program.append(float(found["number"]))
            self._expects_value = False
        elif (function := FUNCTIONS.get(found["name"])) is not None:
            self._waiting.append(_Waiter(0, (1, function), is_function=True))
        else:
            self._program.append(found["name"])
            self._expects_value = False

    def _take_operator(self, operator: str, place: int) -> None:
        if self._expects_value:
            if operator not in "+-":
                raise self._refused(f"a value is missing before '{operator}'", place)
            if operator == "-":
                self._waiting.append(_Waiter(_SIGN_PRECEDENCE, (1, _negate)))
            return
        precedence, binds_right, function = _BINARY[operator]
        while self._waiting and self._waiting[-1].precedence >= precedence + binds_right:
            self._emit(self._waiting.pop())
        self._waiting.append(_Waiter(precedence, (2, function)))
        self._expects_value = True

    def _close(self, place: int) -> None:
        if self._expects_value:
            raise self._refused("a value is missing before ')'", place)
        while self._waiting:
            pending = self._waiting.pop()
            if pending is _PARENTHESIS:
                # The function in front of the parenthesis takes no more than it.
                if self._waiting and self._waiting[-1].is_function:
                    self._emit(self._waiting.pop())
                return
            self._emit(pending)
        raise self._refused("a parenthesis is closed that was not opened", place)

    def _emit(self, pending: _Waiter) -> None:
        assert pending.instruction is not None, "a parenthesis does nothing"
        self._program.append(pending.instruction)

    def _refused(self, reason: str, place: int) -> ExecutionFailure:
        return ExecutionFailure(f"math() cannot read '{self._text[:200]}': {reason}, at character {place + 1}.")


def _negate(value: float) -> float:
    return -value


def _skip_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()

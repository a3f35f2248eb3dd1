"""$regex, $mod, $expr, $jsonSchema, $sampleRate, $comment and $where: conditions that are computed."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.elements import is_truthy
from asterism.languages.mongo.filters.integers import truncated_int64
from asterism.languages.mongo.filters.match import Node, Test
from asterism.languages.mongo.filters.predicate import Predicate, Scope, bad_value
from asterism.languages.mongo.javascript import code_of, needed
from asterism.values.bson.types import Decimal128, Document, Int64, Regex

# The server refuses longer patterns.
PATTERN_BYTES_MAX = 16384
_FLAG_LETTERS = (("i", re.IGNORECASE), ("m", re.MULTILINE), ("s", re.DOTALL), ("u", re.UNICODE), ("x", re.VERBOSE))
_SPECIAL_CHARACTERS = frozenset(".^$*+?()[]{}|\\")


def flag_letters(flags: int) -> str:
    """Return the options of a regular expression in the order of BSON."""
    return "".join(letter for letter, flag in _FLAG_LETTERS if flags & flag)


def regex_test(value: Regex[Any]) -> Test:
    """Return the test whether a text matches, or a value is the same regular expression."""
    return _pattern_test(_pattern_text(value), flag_letters(value.flags))


def _pattern_text(value: Regex[Any]) -> str:
    pattern = value.pattern
    return pattern.decode("utf-8", "replace") if isinstance(pattern, bytes) else pattern


def _pattern_test(pattern: str, options: str) -> Test:
    from asterism.languages.mongo.regular_expressions import compile_regex

    if len(pattern.encode()) > PATTERN_BYTES_MAX:
        raise MongoFailure(51091, "Regular expression is invalid: pattern string is longer than the limit")
    search = compile_regex(pattern, options).search

    def test(value: Any) -> bool:
        if type(value) is str:
            return search(value) is not None
        return type(value) is Regex and _pattern_text(value) == pattern and flag_letters(value.flags) == options

    return test


def literal_prefix(pattern: str, options: str) -> str | None:
    """Return the text that every match begins with, for the planner, or None: only `^` and plain characters count."""
    if not pattern.startswith("^") or "|" in pattern or any(letter in options for letter in "imx"):
        return None
    length = 1
    while length < len(pattern) and pattern[length] not in _SPECIAL_CHARACTERS:
        length += 1
    # A quantifier belongs to the character before it, which may then be absent.
    if length < len(pattern) and pattern[length] in "*?{":
        length -= 1
    return pattern[1:length] or None


def compile_regex_value(operand: Regex[Any], _scope: Scope) -> Predicate:
    """Compile a regular expression that stands for itself, as in `{a: /^b/}`."""
    options = flag_letters(operand.flags)
    return Predicate("regex", regex_test(operand), literal_prefix(_pattern_text(operand), options))


def compile_regex_operator(operand: Any, options: Any, *, options_first: bool) -> Predicate:
    """Compile `$regex` with the `$options` beside it; None for no options."""
    if type(operand) is Regex:
        pattern, flags = _pattern_text(operand), flag_letters(operand.flags)
        if flags and options is not None:
            code = 51074 if options_first else 51075
            raise MongoFailure(code, "options set in both $regex and $options")
        options = options if options is not None else flags
    elif type(operand) is str:
        pattern = operand
    else:
        raise bad_value("$regex has to be a string")
    if "\x00" in pattern:
        raise bad_value("Regular expression cannot contain an embedded null byte")
    letters = "" if options is None else options
    for letter in letters:
        if letter not in "imsux":
            raise MongoFailure(51108, f"invalid flag in regex options: {letters}")
    letters = "".join(sorted(set(letters)))
    return Predicate("regex", _pattern_test(pattern, letters), literal_prefix(pattern, letters))


def compile_mod(operand: Any, _scope: Scope) -> Predicate:
    if type(operand) is not list:
        raise bad_value("malformed mod, needs to be an array")
    if len(operand) != 2:
        raise bad_value(f"malformed mod, {'not enough' if len(operand) < 2 else 'too many'} elements")
    divisor, remainder = _mod_argument(operand[0], "divisor"), _mod_argument(operand[1], "remainder")
    if divisor == 0:
        raise bad_value("divisor cannot be 0")

    def test(value: Any) -> bool:
        whole = truncated_int64(value)
        # The remainder has the sign of the dividend, as in C.
        return whole is not None and int(math.copysign(1, whole)) * (abs(whole) % abs(divisor)) == remainder

    return Predicate("mod", test, (divisor, remainder))


def _mod_argument(value: Any, name: str) -> int:
    if type(value) not in (int, Int64, float, Decimal128):
        raise bad_value(f"malformed mod, {name} not a number")
    whole = truncated_int64(value)
    if whole is None:
        raise bad_value(f"malformed mod, {name} value is invalid: out of range of 64-bit integers")
    return whole


def compile_expr(operand: Any, scope: Scope) -> Node:
    if not scope.is_top_level:
        raise bad_value("$expr can only be applied to the top-level document")
    if "expr" not in scope.features:
        raise MongoFailure(224, "$expr is not allowed in this context")
    evaluate, cell = scope.context.compile(operand), scope.cell
    return Node("expr", lambda document: is_truthy(evaluate(document, cell.variables)))


def compile_json_schema(operand: Any, scope: Scope) -> Node:
    if "jsonSchema" not in scope.features:
        raise MongoFailure(224, "$jsonSchema is not allowed in this context")
    from asterism.languages.mongo.filters.json_schema import compile_schema

    if type(operand) is not dict:
        raise MongoFailure(14, "$jsonSchema must be an object")
    matches: Callable[[Document], bool] = compile_schema(operand)
    return Node("jsonSchema", matches)


def compile_sample_rate(operand: Any, scope: Scope) -> Node:
    if not scope.is_top_level:
        raise bad_value("$sampleRate can only be applied to the top-level document")
    if type(operand) not in (int, Int64, float, Decimal128):
        raise bad_value("argument to $sampleRate must be a numeric type")
    rate = float(operand.to_decimal()) if type(operand) is Decimal128 else float(operand)
    if not 0 <= rate <= 1:
        raise bad_value("numeric argument to $sampleRate must be in [0, 1]")
    return Node("sampleRate", lambda _: random.random() < rate)


def compile_where(operand: Any, scope: Scope) -> Node:
    if not scope.is_top_level or "where" not in scope.features:
        raise bad_value("$where is not allowed in this context")
    if scope.where is not None:
        return Node("where", scope.where(operand))
    code = code_of(operand, "$where", wrong_type=2)
    predicate = needed(scope.context.javascript, "$where").where(code)
    return Node("where", predicate.matches, value=predicate)

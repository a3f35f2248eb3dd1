"""Operators on regular expressions: $regexMatch, $regexFind, $regexFindAll."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from asterism.languages.mongo.expressions.date_values import compile_optional
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables
from asterism.languages.mongo.expressions.text import is_absent
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.regular_expressions import CompiledRegex, Found, compile_regex
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import Regex

_BAD_PATTERN: Final = 51111
_FLAG_LETTERS: Final = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"), (re.VERBOSE, "x"))

# The work of an operator on an expression and a text; the result for a null is in its row.
Apply = Callable[[CompiledRegex, str], Any]


def _document_of(found: Found, text: str) -> dict[str, Any]:
    captures = [None if span is None else text[span[0] : span[1]] for span in found.spans]
    return {"match": text[found.start : found.end], "idx": found.start, "captures": captures}


def _find(regex: CompiledRegex, text: str) -> Any:
    found = regex.search(text)
    return None if found is None else _document_of(found, text)


def _find_all(regex: CompiledRegex, text: str) -> Any:
    return [_document_of(found, text) for found in regex.find_all(text)]


def _operator(name: str, apply: Apply, if_null: Callable[[], Any]) -> Operator:
    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        if not isinstance(specification, dict):
            found = type_name(specification)
            raise MongoFailure(51103, f"{name} expects an object of named arguments but found: {found}")
        for field_name in specification:
            if field_name not in ("input", "regex", "options"):
                raise MongoFailure(31024, f"{name} found unknown field(s): {field_name}")
        if "input" not in specification:
            raise MongoFailure(31022, f"{name} requires 'input' parameter")
        if "regex" not in specification:
            raise MongoFailure(31023, f"{name} requires 'regex' parameter")
        input_closure = context.compile(specification["input"])
        regex_closure = context.compile(specification["regex"])
        options_closure = compile_optional(specification, "options", context)

        def evaluate(document: Any, variables: Variables) -> Any:
            text = input_closure(document, variables)
            regex = _regex_of(name, regex_closure(document, variables), options_closure(document, variables))
            if not is_absent(text) and type(text) is not str:
                raise MongoFailure(51104, f"{name} needs 'input' to be of type string")
            if regex is None or is_absent(text):
                return if_null()
            return apply(regex, text)

        return evaluate

    return Operator(name, compile_call)


def _regex_of(name: str, value: Any, options: Any) -> CompiledRegex | None:
    """The expression of the arguments `regex` and `options`, or None if `regex` is null."""
    if not is_absent(value) and type(value) is not str and not isinstance(value, Regex):
        raise MongoFailure(51105, f"{name} needs 'regex' to be of type string or regex")
    if not is_absent(options) and type(options) is not str:
        raise MongoFailure(51106, f"{name} needs 'options' to be of type string")
    if is_absent(value):
        return None
    letters = "" if is_absent(options) else options
    if isinstance(value, Regex):
        pattern = value.pattern.decode("utf-8", "replace") if isinstance(value.pattern, bytes) else value.pattern
        own_letters = "".join(letter for flag, letter in _FLAG_LETTERS if value.flags & flag)
        if own_letters and not is_absent(options):
            raise MongoFailure(51107, f"{name}: found regex option(s) specified in both 'regex' and 'options' fields")
        letters = letters or own_letters
    else:
        pattern = value
    if "\0" in pattern:
        raise MongoFailure(51109, f"{name}: regular expression cannot contain an embedded null byte")
    if "\0" in letters:
        raise MongoFailure(51110, f"{name}: regular expression options cannot contain an embedded null byte")
    return compile_regex(pattern, letters, code=_BAD_PATTERN)


OPERATORS: tuple[Operator, ...] = (
    _operator("$regexMatch", lambda regex, text: regex.search(text) is not None, lambda: False),
    _operator("$regexFind", _find, lambda: None),
    _operator("$regexFindAll", _find_all, list),
)

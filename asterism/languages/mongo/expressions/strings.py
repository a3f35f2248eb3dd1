"""Operators on text: joining, splitting, trimming, replacing, letter case and length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from asterism.languages.mongo.expressions import string_positions
from asterism.languages.mongo.expressions.operator import (
    CompileContext,
    Evaluate,
    Operator,
    Variables,
    named,
    positional,
)
from asterism.languages.mongo.expressions.text import byte_length, checked, is_absent, text_of
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name

# Trimmed if the operator is not told: the white space of Unicode as of its version 4, and NUL.
_WHITE_SPACE: Final = "\0\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))

# Letter case is changed for the letters of ASCII only, as by the reference server.
_TO_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_TO_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def to_lower(value: Any) -> str:
    return checked(text_of(value).translate(_TO_LOWER))


def to_upper(value: Any) -> str:
    return checked(text_of(value).translate(_TO_UPPER))


def compare_without_case(left: Any, right: Any) -> int:
    left_bytes = to_upper(left).encode("utf-8", "surrogatepass")
    right_bytes = to_upper(right).encode("utf-8", "surrogatepass")
    return (left_bytes > right_bytes) - (left_bytes < right_bytes)


def concatenate(*values: Any) -> str | None:
    for value in values:
        if is_absent(value):
            return None
        if type(value) is not str:
            raise MongoFailure(16702, f"$concat only supports strings, not {type_name(value)}")
    return checked("".join(values))


def split(text: Any, separator: Any) -> list[str] | None:
    if is_absent(text) or is_absent(separator):
        return None
    if type(text) is not str:
        raise MongoFailure(40085, f"$split requires an expression that evaluates to a string, found {type_name(text)}")
    if type(separator) is not str:
        raise MongoFailure(10503900, f"$split requires a string as a separator, found {type_name(separator)}")
    if separator == "":
        raise MongoFailure(40087, "$split requires a non-empty separator")
    parts: list[str] = text.split(separator)
    return parts


def _length_in_bytes(value: Any) -> int:
    if type(value) is not str:
        raise MongoFailure(34473, f"$strLenBytes requires a string argument, found: {type_name(value)}")
    return byte_length(value)


def _length_in_code_points(value: Any) -> int:
    if type(value) is not str:
        raise MongoFailure(34471, f"$strLenCP requires a string argument, found: {type_name(value)}")
    return len(value)


def _trim(name: str, strip: Callable[[str, str], str]) -> Operator:
    def compile_fields(fields: dict[str, Any], context: CompileContext) -> Evaluate:
        text_closure = context.compile(fields["input"])
        characters_closure = context.compile(fields["chars"]) if "chars" in fields else None

        def evaluate(document: Any, variables: Variables) -> Any:
            text = text_closure(document, variables)
            characters = characters_closure(document, variables) if characters_closure else _WHITE_SPACE
            if is_absent(text):
                return None
            if type(text) is not str:
                raise MongoFailure(50699, f"{name} requires its input to be a string, got {type_name(text)}")
            if is_absent(characters):
                return None
            if type(characters) is not str:
                raise MongoFailure(50700, f"{name} requires 'chars' to be a string, got {type_name(characters)}")
            # Python takes no characters for all white space.
            return strip(text, characters) if characters else text

        return evaluate

    return named(
        name,
        compile_fields,
        required=("input",),
        optional=("chars",),
        not_an_object=50696,
        unknown_field=50694,
        missing_field=50695,
    )


# The arguments of $replaceOne and $replaceAll in the order they are checked, with the codes for another type and for
# an argument that is not there.
_REPLACE_ARGUMENTS: Final = (("input", 10503904, 51749), ("find", 10503901, 51748), ("replacement", 10503902, 51747))


def _replace(name: str, most: int) -> Operator:
    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        if not isinstance(specification, dict):
            raise MongoFailure(51751, f"{name} requires an object as an argument, found: {type_name(specification)}")
        for field_name in specification:
            if field_name not in ("input", "find", "replacement"):
                raise MongoFailure(51750, f"{name} found an unknown argument: {field_name}")
        for field_name, _, missing in _REPLACE_ARGUMENTS:
            if field_name not in specification:
                raise MongoFailure(missing, f"{name} requires '{field_name}' to be specified")
        closures = [context.compile(specification[field_name]) for field_name, _, _ in _REPLACE_ARGUMENTS]

        def evaluate(document: Any, variables: Variables) -> Any:
            values = [closure(document, variables) for closure in closures]
            for value, (field_name, wrong_type, _) in zip(values, _REPLACE_ARGUMENTS, strict=True):
                if not is_absent(value) and type(value) is not str:
                    raise MongoFailure(
                        wrong_type, f"{name} requires that '{field_name}' be a string, found: {type_name(value)}"
                    )
            if any(is_absent(value) for value in values):
                return None
            text, find, replacement = values
            return checked(text.replace(find, replacement, most))

        return evaluate

    return Operator(name, compile_call)


OPERATORS: tuple[Operator, ...] = (
    positional("$concat", concatenate, 0, None),
    positional("$split", split, 2, 2),
    positional("$strcasecmp", compare_without_case, 2, 2),
    positional("$strLenBytes", _length_in_bytes, 1, 1),
    positional("$strLenCP", _length_in_code_points, 1, 1),
    positional("$toLower", to_lower, 1, 1),
    positional("$toUpper", to_upper, 1, 1),
    _trim("$trim", str.strip),
    _trim("$ltrim", str.lstrip),
    _trim("$rtrim", str.rstrip),
    _replace("$replaceOne", 1),
    _replace("$replaceAll", -1),
    *string_positions.OPERATORS,
)

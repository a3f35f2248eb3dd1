"""Operators on the types of values: $convert, $toInt and its kin, $type, $isNumber."""

from __future__ import annotations

from typing import Any, Final

from asterism.languages.mongo.expressions.binary_texts import FORMATS
from asterism.languages.mongo.expressions.conversions import (
    CONVERSION_FAILURE,
    DEFAULT_OPTIONS,
    Options,
    convert,
)
from asterism.languages.mongo.expressions.date_values import compile_optional
from asterism.languages.mongo.expressions.operator import (
    CompileContext,
    Evaluate,
    Operator,
    Variables,
    named,
    positional,
)
from asterism.languages.mongo.expressions.string_positions import whole_number
from asterism.languages.mongo.expressions.text import is_absent
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import NAMES_TO_NUMBERS, is_number, type_name

_BAD_VALUE: Final = 2
_FAILED_TO_PARSE: Final = 9
_WRONG_COUNT: Final = 50723
_YEAR_NOT_PRINTABLE: Final = 18537
# Subtypes 0 to 9 have a meaning, and from 128 on they are the user's.
_SUBTYPES: Final = frozenset({*range(10), *range(128, 256)})
_NAMES_BY_NUMBER: Final = {number: name for name, number in NAMES_TO_NUMBERS.items()} | {0: "missing"}


def _target_of(value: Any) -> str:
    """The name of the type that `to` says, as a name or as a number."""
    if type(value) is str:
        if value not in NAMES_TO_NUMBERS and value != "missing":
            raise MongoFailure(_BAD_VALUE, f"Unknown type name: {value}")
        return value
    if not is_number(value):
        raise MongoFailure(_FAILED_TO_PARSE, "$convert's 'to' argument must be a string or number")
    number = whole_number(value)
    name = None if number is None else _NAMES_BY_NUMBER.get(number)
    if name is None:
        raise MongoFailure(_FAILED_TO_PARSE, "In $convert, numeric value for 'to' does not correspond to a BSON type")
    return name


def _subtype_of(value: Any) -> int:
    if not is_number(value):
        raise MongoFailure(4341108, f"In $convert, numeric 'subtype' argument must be a number, not {type_name(value)}")
    number = whole_number(value)
    if number is None:
        raise MongoFailure(4341106, "In $convert, numeric 'subtype' argument is not an integer")
    if number not in _SUBTYPES:
        raise MongoFailure(4341107, f"In $convert, numeric value for 'subtype' does not correspond to one: {number}")
    return number


def _format_of(value: Any) -> str | None:
    if is_absent(value):
        return None
    if type(value) is not str:
        raise MongoFailure(4341114, f"$convert requires that 'format' be a string, found: {type_name(value)}")
    if value not in FORMATS:
        raise MongoFailure(4341125, f"Invalid 'format' argument for $convert: {value}")
    return value


def _byte_order_of(value: Any) -> str:
    if is_absent(value):
        return "little"
    if type(value) is not str:
        raise MongoFailure(9130001, f"$convert requires that 'byteOrder' be a string, found: {type_name(value)}")
    if value not in ("little", "big"):
        raise MongoFailure(9130002, f"Invalid 'byteOrder' argument for $convert: {value}")
    return value


def _target_and_subtype(to: Any) -> tuple[str, int]:
    if not isinstance(to, dict):
        return _target_of(to), 0
    if is_absent(to.get("type")):
        raise MongoFailure(_FAILED_TO_PARSE, "$convert's 'to' argument must be an object with a 'type'")
    return _target_of(to["type"]), _subtype_of(to["subtype"]) if "subtype" in to else 0


def _compile_convert(fields: dict[str, Any], context: CompileContext) -> Evaluate:
    input_closure = context.compile(fields["input"])
    to_closure = context.compile(fields["to"])
    format_closure = compile_optional(fields, "format", context)
    order_closure = compile_optional(fields, "byteOrder", context)
    null_closure = compile_optional(fields, "onNull", context)
    error_closure = context.compile(fields["onError"]) if "onError" in fields else None

    def evaluate(document: Any, variables: Variables) -> Any:
        value = input_closure(document, variables)
        to = to_closure(document, variables)
        if is_absent(value):
            return null_closure(document, variables)
        if is_absent(to):
            return None
        target, subtype = _target_and_subtype(to)
        options = Options(
            subtype=subtype,
            format=_format_of(format_closure(document, variables)),
            byte_order=_byte_order_of(order_closure(document, variables)),
        )
        try:
            return convert(value, target, options)
        except MongoFailure as failure:
            if error_closure is None or failure.code not in (CONVERSION_FAILURE, _YEAR_NOT_PRINTABLE):
                raise
            return error_closure(document, variables)

    return evaluate


def _conversion_to(name: str, target: str, options: Options = DEFAULT_OPTIONS) -> Operator:
    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        arguments = specification if isinstance(specification, list) else [specification]
        if len(arguments) != 1:
            raise MongoFailure(_WRONG_COUNT, f"{name} requires a single argument, got {len(arguments)}")
        closure = context.compile(arguments[0])

        def evaluate(document: Any, variables: Variables) -> Any:
            value = closure(document, variables)
            return None if is_absent(value) else convert(value, target, options)

        return evaluate

    return Operator(name, compile_call)


OPERATORS: tuple[Operator, ...] = (
    named(
        "$convert",
        _compile_convert,
        required=("input", "to"),
        optional=("format", "byteOrder", "onError", "onNull"),
        not_an_object=_FAILED_TO_PARSE,
        unknown_field=_FAILED_TO_PARSE,
        missing_field=_FAILED_TO_PARSE,
    ),
    _conversion_to("$toBool", "bool"),
    _conversion_to("$toDate", "date"),
    _conversion_to("$toDecimal", "decimal"),
    _conversion_to("$toDouble", "double"),
    _conversion_to("$toInt", "int"),
    _conversion_to("$toLong", "long"),
    _conversion_to("$toObjectId", "objectId"),
    _conversion_to("$toString", "string", Options(format="auto")),
    _conversion_to("$toUUID", "binData", Options(subtype=4, format="uuid")),
    positional("$type", type_name, 1, 1),
    positional("$isNumber", is_number, 1, 1),
)

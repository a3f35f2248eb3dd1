"""Operators on documents and names: fields, merging, variables of `$let`, literals."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.expressions.constants import Constant, FailedConstant, is_nullish
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables, named
from asterism.languages.mongo.expressions.variables import check_bindable
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import MISSING

EXPECTED_OBJECT = 10065


def _compile_literal(specification: Any, context: CompileContext) -> Evaluate:
    return Constant(specification)


def _compile_let(fields: dict[str, Any], context: CompileContext) -> Evaluate:
    variables_specification = fields["vars"]
    if isinstance(variables_specification, list):
        # An array is a document with the names 0, 1, ..., and these are no names for variables.
        variables_specification = {str(index): value for index, value in enumerate(variables_specification)}
    if not isinstance(variables_specification, dict):
        raise MongoFailure(
            EXPECTED_OBJECT, f"invalid parameter: expected an object (vars), found {type_name(fields['vars'])}"
        )
    closures: list[tuple[str, Evaluate]] = []
    for name, value in variables_specification.items():
        check_bindable(name)
        closures.append((name, context.compile(value)))
    body = context.with_variables(*variables_specification).compile(fields["in"])

    def evaluate(document: Any, variables: Variables) -> Any:
        scope = dict(variables)
        for name, closure in closures:
            scope[name] = closure(document, variables)
        return body(document, scope)

    return evaluate


def _compile_merge_objects(specification: Any, context: CompileContext) -> Evaluate:
    arguments = specification if isinstance(specification, list) else [specification]
    closures = [context.compile(argument) for argument in arguments]

    def evaluate(document: Any, variables: Variables) -> Any:
        values = [closure(document, variables) for closure in closures]
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        return merge_objects(values)

    return evaluate


def merge_objects(values: list[Any]) -> dict[str, Any]:
    """Return one document with the fields of all; null and missing ones count as empty."""
    result: dict[str, Any] = {}
    for value in values:
        if is_nullish(value):
            continue
        if not isinstance(value, dict):
            raise MongoFailure(40400, f"$mergeObjects requires object inputs, but input is of type {type_name(value)}")
        result.update(value)
    return result


def _constant_name(operator: str, specification: Any, context: CompileContext) -> str:
    """Return the name of a field to set, which must be written out."""
    closure = context.compile(specification)
    if type(specification) is str and specification.startswith("$"):
        raise MongoFailure(4161108, f"'{specification}' is a field path reference which is not allowed in {operator}")
    is_literal = isinstance(specification, dict) and next(iter(specification), "$literal") in ("$literal", "$const")
    if isinstance(specification, dict | list) and not is_literal:
        raise MongoFailure(4161106, f"{operator} requires 'field' to evaluate to a constant")
    name = closure.value if type(closure) is Constant else None
    if type(name) is not str:
        raise MongoFailure(4161107, f"{operator} requires 'field' to evaluate to type String, got {type_name(name)}")
    if "\0" in name:
        raise MongoFailure(9534700, f"{operator} requires 'field' to have no null characters")
    return name


def _setter(operator: str, *, has_value: bool) -> Operator:
    def compile_fields(fields: dict[str, Any], context: CompileContext) -> Evaluate:
        read_input = context.compile(fields["input"])
        read_value = context.compile(fields["value"]) if has_value else Constant(MISSING)
        name = _constant_name(operator, fields["field"], context)

        def evaluate(document: Any, variables: Variables) -> Any:
            value = read_value(document, variables)
            target = read_input(document, variables)
            if is_nullish(target):
                return None
            if not isinstance(target, dict):
                raise MongoFailure(
                    4161105, f"{operator} requires 'input' to evaluate to type Object, got {type_name(target)}"
                )
            result = dict(target)
            if value is MISSING:
                result.pop(name, None)
            else:
                result[name] = value
            return result

        return evaluate

    return named(
        operator,
        compile_fields,
        required=("field", "value", "input") if has_value else ("field", "input"),
        not_an_object=4161100,
        unknown_field=4161101,
        missing_field={"field": 4161102, "value": 4161103, "input": 4161109},
    )


def _compile_get_field(specification: Any, context: CompileContext) -> Evaluate:
    fields: dict[str, Any] = {"field": specification, "input": "$$CURRENT"}
    if isinstance(specification, dict) and not next(iter(specification), "").startswith("$"):
        for name in specification:
            if name not in fields:
                raise MongoFailure(3041701, f"$getField found an unknown argument: {name}")
        if "field" not in specification:
            raise MongoFailure(3041702, "$getField requires 'field' to be specified")
        if "input" not in specification:
            raise MongoFailure(3041703, "$getField requires 'input' to be specified")
        fields = specification
    read_name, read_input = context.compile(fields["field"]), context.compile(fields["input"])
    if type(read_name) is FailedConstant:
        return read_name
    if type(read_name) is Constant:
        _check_name(read_name.value)

    def evaluate(document: Any, variables: Variables) -> Any:
        name = read_name(document, variables)
        _check_name(name)
        source = read_input(document, variables)
        if isinstance(source, dict):
            return source.get(name, MISSING)
        return None if source is None else MISSING

    return evaluate


def _check_name(name: Any) -> None:
    if type(name) is not str:
        raise MongoFailure(3041704, f"$getField requires 'field' to evaluate to type String, but got {type_name(name)}")


OPERATORS: tuple[Operator, ...] = (
    Operator("$literal", _compile_literal),
    Operator("$const", _compile_literal),
    named(
        "$let",
        _compile_let,
        required=("vars", "in"),
        not_an_object=16874,
        unknown_field=16875,
        missing_field={"vars": 16876, "in": 16877},
    ),
    Operator("$mergeObjects", _compile_merge_objects),
    _setter("$setField", has_value=True),
    _setter("$unsetField", has_value=False),
    Operator("$getField", _compile_get_field),
)

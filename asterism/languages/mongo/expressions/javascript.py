"""$function: a function of JavaScript over the values of its arguments."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables, named
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.javascript import code_of, needed
from asterism.values.bson.types import MISSING


def _compile_function(specification: dict[str, Any], context: CompileContext) -> Evaluate:
    if specification["lang"] != "js":
        raise MongoFailure(4660804, "The only supported language specifier is 'js'.")
    if type(specification["args"]) is not list:
        raise MongoFailure(4660803, "The args field of $function must be an array")
    body = code_of(specification["body"], "The body function of $function", wrong_type=4660802)
    call = needed(context.javascript, "$function").function(body)
    arguments = [context.compile(argument) for argument in specification["args"]]

    def evaluate(document: Any, variables: Variables) -> Any:
        values = [argument(document, variables) for argument in arguments]
        return call(*(None if value is MISSING else value for value in values))

    return evaluate


OPERATORS: tuple[Operator, ...] = (
    named(
        "$function",
        _compile_function,
        required=("body", "args", "lang"),
        not_an_object=4660800,
        unknown_field=4660801,
        missing_field={"body": 4660802, "args": 4660803, "lang": 4660804},
    )._replace(is_pure=False),
)

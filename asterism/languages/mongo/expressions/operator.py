"""An operator of the expression language as a row of a table: its name, its arguments, the function that computes it.

An expression is compiled once, into closures, and evaluated for many documents. `Evaluate` takes the document (what
`$$ROOT` and `$$CURRENT` mean) and the variables that are in scope, and returns a value, or MISSING.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.javascript import Interpreter
from asterism.values.bson.types import DatetimeMS, Missing, Timestamp

Variables = dict[str, Any]
Evaluate = Callable[[Any, Variables], Any]


@dataclass(frozen=True, slots=True)
class CompileContext:
    """Everything that an expression may refer to beside the document."""

    # Returns the closure of an expression: `compile.compile_expression`, passed so that operators need not import it.
    compile_with: Callable[[Any, CompileContext], Evaluate]
    now: DatetimeMS
    cluster_time: Timestamp
    # Sort keys of text under the collation of the command; None for the order of bytes.
    collate: Callable[[str], bytes] | None = None
    # Names of variables in scope, without `$$`.
    variables: frozenset[str] = field(default=frozenset())
    # None where scripts are not allowed, such as in the rules of an index.
    javascript: Interpreter | None = None

    def compile(self, specification: Any) -> Evaluate:
        return self.compile_with(specification, self)

    def with_variables(self, *names: str) -> CompileContext:
        return replace(self, variables=self.variables | frozenset(names))

    def only_variables(self, names: frozenset[str]) -> CompileContext:
        return replace(self, variables=names)


class Operator(NamedTuple):
    name: str
    # Called with what stands behind the operator's name; raises MongoFailure for arguments that cannot be right.
    compile: Callable[[Any, CompileContext], Evaluate]
    # True if equal arguments give equal results, so that constant arguments can be computed when compiling.
    is_pure: bool = True
    # True if `compile` looks after constants itself, such as `$switch`, which ignores failures of unreachable parts.
    folds_itself: bool = False


def positional(
    name: str, function: Callable[..., Any], least: int, most: int | None, *, null_if_null: bool = False
) -> Operator:
    """An operator of `least` to `most` arguments in an array; a single argument may stand without it. `function` gets
    the values. With `null_if_null` the result is null as soon as an argument is null or missing."""

    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        arguments = specification if isinstance(specification, list) else [specification]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            raise _wrong_count(name, least, most, len(arguments))
        closures = [context.compile(argument) for argument in arguments]
        if len(closures) == 1:
            only = closures[0]
            if not null_if_null:
                return lambda document, variables: function(only(document, variables))

            def evaluate_one(document: Any, variables: Variables) -> Any:
                value = only(document, variables)
                return None if value is None or type(value) is Missing else function(value)

            return evaluate_one

        def evaluate(document: Any, variables: Variables) -> Any:
            values = [closure(document, variables) for closure in closures]
            if null_if_null:
                for value in values:
                    if value is None or type(value) is Missing:
                        return None
            return function(*values)

        return evaluate

    return Operator(name, compile_call)


def _wrong_count(name: str, least: int, most: int | None, given: int) -> MongoFailure:
    if least == most:
        plural = "" if least == 1 else "s"
        return MongoFailure(16020, f"Expression {name} takes exactly {least} argument{plural}. {given} were passed in.")
    if most is None:
        return MongoFailure(28667, f"Expression {name} takes at least {least} arguments. {given} were passed in.")
    return MongoFailure(
        28667, f"Expression {name} takes at least {least} arguments, and at most {most}, but {given} were passed in."
    )


def named(
    name: str,
    compile_fields: Callable[[dict[str, Any], CompileContext], Evaluate],
    *,
    required: tuple[str, ...],
    optional: tuple[str, ...] = (),
    not_an_object: int,
    unknown_field: int,
    missing_field: int | Mapping[str, int],
) -> Operator:
    """An operator whose arguments have names. `compile_fields` gets the specification, whose fields are known to be
    allowed and complete; the codes answer one that is not so, that for a missing field either for all or by name."""

    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        if not isinstance(specification, dict):
            raise MongoFailure(not_an_object, f"{name} requires an object as an argument")
        for field_name in specification:
            if field_name not in required and field_name not in optional:
                raise MongoFailure(unknown_field, f"{name} found an unknown argument: {field_name}")
        for field_name in required:
            if field_name not in specification:
                code = missing_field if isinstance(missing_field, int) else missing_field[field_name]
                raise MongoFailure(code, f"{name} requires '{field_name}'")
        return compile_fields(specification, context)

    return Operator(name, compile_call)

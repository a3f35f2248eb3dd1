"""Variables of a command: `let`, computed once before the first document is read, and constants of an update."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.expressions.compile import compile_expression, new_context
from asterism.languages.mongo.expressions.operator import CompileContext, Variables
from asterism.languages.mongo.expressions.variables import check_bindable
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.javascript import Interpreter
from asterism.values.bson.order import Collate
from asterism.values.bson.types import DatetimeMS, Document, Timestamp

_OF_THE_SYSTEM = frozenset({"NOW", "CLUSTER_TIME", "JS_SCOPE", "IS_MR", "USER_ROLES"})
# Variables of the system that a document is needed for.
_OF_DOCUMENTS = frozenset({"ROOT", "CURRENT"})


def compute_variables(let: Document | None, context: CompileContext) -> Variables:
    """Return the values of `let`; each expression may use the variables before it, and no document."""
    values: Variables = {}
    for name, specification in (let or {}).items():
        if name in _OF_THE_SYSTEM:
            raise MongoFailure(4738901, f"The name of a variable of the system cannot be used: {name}")
        check_bindable(name)
        _refuse_documents(specification)
        evaluate = compile_expression(specification, context.with_variables(*values))
        values[name] = evaluate({}, values)
    return values


def _refuse_documents(specification: Any) -> None:
    if isinstance(specification, str):
        if specification.startswith("$$"):
            name = specification[2:].partition(".")[0]
            if name in _OF_THE_SYSTEM:
                raise MongoFailure(51144, f"The variable {name} is not available in the expressions of let")
            if name in _OF_DOCUMENTS:
                raise _touches_a_document()
        elif specification.startswith("$"):
            raise _touches_a_document()
    elif isinstance(specification, list):
        for element in specification:
            _refuse_documents(element)
    elif isinstance(specification, dict):
        for name, value in specification.items():
            if name != "$literal":
                _refuse_documents(value)


def _touches_a_document() -> MongoFailure:
    return MongoFailure(
        4890500,
        "Command let Expression tried to access a field, but this is not allowed because command let expressions run "
        "before the query examines any documents.",
    )


class CommandScope:
    """The part that all expressions of one command share: the moment, the collation, and the variables."""

    __slots__ = ("cluster_time", "collate", "context", "now", "variables")

    def __init__(
        self,
        now: DatetimeMS,
        cluster_time: Timestamp,
        *,
        collate: Collate | None = None,
        let: Document | None = None,
        constants: Document | None = None,
        javascript: Interpreter | None = None,
    ) -> None:
        """`constants` are values as they are, and come before those of `let`."""
        self.now = now
        self.cluster_time = cluster_time
        self.collate = collate
        context = new_context(now, cluster_time, collate, javascript=javascript)
        self.variables: Variables = compute_variables(let, context) if let else {}
        if constants:
            for name in constants:
                check_bindable(name)
            self.variables = {**self.variables, **constants}
        self.context = context.with_variables(*self.variables) if self.variables else context

    def with_collation(self, collate: Collate | None) -> CommandScope:
        """Return the same scope under another collation."""
        if collate is self.collate:
            return self
        scope = CommandScope(self.now, self.cluster_time, collate=collate, javascript=self.context.javascript)
        return scope.with_values(self.variables)

    def with_values(self, variables: Variables) -> CommandScope:
        """Return the scope with further variables."""
        if not variables:
            return self
        scope = CommandScope(self.now, self.cluster_time, collate=self.collate, javascript=self.context.javascript)
        scope.variables = {**self.variables, **variables}
        scope.context = scope.context.with_variables(*scope.variables)
        return scope

    @classmethod
    def of(cls, context: CompileContext, variables: Variables) -> CommandScope:
        """Return the scope of a sub-pipeline, which was compiled in a context of its own."""
        scope = cls(context.now, context.cluster_time, collate=context.collate)
        scope.variables = variables
        scope.context = context
        return scope

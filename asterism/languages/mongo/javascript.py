"""JavaScript in filters and pipelines, as the language sees it: functions over values of BSON.

The door gives the language an interpreter, and runs what may call it so that other requests proceed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document

_OPERATORS: Final = frozenset({"$function", "$accumulator", "$where"})


class WherePredicate(Protocol):
    """The condition of `$where`, compiled."""

    def matches(self, document: Document) -> bool: ...

    def foresee(self, documents: Sequence[Document]) -> None:
        """Decide about documents that will be asked for next, many at once."""


class Interpreter(Protocol):
    """Compiles JavaScript. Everything raises MongoFailure: 139 for a script that fails, 50 for one that takes long."""

    def where(self, code: str) -> WherePredicate: ...

    def function(self, body: str) -> Callable[..., Any]: ...


def runs_javascript(specification: Any) -> bool:
    """Return whether a filter, an expression or a stage may call the interpreter."""
    if type(specification) is dict:
        return any(name in _OPERATORS or runs_javascript(value) for name, value in specification.items())
    return type(specification) is list and any(map(runs_javascript, specification))


def needed(interpreter: Interpreter | None, name: str) -> Interpreter:
    if interpreter is None:
        raise MongoFailure(2, f"{name} is not allowed in this context")
    return interpreter


def code_of(value: Any, name: str, *, wrong_type: int) -> str:
    """Return the text of a function, which may be a string or code."""
    if not isinstance(value, str):
        raise MongoFailure(wrong_type, f"{name} must be a string or code")
    return str(value)

"""Variables of expressions: `$$name`. The system's own are written in capitals, those of `$let` are not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.constants import Constant
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Variables
from asterism.languages.mongo.expressions.paths import Read, compile_read, split_path
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import MISSING

FAILED_TO_PARSE = 9
# A name that may be bound begins with a lower-case letter; one that may be read also with an upper-case letter. Any
# character beyond ASCII counts as a letter.
_BINDABLE = re.compile(r"[a-z\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*\Z")
_READABLE = re.compile(r"[A-Za-z\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*\Z")


class Redaction:
    """A decision of `$redact`: what `$$DESCEND`, `$$PRUNE` and `$$KEEP` stand for. Compared with `is`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"$${self.name}"


DESCEND = Redaction("descend")
PRUNE = Redaction("prune")
KEEP = Redaction("keep")

# Variables with one value for the whole command.
_CONSTANTS: dict[str, Callable[[CompileContext], Any]] = {
    "NOW": lambda context: context.now,
    "CLUSTER_TIME": lambda context: context.cluster_time,
    "REMOVE": lambda context: MISSING,
    "USER_ROLES": lambda context: [],
}
# `$redact` binds these, as `with_variables("DESCEND", "PRUNE", "KEEP")`; outside of it they are the texts that they
# stand for in the reference server.
_REDACTIONS = {"DESCEND": DESCEND, "PRUNE": PRUNE, "KEEP": KEEP}


def check_bindable(name: str) -> None:
    """Refuse a name that a user cannot give to a variable."""
    if name == "CURRENT" or _BINDABLE.match(name):
        return
    if not name:
        raise MongoFailure(FAILED_TO_PARSE, "empty variable names are not allowed")
    raise MongoFailure(
        FAILED_TO_PARSE, f"'{name}' starts with or contains an invalid character for a user variable name"
    )


def compile_path(text: str, context: CompileContext) -> Evaluate:
    """Return the closure of a text that begins with `$`: a path into the document or into a variable."""
    if text == "$":
        raise MongoFailure(16872, "'$' by itself is not a valid FieldPath")
    if "\0" in text:
        raise MongoFailure(16419, "field path must not contain embedded null characters")
    if text[1] == "$":
        return _compile_variable(text[2:], context)
    read = compile_read(split_path(text[1:]))
    if "CURRENT" in context.variables:
        return _read_variable("CURRENT", read)
    return lambda document, variables: read(document)


def _compile_variable(path: str, context: CompileContext) -> Evaluate:
    name, dot, rest = path.partition(".")
    if not _READABLE.match(name):
        raise MongoFailure(FAILED_TO_PARSE, f"'{name}' is not a valid name of a variable")
    if name not in context.variables and name not in ("ROOT", "CURRENT", *_CONSTANTS, *_REDACTIONS):
        raise MongoFailure(17276, f"Use of undefined variable: {name}")
    read = compile_read(split_path(rest) if dot and rest else _no_trailing_dot(path))
    if name in context.variables:
        return _read_variable(name, read)
    if name in _CONSTANTS:
        return Constant(read(_CONSTANTS[name](context)))
    if name in _REDACTIONS:
        return Constant(read(_REDACTIONS[name]))
    return lambda document, variables: read(document)


def _no_trailing_dot(path: str) -> tuple[str, ...]:
    if path.endswith("."):
        raise MongoFailure(40353, f"FieldPath must not end with a '.'. Path was '{path}'")
    return ()


def _read_variable(name: str, read: Read) -> Evaluate:
    def evaluate(document: Any, variables: Variables) -> Any:
        return read(variables.get(name, MISSING))

    return evaluate

"""Scope.local and Scope.global among the arguments of calls."""

from __future__ import annotations

from typing import Any

from asterism.languages.gremlin.plan.calls import StepCall
from asterism.languages.gremlin.tree import Token


def is_local(call: StepCall) -> bool:
    """Return whether the first argument is Scope.local."""
    first = call.arguments[0] if call.arguments else None
    return isinstance(first, Token) and first.kind == "Scope" and first.name == "local"


def without_scope(call: StepCall) -> tuple[Any, ...]:
    """Return the arguments behind a Scope, or all of them."""
    first = call.arguments[0] if call.arguments else None
    return call.arguments[1:] if isinstance(first, Token) and first.kind == "Scope" else call.arguments

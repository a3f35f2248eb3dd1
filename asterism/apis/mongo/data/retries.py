"""Retryable writes: the token that a statement is carried out with, so that it is not carried out twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from asterism.models.collections.results import Change, RetryToken
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call


def retry_token(
    call: Call, statement: int = 0, outcome: Callable[[Sequence[Change]], Document] | None = None
) -> RetryToken | None:
    """Return the token of a statement; None for a write that is not retryable, or is part of a transaction."""
    if call.session is None or call.transaction_number is None or call.unit is not None:
        return None
    token = RetryToken(call.session, call.transaction_number, statement_id(call, statement))
    if outcome is not None:
        token.outcome = outcome
    token.before_write = lambda: _before_write(call)
    return token


def _before_write(call: Call) -> None:
    if call.context.fail_points is not None:
        call.context.fail_points.before_write(call)
    call.has_written = True


def statement_id(call: Call, index: int) -> int:
    """Return the number of a statement: as the client gave it, or its place in the command."""
    numbers = call.field("stmtIds")
    if isinstance(numbers, list) and index < len(numbers) and isinstance(numbers[index], int):
        return int(numbers[index])
    first = call.field("stmtId")
    return (int(first) if isinstance(first, int) else 0) + index

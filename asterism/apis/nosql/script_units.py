"""A script's unit of work: run on one moment of one logical partition and written as one batch; again if overtaken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote

from asterism.apis.http import HeaderList
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.errors import Refusal
from asterism.apis.nosql.script_operations import UnitOperations
from asterism.documents.container import Container
from asterism.documents.transaction import Transaction
from asterism.errors import TooMuchContention
from asterism.partitioning.partition_key import PartitionKey
from asterism.scripts.results import ScriptFailed
from asterism.storage.contract import ExpectationFailed

_Result = TypeVar("_Result")

# A run may take seconds, so a script that is overtaken this often is better given back to its client. A short one, that
# writers in other processes overtake, has this long.
ATTEMPTS_MAX: Final = 10
ATTEMPTS_SECONDS: Final = 3.0
# Behind the gate the first attempt may still meet writes that were let in before.
_ATTEMPTS_BEHIND_GATE: Final = 3

_CODES: Final = {400: "BadRequest", 408: "RequestTimeout", 413: "RequestEntityTooLarge", 503: "ServiceUnavailable"}
# Errors of a script are numbered as the protocol's statuses are; other numbers mean something else to clients.
_TOLD_NUMBERS: Final = range(400, 600)


class Settled(NamedTuple):
    """Where a unit of work was written, or was found to change nothing."""

    range_id: int
    lsn: int
    charge: float


async def run_unit(
    context: Context,
    container: Container,
    key: PartitionKey,
    act: Callable[[Transaction, UnitOperations], Awaitable[_Result | ScriptFailed]],
) -> tuple[_Result | ScriptFailed, Settled]:
    """`act`, and what it did written in one batch: nothing of it after a failure, which is paid for all the same."""
    place = container.record.rid + container.planner.point(key)
    try:
        async with context.script_turns.turn(place, overtaken=False):
            return await _attempt(context, container, key, act)
    except ExpectationFailed:
        pass
    turns, gate = context.store.tools.write_turns, container.gate_of(key)
    attempts, until = 1, context.clock.monotonic_seconds() + ATTEMPTS_SECONDS
    while attempts < ATTEMPTS_MAX or context.clock.monotonic_seconds() < until:
        attempts += _ATTEMPTS_BEHIND_GATE
        async with context.script_turns.turn(place, overtaken=True):
            with turns.closed(gate):
                for _ in range(_ATTEMPTS_BEHIND_GATE):
                    with suppress(ExpectationFailed):
                        return await _attempt(context, container, key, act)
    raise TooMuchContention


async def _attempt(
    context: Context,
    container: Container,
    key: PartitionKey,
    act: Callable[[Transaction, UnitOperations], Awaitable[_Result | ScriptFailed]],
) -> tuple[_Result | ScriptFailed, Settled]:
    async with container.snapshot_transaction(key) as (work, snapshot):
        beginning = work.mark()
        result = await act(work, UnitOperations(context, container, work, snapshot))
        if isinstance(result, ScriptFailed):
            work.return_to(beginning)
        partition, lsn = await container.commit(work)
        return result, Settled(partition.id, lsn, round(work.cost, 2))


def failure_of(failed: ScriptFailed, *, is_logging: bool) -> Refusal:
    return Refusal(
        failed.status,
        _CODES.get(failed.status, "BadRequest"),
        failed.message,
        substatus=failed.number if failed.number in _TOLD_NUMBERS else None,
        more_headers=log_headers(failed.log, is_logging=is_logging),
    )


def log_headers(log: str, *, is_logging: bool) -> HeaderList:
    return [(headers.SCRIPT_LOG, quote(log, safe=""))] if is_logging else []

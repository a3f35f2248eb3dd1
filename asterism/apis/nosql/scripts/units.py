"""A script's unit of work: run on a snapshot of one logical partition, written as one batch, retried if overtaken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote

from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.errors import Refusal
from asterism.apis.nosql.scripts.operations import UnitOperations
from asterism.apis.transports.http import HeaderList
from asterism.errors import TooMuchContention
from asterism.models.documents.container import Container
from asterism.models.documents.transaction import Overtaken, Transaction
from asterism.partitioning.partition_key import PartitionKey
from asterism.scripts.results import ScriptFailed

_Result = TypeVar("_Result")

# A run may take seconds, so a script that is overtaken this often is refused. A short script that writers in other
# processes overtake is retried for this long.
ATTEMPTS_MAX: Final = 10
ATTEMPTS_SECONDS: Final = 3.0
# The first attempt may still meet writes that were let in before others were locked out.
_ATTEMPTS_LOCKED: Final = 3

_CODES: Final = {400: "BadRequest", 408: "RequestTimeout", 413: "RequestEntityTooLarge", 503: "ServiceUnavailable"}
# Errors of a script are numbered as the protocol's statuses are; other numbers mean something else to clients.
_STATUS_NUMBERS: Final = range(400, 600)


class Settled(NamedTuple):
    """The partition and LSN at which a unit of work was written, or was found to change nothing."""

    range_id: int
    lsn: int
    charge: float


async def run_unit(
    context: Context,
    container: Container,
    key: PartitionKey,
    act: Callable[[Transaction, UnitOperations], Awaitable[_Result | ScriptFailed]],
) -> tuple[_Result | ScriptFailed, Settled]:
    """Run `act` and write its changes in one batch; a failure writes nothing, and is charged all the same."""
    point = container.planner.point(key)
    place = container.record.rid + point
    try:
        async with context.script_turns.turn(place, overtaken=False):
            return await _attempt(context, container, key, act)
    except Overtaken:
        pass
    queues = context.store.services.writer_queues
    attempts, until = 1, context.clock.monotonic_seconds() + ATTEMPTS_SECONDS
    while attempts < ATTEMPTS_MAX or context.clock.monotonic_seconds() < until:
        attempts += _ATTEMPTS_LOCKED
        async with context.script_turns.turn(place, overtaken=True):
            with queues.lock_out(container.keyspace, point):
                for _ in range(_ATTEMPTS_LOCKED):
                    with suppress(Overtaken):
                        return await _attempt(context, container, key, act)
    raise TooMuchContention


async def _attempt(
    context: Context,
    container: Container,
    key: PartitionKey,
    act: Callable[[Transaction, UnitOperations], Awaitable[_Result | ScriptFailed]],
) -> tuple[_Result | ScriptFailed, Settled]:
    async with container.snapshot_transaction(key) as (work, reads):
        beginning = work.savepoint()
        result = await act(work, UnitOperations(context, container, work, reads))
        if isinstance(result, ScriptFailed):
            work.return_to(beginning)
        partition, lsn = await container.commit(work)
        return result, Settled(partition.id, lsn, round(work.cost, 2))


def failure_of(failed: ScriptFailed, *, is_logging: bool) -> Refusal:
    return Refusal(
        failed.status,
        _CODES.get(failed.status, "BadRequest"),
        failed.message,
        substatus=failed.number if failed.number in _STATUS_NUMBERS else None,
        more_headers=log_headers(failed.log, is_logging=is_logging),
    )


def log_headers(log: str, *, is_logging: bool) -> HeaderList:
    return [(headers.SCRIPT_LOG, quote(log, safe=""))] if is_logging else []

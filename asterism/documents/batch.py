"""Several operations on one logical partition, all or nothing: what a transactional batch asks for and is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from asterism.documents.patch import Patch
from asterism.documents.transaction import UNCONDITIONAL, Conditions, Outcome, Transaction
from asterism.errors import AsterismError
from asterism.values.item import Item

# The service refuses more with 400, and larger requests with 413.
BATCH_OPERATIONS_MAX = 100
BATCH_BYTES_MAX = 2 * 1024 * 1024


class OperationKind(Enum):
    CREATE = "Create"
    UPSERT = "Upsert"
    READ = "Read"
    REPLACE = "Replace"
    DELETE = "Delete"
    PATCH = "Patch"


# Up to a hundred are made for one request, so not frozen: that would double the time it takes.
@dataclass(slots=True)
class Operation:
    """One operation. `item_id` is the item's name in the address; a create or upsert has it in the item."""

    kind: OperationKind
    item_id: str
    item: Item
    patch: Patch | None = None
    conditions: Conditions = UNCONDITIONAL


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """What every operation did; or, when one could not, what kept it, and None for all the others."""

    results: Sequence[Outcome | AsterismError | None]
    range_id: int
    lsn: int
    charge: float

    @property
    def failed(self) -> bool:
        return any(isinstance(result, AsterismError) for result in self.results)


def carry_out(transaction: Transaction, operation: Operation) -> Awaitable[Outcome]:
    return _STEPS[operation.kind](transaction, operation)


async def _patch(transaction: Transaction, operation: Operation) -> Outcome:
    assert operation.patch is not None, "a patch operation is made with its patch"
    return await transaction.patch(operation.item_id, operation.patch, operation.conditions)


# A read's conditions are the door's to answer: they change what is told, not what is done.
_STEPS: dict[OperationKind, Callable[[Transaction, Operation], Awaitable[Outcome]]] = {
    OperationKind.CREATE: lambda work, asked: work.create(asked.item),
    OperationKind.UPSERT: lambda work, asked: work.upsert(asked.item, asked.conditions),
    OperationKind.READ: lambda work, asked: work.read(asked.item_id),
    OperationKind.REPLACE: lambda work, asked: work.replace(asked.item_id, asked.item, asked.conditions),
    OperationKind.DELETE: lambda work, asked: work.delete(asked.item_id, asked.conditions),
    OperationKind.PATCH: _patch,
}

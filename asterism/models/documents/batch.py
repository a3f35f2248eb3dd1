"""Several operations on one logical partition, all or nothing: the request and the answer of a transactional batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from asterism.errors import AsterismError
from asterism.models.documents.codec import Document
from asterism.models.documents.transaction import UNCONDITIONAL, Conditions, DocumentEdit, Outcome, Transaction

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
    """One operation. `item_id` is the item's name in the address; a create or upsert has it in the document."""

    kind: OperationKind
    item_id: bytes
    document: Document
    edit: DocumentEdit | None = None
    conditions: Conditions = UNCONDITIONAL


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The outcome of every operation; or, when one was refused, its refusal, and None for all the others."""

    results: Sequence[Outcome | AsterismError | None]
    range_id: int
    lsn: int
    charge: float

    @property
    def failed(self) -> bool:
        return any(isinstance(result, AsterismError) for result in self.results)


async def carry_out(work: Transaction, operation: Operation) -> Outcome:
    """Stage an operation. The conditions of a read are the door's: they change its answer, not the operation."""
    match operation.kind:
        case OperationKind.CREATE:
            return await work.create(work.key_of(operation.document), operation.document)
        case OperationKind.UPSERT:
            return await work.upsert(work.key_of(operation.document), operation.document, operation.conditions)
        case OperationKind.READ:
            return await work.read(work.item_key(operation.item_id))
        case OperationKind.REPLACE:
            item_key, target = work.item_key(operation.item_id), work.key_of(operation.document)
            return await work.replace(item_key, target, operation.document, operation.conditions)
        case OperationKind.DELETE:
            return await work.delete(work.item_key(operation.item_id), operation.conditions)
        case OperationKind.PATCH:
            assert operation.edit is not None, "a patch operation is made with its patch"
            return await work.patch(work.item_key(operation.item_id), operation.edit, operation.conditions)

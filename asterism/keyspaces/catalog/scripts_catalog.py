"""A container's stored procedures, triggers and user-defined functions, as the catalog keeps them.

They are kept as users and permissions are: records with an owner, found by name and by a resource id that begins with
its owner's. So they go with their container, in the batch that deletes it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from asterism.keyspaces.catalog.owned_records import OwnedRecord, OwnedRecordKind, OwnedRecords
from asterism.storage.contract import Batch
from asterism.values.resource_ids import CHILD_NUMBER_LIMIT, COLLECTION_RID_BYTES, ChildKind, child_rid

# A script: `properties` are its body and whatever else its owner gave it.
ScriptRecord = OwnedRecord


def _kind(name: str, letter: str, child: ChildKind) -> OwnedRecordKind:
    make_rid = partial(child_rid, kind=child)
    prefix, name_prefix = letter.encode(), letter.upper().encode()
    return OwnedRecordKind(name, prefix, name_prefix, COLLECTION_RID_BYTES, make_rid, CHILD_NUMBER_LIMIT)


STORED_PROCEDURES = _kind("stored procedure", "s", ChildKind.STORED_PROCEDURE)
TRIGGERS = _kind("trigger", "t", ChildKind.TRIGGER)
USER_DEFINED_FUNCTIONS = _kind("user-defined function", "f", ChildKind.USER_DEFINED_FUNCTION)


class ScriptsCatalog:
    """The scripts of all containers of a node."""

    def __init__(self, keep: Callable[[OwnedRecordKind], OwnedRecords]) -> None:
        self.stored_procedures = keep(STORED_PROCEDURES)
        self.triggers = keep(TRIGGERS)
        self.functions = keep(USER_DEFINED_FUNCTIONS)
        self.all_kinds = (self.stored_procedures, self.triggers, self.functions)

    def plan_removal(self, container_rid: bytes, batch: Batch) -> None:
        for scripts in self.all_kinds:
            scripts.plan_removal(container_rid, batch)

    def forget_all(self, container_rid: bytes) -> None:
        for scripts in self.all_kinds:
            scripts.forget_all(container_rid)

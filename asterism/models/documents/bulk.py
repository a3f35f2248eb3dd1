"""The operations of bulk requests: each is a unit of its own."""

from __future__ import annotations

from asterism.models.documents.batch import Operation, OperationKind
from asterism.models.documents.container import Container
from asterism.models.documents.results import ItemAnswer
from asterism.partitioning.partition_key import PartitionKey


async def run_operation(container: Container, key: PartitionKey, operation: Operation) -> ItemAnswer:
    item_id, document, conditions = operation.item_id, operation.document, operation.conditions
    match operation.kind:
        case OperationKind.CREATE:
            return await container.create_item(document, key)
        case OperationKind.UPSERT:
            return await container.upsert_item(document, key, conditions=conditions)
        case OperationKind.READ:
            return await container.read_item(item_id, key)
        case OperationKind.REPLACE:
            return await container.replace_item(item_id, document, key, conditions=conditions)
        case OperationKind.DELETE:
            return await container.delete_item(item_id, key, conditions=conditions)
        case OperationKind.PATCH:
            assert operation.edit is not None, "a patch operation is made with its patch"
            return await container.patch_item(item_id, operation.edit, key, conditions=conditions)

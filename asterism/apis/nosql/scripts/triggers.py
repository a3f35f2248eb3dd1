"""Writes with triggers: those named by the headers of a request run with it, in one unit of work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.items.indexing_directive import indexing_of
from asterism.apis.nosql.resources.resource_feed import find_owned
from asterism.apis.nosql.scripts.operations import UnitOperations
from asterism.apis.nosql.scripts.resources import TRIGGERS, scope_of_scripts
from asterism.apis.nosql.scripts.units import failure_of, log_headers, run_unit
from asterism.apis.transports.http import HeaderList, Request
from asterism.errors import MalformedRequest
from asterism.keyspaces.catalog.scripts_catalog import ScriptRecord
from asterism.models.documents.batch import Operation, OperationKind, carry_out
from asterism.models.documents.container import Container
from asterism.models.documents.results import ItemAnswer
from asterism.models.documents.transaction import DocumentEdit, Outcome, Transaction
from asterism.partitioning.partition_key import PartitionKey
from asterism.scripts.results import ScriptFailed, TriggerSucceeded
from asterism.scripts.runtime import ScriptScope, TriggerKind
from asterism.values.item import Item, parse_item
from asterism.values.json.text import dumps, loads

# The writes that a trigger may come with, by its `triggerOperation`. An upsert is either of two, a patch a replacement.
_MEANT_BY: Final = {
    "all": frozenset(OperationKind),
    "create": frozenset({OperationKind.CREATE, OperationKind.UPSERT}),
    "update": frozenset({OperationKind.REPLACE, OperationKind.UPSERT, OperationKind.PATCH}),
    "replace": frozenset({OperationKind.REPLACE, OperationKind.UPSERT, OperationKind.PATCH}),
    "upsert": frozenset({OperationKind.UPSERT}),
    "delete": frozenset({OperationKind.DELETE}),
}


def names_triggers(request: Request) -> bool:
    given = request.headers
    return bool(given.get(headers.PRE_TRIGGERS) or given.get(headers.POST_TRIGGERS))


async def write_with_triggers(
    context: Context, container: Container, request: Request, operation: Operation, key: PartitionKey | None
) -> tuple[ItemAnswer, HeaderList]:
    """Run the pre-triggers, the write and the post-triggers: all of it, or nothing. Return the triggers' log as headers
    beside the answer.

    The logical partition is the one that the request names, or else that of the item as it came.
    """
    pre = _triggers(context, container, request, TriggerKind.PRE, operation.kind)
    post = _triggers(context, container, request, TriggerKind.POST, operation.kind)
    key = await container.key_of_unit(key, (operation,))
    # Triggers may change the item, and an attempt that was overtaken restarts with it as it came.
    as_it_came = dumps(operation.document)
    is_logging = is_true(request.headers.get(headers.SCRIPT_LOGGING))
    scope = await scope_of_scripts(context, container)
    indexes = indexing_of(request.headers.get(headers.INDEXING_DIRECTIVE))

    async def act(work: Transaction, operations: UnitOperations) -> tuple[Outcome, str] | ScriptFailed:
        if operation.edit is not None:
            asked = await _as_replacement(work, operation, operation.edit)
        else:
            asked = replace(operation, document=parse_item(as_it_came, bytes_max=context.limits.item_bytes_max))
        run = _Run(context, scope, operations, asked.kind, is_logging=is_logging)
        changed = await run.before(pre, asked.document)
        if isinstance(changed, ScriptFailed):
            return run.failed(changed)
        work.indexes = indexes
        done = await carry_out(work, replace(asked, document=changed))
        outcome = await run.after(post, changed, done)
        return run.failed(outcome) if isinstance(outcome, ScriptFailed) else (outcome, run.log)

    result, settled = await run_unit(context, container, key, act)
    if isinstance(result, ScriptFailed):
        raise failure_of(result, is_logging=is_logging)
    done, log = result
    answer = ItemAnswer(done.body, done.etag, settled.range_id, settled.lsn, settled.charge, created=done.created)
    return answer, log_headers(log, is_logging=is_logging)


async def _as_replacement(work: Transaction, operation: Operation, edit: DocumentEdit) -> Operation:
    """Return a patch as the replacement that it amounts to: triggers see, and may change, the item that it makes."""
    item = await work.patched(work.item_key(operation.item_id), edit, operation.conditions)
    return Operation(OperationKind.REPLACE, operation.item_id, item, conditions=operation.conditions)


class _Run:
    """The triggers of one attempt."""

    def __init__(
        self,
        context: Context,
        scope: ScriptScope,
        operations: UnitOperations,
        kind: OperationKind,
        *,
        is_logging: bool,
    ) -> None:
        self._context = context
        self._operations = operations
        self._kind = kind
        self._scope = scope
        self._is_logging = is_logging
        # The log of the triggers so far, one after the other.
        self.log = ""

    def failed(self, failure: ScriptFailed) -> ScriptFailed:
        return replace(failure, log=self.log + failure.log)

    async def before(self, triggers: Sequence[ScriptRecord], item: Item) -> Item | ScriptFailed:
        """Return the item as the triggers leave it; a delete has no item, so their changes to it are dropped."""
        for trigger in triggers:
            ended = await self._run(trigger, TriggerKind.PRE, item, None)
            if isinstance(ended, ScriptFailed):
                return ended
            if self._kind is not OperationKind.DELETE:
                item = parse_item(ended.request_body, bytes_max=self._context.limits.item_bytes_max)
        return item

    async def after(self, triggers: Sequence[ScriptRecord], item: Item, done: Outcome) -> Outcome | ScriptFailed:
        """Return the outcome with the body of the response as the triggers leave it."""
        body = done.body
        is_delete = self._kind is OperationKind.DELETE
        for trigger in triggers:
            ended = await self._run(trigger, TriggerKind.POST, item, None if is_delete else loads(body))
            if isinstance(ended, ScriptFailed):
                return ended
            if ended.response_body is not None:
                body = ended.response_body
        return replace(done, body=body)

    async def _run(
        self, trigger: ScriptRecord, kind: TriggerKind, item: Item, response_body: object
    ) -> TriggerSucceeded | ScriptFailed:
        ended = await self._context.scripts.run_trigger(
            str(trigger.properties["body"]),
            kind=kind,
            operation=self._kind.value,
            request_body=None if self._kind is OperationKind.DELETE else item,
            response_body=response_body,
            operations=self._operations,
            scope=self._scope,
            is_logging=self._is_logging,
        )
        if isinstance(ended, TriggerSucceeded):
            self.log += ended.log
        return ended


def _triggers(
    context: Context, container: Container, request: Request, kind: TriggerKind, write: OperationKind
) -> list[ScriptRecord]:
    """Return the triggers that a header names, in its order; refuse those of another kind or operation."""
    names = request.headers.get(headers.PRE_TRIGGERS if kind is TriggerKind.PRE else headers.POST_TRIGGERS) or ""
    found = []
    for name in filter(None, (part.strip() for part in names.split(","))):
        trigger = find_owned(TRIGGERS.records(context), container.record.rid, name)
        if trigger is None:
            raise MalformedRequest(reason=f"The trigger '{name[:256]}' does not exist in the container.")
        if str(trigger.properties["triggerType"]).lower() != kind.value:
            raise MalformedRequest(reason=f"The trigger '{trigger.name}' is not a {kind.value}-trigger.")
        operation = str(trigger.properties["triggerOperation"])
        if write not in _MEANT_BY[operation.lower()]:
            raise MalformedRequest(
                reason=f"The trigger '{trigger.name}' is for the operation {operation}, and the request is a "
                f"{write.value}."
            )
        found.append(trigger)
    return found

"""Writes with triggers: those that the headers of a request name run with it, in one unit of work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from asterism.apis.http import HeaderList, Request
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.indexing_directive import indexing_of
from asterism.apis.nosql.script_operations import UnitOperations
from asterism.apis.nosql.script_units import failure_of, log_headers, run_unit
from asterism.apis.nosql.scripts import find_script, scope_of_scripts
from asterism.documents.answers import ItemAnswer
from asterism.documents.batch import Operation, OperationKind, carry_out
from asterism.documents.container import Container
from asterism.documents.patch import Patch
from asterism.documents.transaction import Outcome, Transaction
from asterism.errors import MalformedRequest
from asterism.keyspaces.scripts_catalog import ScriptRecord
from asterism.partitioning.partition_key import PartitionKey, extract
from asterism.scripts.results import ScriptFailed, TriggerSucceeded
from asterism.scripts.runtime import ScriptScope, TriggerKind
from asterism.values.item import Item, parse_item
from asterism.values.json_text import dumps, loads

# Which writes a trigger may come with, by its `triggerOperation`. An upsert is either of two, a patch is a replacement.
_MEANT_BY: Final = {
    "all": frozenset(OperationKind),
    "create": frozenset({OperationKind.CREATE, OperationKind.UPSERT}),
    "update": frozenset({OperationKind.REPLACE, OperationKind.UPSERT, OperationKind.PATCH}),
    "replace": frozenset({OperationKind.REPLACE, OperationKind.UPSERT, OperationKind.PATCH}),
    "upsert": frozenset({OperationKind.UPSERT}),
    "delete": frozenset({OperationKind.DELETE}),
}


def names_triggers(request: Request) -> bool:
    told = request.headers
    return bool(told.get(headers.PRE_TRIGGERS) or told.get(headers.POST_TRIGGERS))


async def write_with_triggers(
    context: Context, container: Container, request: Request, operation: Operation, key: PartitionKey | None
) -> tuple[ItemAnswer, HeaderList]:
    """The write, between the triggers before it and those after it: all of it, or nothing. With it, what the triggers
    have logged, as headers.

    The logical partition is the one that the request names, or else that of the item as it came.
    """
    pre = _triggers(context, container, request, TriggerKind.PRE, operation.kind)
    post = _triggers(context, container, request, TriggerKind.POST, operation.kind)
    if key is None:
        key = extract(container.record.definition, operation.item)
    # Writing changes the item, and an attempt that was overtaken begins with it as it came.
    as_it_came = dumps(operation.item)
    is_logging = is_true(request.headers.get(headers.SCRIPT_LOGGING))
    scope = await scope_of_scripts(context, container)
    indexes = indexing_of(request.headers.get(headers.INDEXING_DIRECTIVE))

    async def act(work: Transaction, operations: UnitOperations) -> tuple[Outcome, str] | ScriptFailed:
        if operation.patch is not None:
            asked = await _as_replacement(work, operation, operation.patch)
        else:
            asked = replace(operation, item=parse_item(as_it_came, bytes_max=context.limits.item_bytes_max))
        run = _Run(context, scope, operations, asked.kind, is_logging=is_logging)
        changed = await run.before(pre, asked.item)
        if isinstance(changed, ScriptFailed):
            return run.failed(changed)
        work.indexes = indexes
        done = await carry_out(work, replace(asked, item=changed))
        told = await run.after(post, changed, done)
        return run.failed(told) if isinstance(told, ScriptFailed) else (told, run.log)

    result, settled = await run_unit(context, container, key, act)
    if isinstance(result, ScriptFailed):
        raise failure_of(result, is_logging=is_logging)
    done, log = result
    answer = ItemAnswer(done.body, done.etag, settled.range_id, settled.lsn, settled.charge, created=done.created)
    return answer, log_headers(log, is_logging=is_logging)


async def _as_replacement(work: Transaction, operation: Operation, patch: Patch) -> Operation:
    """A patch as the replacement that it amounts to: triggers see, and may change, the item that it makes."""
    item = await work.patched(operation.item_id, patch, operation.conditions)
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
        # What the triggers have said so far, one after the other.
        self.log = ""

    def failed(self, failure: ScriptFailed) -> ScriptFailed:
        return replace(failure, log=self.log + failure.log)

    async def before(self, triggers: Sequence[ScriptRecord], item: Item) -> Item | ScriptFailed:
        """The item as the triggers leave it; a delete has none, whatever they say."""
        for trigger in triggers:
            ended = await self._run(trigger, TriggerKind.PRE, item, None)
            if isinstance(ended, ScriptFailed):
                return ended
            if self._kind is not OperationKind.DELETE:
                item = parse_item(ended.request_body, bytes_max=self._context.limits.item_bytes_max)
        return item

    async def after(self, triggers: Sequence[ScriptRecord], item: Item, done: Outcome) -> Outcome | ScriptFailed:
        """What was done, with the body of the response as the triggers leave it."""
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
    """The triggers that a header names, in its order; refuses those that are not for this."""
    told = request.headers.get(headers.PRE_TRIGGERS if kind is TriggerKind.PRE else headers.POST_TRIGGERS) or ""
    found = []
    for name in filter(None, (one.strip() for one in told.split(","))):
        trigger = find_script(context.store.catalog.scripts.triggers, container, name)
        if trigger is None:
            raise MalformedRequest(reason=f"The trigger '{name[:256]}' does not exist in the container.")
        if str(trigger.properties["triggerType"]).lower() != kind.value:
            raise MalformedRequest(reason=f"The trigger '{trigger.name}' is none of the kind '{kind.value}'.")
        operation = str(trigger.properties["triggerOperation"])
        if write not in _MEANT_BY[operation.lower()]:
            raise MalformedRequest(
                reason=f"The trigger '{trigger.name}' is for the operation {operation}, and the request is a "
                f"{write.value}."
            )
        found.append(trigger)
    return found

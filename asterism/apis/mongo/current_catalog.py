"""Commands on the catalog as it is: other processes change it, too, and collections may be dropped or re-keyed while a
command is on its way to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from asterism.apis.mongo.commands import Access
from asterism.apis.mongo.data.selection import CollectionGone
from asterism.models.collections.results import NoSuchCollection

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.apis.mongo.commands import CommandReply

# Commands on one collection. If it exists here, fences refuse whatever another process has made outdated; all other
# commands take over the changes of others first.
_FENCED: Final = frozenset({"find", "count", "distinct", "insert", "update", "delete", "findAndModify", "getMore"})
# Commands that only read, so that they can be carried out again.
_REPEATABLE: Final = frozenset({"find", "count", "distinct", "aggregate", "explain"})
_ATTEMPTS_MAX = 5


async def carry_out(call: Call) -> CommandReply:
    """Carry a command out; again, if it read from a place that its collection has left meanwhile."""
    store = call.store
    if store.is_shared and _must_look(call):
        await store.catch_up()
    handler = call.command.handler
    if call.command.name not in _REPEATABLE or call.transaction is not None or _writes(call):
        return await handler(call)
    for _ in range(_ATTEMPTS_MAX - 1):
        try:
            return await handler(call)
        except (CollectionGone, NoSuchCollection):
            await store.catch_up()
    return await handler(call)


def _must_look(call: Call) -> bool:
    command = call.command
    if command.access is Access.NOBODY:
        return False
    if command.name not in _FENCED:
        return True
    target = call.target
    return isinstance(target, str) and call.store.find(call.account, call.database, target) is None


def _writes(call: Call) -> bool:
    pipeline = call.body.get("pipeline")
    last = pipeline[-1] if isinstance(pipeline, list) and pipeline else None
    return isinstance(last, dict) and ("$out" in last or "$merge" in last)

"""The services that handlers of the door use, and the queue that a call is about."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.apis.queue.errors import queue_not_found
from asterism.apis.storage.call import Call as StorageCall
from asterism.models.queues.queue import Queue
from asterism.models.queues.store import QueueStore


@dataclass(frozen=True, slots=True)
class QueueContext:
    store: QueueStore


Call = StorageCall[QueueContext]


async def queue_of(call: Call) -> Queue:
    """Return the queue that the path names."""
    found = await call.context.store.find_queue(call.account.name, call.resource.container)
    if found is None:
        raise queue_not_found()
    return found

"""The door for queues, made of the shared door of storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asterism.apis.queue.context import QueueContext
from asterism.apis.queue.rules import QueueRules
from asterism.apis.storage.accounts import follow_accounts
from asterism.apis.storage.door import StorageDoor

if TYPE_CHECKING:
    from asterism.apis.queue.spec import QueueSettings
    from asterism.apis.services import DoorServices


def make_door(services: DoorServices, settings: QueueSettings) -> StorageDoor[QueueContext]:
    return StorageDoor(
        QueueRules(services.queues),
        accounts=follow_accounts(settings.accounts, services.documents.catalog.accounts),
        clock=services.clock,
        unsigned_tokens=settings.unsigned_tokens,
        new_request_id=services.new_request_id,
        guard=services.guard,
        meter=services.meter,
    )

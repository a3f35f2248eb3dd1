"""The blob door: accounts and their containers of blobs, as Azure Blob storage presents them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from asterism.apis.blob.account_rules import AccountRuleBook
from asterism.apis.blob.context import BlobContext
from asterism.apis.blob.rules import BlobRules
from asterism.apis.storage.accounts import follow_accounts
from asterism.apis.storage.door import StorageDoor

if TYPE_CHECKING:
    from asterism.apis.blob.spec import BlobSettings
    from asterism.apis.services import DoorServices

_ID_BYTES = 16


def make_door(services: DoorServices, settings: BlobSettings) -> StorageDoor[BlobContext]:
    store = services.blobs

    def new_id() -> str:
        return str(uuid.UUID(bytes=services.random_bytes(_ID_BYTES), version=4))

    rule_book = AccountRuleBook(settings, store, services.clock.monotonic_seconds)
    context = BlobContext(store, settings, rule_book, services.clock, new_id)
    return StorageDoor(
        BlobRules(context),
        accounts=follow_accounts(settings.accounts, services.documents.catalog.accounts),
        clock=services.clock,
        unsigned_tokens=settings.unsigned_tokens,
        new_request_id=services.new_request_id,
        guard=services.guard,
        meter=services.meter,
    )

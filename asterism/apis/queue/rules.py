"""The door for queues, as the rules by which the shared door of storage serves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from asterism.access.sas_grants import Policy
from asterism.apis.queue.context import Call, QueueContext
from asterism.apis.queue.errors import TRANSLATION
from asterism.apis.queue.names import path_behind_account, read_resource
from asterism.apis.queue.routes import ROUTES
from asterism.apis.storage.access_policies import load_policies, policies_for_signing
from asterism.apis.storage.address import Address, ServiceName
from asterism.apis.storage.call import Resource
from asterism.apis.storage.refusals import Refusal
from asterism.apis.storage.routes import Route
from asterism.apis.translation import Translation
from asterism.models.queues.store import QueueStore

_SERVER: Final = "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0"


class QueueRules:
    """See `DoorRules` of the shared room."""

    service: ServiceName = "queue"
    name = "queue"
    server = _SERVER
    routes: tuple[Route[QueueContext], ...] = ROUTES
    translation: Translation[Callable[[Any], Refusal]] = TRANSLATION

    def __init__(self, store: QueueStore) -> None:
        self.context = QueueContext(store)
        self.catalog = store
        self.documents = store

    def read_resource(self, address: Address, query: Mapping[str, str]) -> Resource:  # noqa: ARG002 - a protocol
        return read_resource(path_behind_account(address))

    async def policies(self, account: str, resource: Resource) -> Mapping[str, Policy]:
        found = await self.context.store.find_queue(account, resource.container) if resource.container else None
        return {} if found is None else policies_for_signing(load_policies(found.record.policies.encode()))

    async def public_access(self, call: Call) -> bool:  # noqa: ARG002 - a protocol
        return False

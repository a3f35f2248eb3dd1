"""The blob door as the shared room of the storage doors takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asterism.access.sas_grants import Policy
from asterism.apis.blob.context import BlobCall, BlobContext
from asterism.apis.blob.errors import TRANSLATION
from asterism.apis.blob.kinds import BLOB, CONTAINER, SERVICE, WEBSITE
from asterism.apis.blob.names import ROOT_CONTAINER
from asterism.apis.blob.policies import signing_policies
from asterism.apis.blob.routes import ROUTES
from asterism.apis.storage.address import Address, ServiceName
from asterism.apis.storage.call import Resource
from asterism.apis.storage.refusals import not_implemented
from asterism.apis.storage.routes import Route

# Containers, as clients for Data Lake call them.
_FILESYSTEM = "filesystem"


class BlobRules:
    """See `DoorRules`."""

    service: ServiceName = "blob"
    name = "blob"
    server = "Asterism-Blob/1.0"
    routes: Sequence[Route[BlobContext]] = ROUTES
    translation = TRANSLATION

    def __init__(self, context: BlobContext) -> None:
        self.context = context
        # It keeps the small documents about accounts, too.
        self.catalog = self.documents = context.store

    def read_resource(self, address: Address, query: Mapping[str, str]) -> Resource:
        """Return the resource of a path. One segment is a blob of the root container, unless `restype` says that it is
        the name of a container."""
        if query.get("resource") == _FILESYSTEM or "action" in query:
            raise not_implemented("Data Lake Storage (dfs) is not served: use the operations of blobs.")
        path = address.resource
        if address.is_website:
            return Resource(WEBSITE, name=path)
        if not path:
            return Resource(SERVICE)
        container, slash, blob = path.partition("/")
        if blob:
            return Resource(BLOB, container, blob)
        if slash or "restype" in query or container == ROOT_CONTAINER:
            return Resource(CONTAINER, container)
        return Resource(BLOB, ROOT_CONTAINER, container)

    async def policies(self, account: str, resource: Resource) -> Mapping[str, Policy]:
        found = self.context.store.find_container(account, resource.container)
        return {} if found is None else signing_policies(found.state)

    async def public_access(self, call: BlobCall) -> bool:
        """Return True for public data: blobs, and for some containers the list of them."""
        if call.resource.kind == WEBSITE:
            return True
        found = self.context.store.find_container(call.account.name, call.resource.container)
        if found is None:
            return False
        access = found.state.public_access
        return access is not None and (access == "container" or call.resource.kind == BLOB)

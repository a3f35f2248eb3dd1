"""One request at the door: the account it is for, the operation it asks for, and the things that its path names."""

from __future__ import annotations

from asterism.apis.http_pipeline import HttpCall
from asterism.apis.nosql import headers
from asterism.apis.nosql.captured import SampledCall
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.errors import ContainerRecreated
from asterism.apis.pipeline import UNROUTED
from asterism.apis.transports.http import Request
from asterism.errors import OwnerNotFound, ResourceNotFound
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.models.documents.container import Container


class Call(HttpCall):
    """The argument of every handler. The names in a path are properties: `{item}` of a route is `item_name` here.

    A name may be a resource id instead: clients address things they were given by those.
    """

    __slots__ = ("context", "parts", "sampled")

    # The segments of the path, once the route is known.
    parts: list[str]

    def __init__(self, context: Context, request: Request, request_id: str) -> None:
        # As HttpCall does it; a call of its own would cost every request.
        self.request = request
        self.request_id = request_id
        self.operation = UNROUTED
        self.context = context
        # Set if a capture keeps the request.
        self.sampled: SampledCall | None = None

    # --- names in the path ------------------------------------------------------------------------------------------

    @property
    def database_name(self) -> str:
        return self.parts[1]

    @property
    def offer_name(self) -> str:
        return self.parts[1]

    @property
    def container_name(self) -> str:
        return self.parts[3]

    @property
    def user_name(self) -> str:
        return self.parts[3]

    @property
    def item_name(self) -> str:
        return self.parts[5]

    @property
    def script_name(self) -> str:
        return self.parts[5]

    @property
    def permission_name(self) -> str:
        return self.parts[5]

    @property
    def range_name(self) -> str:
        return self.parts[5]

    @property
    def conflict_name(self) -> str:
        return self.parts[5]

    @property
    def operation_name(self) -> str:
        return self.parts[5]

    def item_id_in(self, container: Container) -> str | None:
        """Return the id of the item that a path names, or None where the path is made of resource ids."""
        parts = self.parts
        return parts[5] if parts[3] == container.record.name else None

    # --- the things of these names ----------------------------------------------------------------------------------

    def database(self) -> DatabaseRecord:
        return self.context.store.database(self.context.account, self.parts[1])

    def owning_database(self) -> DatabaseRecord:
        """The database as the owner of containers: its absence is another error than that of one asked for."""
        try:
            return self.database()
        except ResourceNotFound as missing:
            raise OwnerNotFound(kind=missing.kind, name=missing.name) from None

    def container(self) -> Container:
        """The container itself, as the thing that the request is about."""
        return self.context.store.container(self.owning_database(), self.parts[3])

    def items_container(self) -> Container:
        """The container whose items a request is about, if it is still the one that the client means."""
        context, parts = self.context, self.parts
        container = context.containers.get((context.account, parts[1], parts[3]))
        if container is None or not container.is_current:
            container = context.find_container(parts[1], parts[3])
        if container.keyspace.record.capture is not None and context.captures is not None:
            recorder = context.captures.sample(container.keyspace)
            if recorder is not None:
                self.sampled = SampledCall(recorder, container.record.definition.segments)
        intended = self.request.headers.get(headers.INTENDED_CONTAINER_RID)
        if intended is not None and intended != context.facts(container).rid:
            raise ContainerRecreated(name=container.record.name)
        return container

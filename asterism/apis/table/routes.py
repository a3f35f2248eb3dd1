"""What the door can do, one line each. A route is found by its method, the kind of its resource, and `comp`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from asterism.apis.http import Response
from asterism.apis.table import access_policies, batches, entities, queries, service, tables
from asterism.apis.table.context import Call
from asterism.apis.table.errors import Refusal
from asterism.apis.table.resources import Kind

Handler = Callable[[Call], Awaitable[Response]]
RouteKey = tuple[str, Kind, str | None]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    kind: Kind
    comp: str | None
    handler: Handler
    # A secondary location takes none of these.
    is_write: bool
    help: str

    @property
    def key(self) -> RouteKey:
        return self.method, self.kind, self.comp


ROUTES: Final[tuple[Route, ...]] = (
    Route("POST", Kind.TABLES, None, tables.create_table, True, "Create a table."),
    Route("GET", Kind.TABLES, None, tables.list_tables, False, "The tables of the account, in pages."),
    Route("GET", Kind.TABLE, None, tables.read_table, False, "Whether a table is there."),
    Route("DELETE", Kind.TABLE, None, tables.delete_table, True, "Delete a table with its entities."),
    Route("POST", Kind.ENTITIES, None, entities.insert_entity, True, "Insert an entity."),
    Route("GET", Kind.ENTITIES, None, queries.query_entities, False, "Query the entities of a table, in pages."),
    Route("GET", Kind.ENTITY, None, entities.read_one_entity, False, "One entity."),
    Route("PUT", Kind.ENTITY, None, entities.write_one_entity, True, "Replace an entity, or insert it."),
    Route("MERGE", Kind.ENTITY, None, entities.write_one_entity, True, "Merge into an entity, or insert it."),
    Route("DELETE", Kind.ENTITY, None, entities.delete_one_entity, True, "Delete an entity."),
    Route("POST", Kind.BATCH, None, batches.post_batch, True, "An entity group transaction."),
    Route("GET", Kind.ENTITIES, "acl", access_policies.get_policies, False, "A table's access policies."),
    Route("PUT", Kind.ENTITIES, "acl", access_policies.set_policies, True, "Set a table's access policies."),
    Route("GET", Kind.SERVICE, "properties", service.get_properties, False, "The service's properties."),
    Route("PUT", Kind.SERVICE, "properties", service.set_properties, True, "Set the service's properties."),
    Route("GET", Kind.SERVICE, "stats", service.get_statistics, False, "How far the secondary location is behind."),
    Route("GET", Kind.ENTITIES, "properties", service.get_properties, False, "Refused: a table has no properties."),
    Route("PUT", Kind.ENTITIES, "properties", service.set_properties, True, "Refused: a table has no properties."),
    Route("GET", Kind.ENTITIES, "stats", service.get_statistics, False, "Refused: a table has no statistics."),
    *(
        Route(method, Kind.BEHIND_A_TABLE, comp, tables.behind_a_table, False, "Refused: a segment too many.")
        for method in ("GET", "POST", "PUT", "MERGE", "DELETE")
        for comp in (None, "acl")
    ),
)

BY_KEY: Final[dict[RouteKey, Route]] = {route.key: route for route in ROUTES}
_KINDS: Final = frozenset((kind, comp) for _, kind, comp in BY_KEY)


def refusal_for(method: str, kind: Kind, comp: str | None) -> Refusal:
    """Why no route was found."""
    if (kind, comp) in _KINDS:
        return Refusal(405, "MethodNotAllowed", f"The method {method[:16]} is not known for this resource.")
    if comp is not None:
        return service.bad_query_parameter()
    return Refusal(400, "InvalidUri", "The requested URI does not represent any resource on the server.")

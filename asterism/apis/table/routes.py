"""The operations of the door, one line each. A route is found by its method, the kind of its resource, and `comp`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from asterism.apis.storage.refusals import Refusal
from asterism.apis.table.context import Call
from asterism.apis.table.entities import batches, entities, queries
from asterism.apis.table.resource_paths import Kind
from asterism.apis.table.resources import access_policies, service, tables
from asterism.apis.transports.http import Response

Handler = Callable[[Call], Awaitable[Response]]
RouteKey = tuple[str, Kind, str | None]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    kind: Kind
    comp: str | None
    # The name in metrics and logs.
    operation: str
    handler: Handler
    help: str

    @property
    def key(self) -> RouteKey:
        return self.method, self.kind, self.comp

    @property
    def is_write(self) -> bool:
        """Return whether a secondary location refuses the route; a path that is refused anyway has its own refusal."""
        return self.method != "GET" and self.kind is not Kind.BEHIND_A_TABLE


_NO_PROPERTIES: Final = "Refused: a table has no properties."

ROUTES: Final[tuple[Route, ...]] = (
    Route("POST", Kind.TABLES, None, "create_table", tables.create_table, "Create a table."),
    Route("GET", Kind.TABLES, None, "list_tables", tables.list_tables, "The tables of the account, in pages."),
    Route("GET", Kind.TABLE, None, "read_table", tables.read_table, "Whether a table exists."),
    Route("DELETE", Kind.TABLE, None, "delete_table", tables.delete_table, "Delete a table with its entities."),
    Route("POST", Kind.ENTITIES, None, "insert_entity", entities.insert_entity, "Insert an entity."),
    Route("GET", Kind.ENTITIES, None, "query_entities", queries.query_entities, "Query a table's entities, in pages."),
    Route("GET", Kind.ENTITY, None, "read_entity", entities.read_entity_by_keys, "One entity."),
    Route(
        "PUT", Kind.ENTITY, None, "replace_entity", entities.write_entity_by_keys, "Replace an entity, or insert it."
    ),
    Route(
        "MERGE", Kind.ENTITY, None, "merge_entity", entities.write_entity_by_keys, "Merge into an entity, or insert it."
    ),
    Route("DELETE", Kind.ENTITY, None, "delete_entity", entities.delete_entity_by_keys, "Delete an entity."),
    Route("POST", Kind.BATCH, None, "run_batch", batches.post_batch, "An entity group transaction."),
    Route("GET", Kind.ENTITIES, "acl", "read_policies", access_policies.get_policies, "A table's access policies."),
    Route("PUT", Kind.ENTITIES, "acl", "set_policies", access_policies.set_policies, "Set a table's access policies."),
    Route("GET", Kind.SERVICE, "properties", "read_properties", service.get_properties, "The service's properties."),
    Route("PUT", Kind.SERVICE, "properties", "set_properties", service.set_properties, "Set the service's properties."),
    Route("GET", Kind.SERVICE, "stats", "read_statistics", service.get_statistics, "The secondary location's delay."),
    Route("GET", Kind.ENTITIES, "properties", "read_properties", service.get_properties, _NO_PROPERTIES),
    Route("PUT", Kind.ENTITIES, "properties", "set_properties", service.set_properties, _NO_PROPERTIES),
    Route("GET", Kind.ENTITIES, "stats", "read_statistics", service.get_statistics, "Refused: a table has none."),
    *(
        Route(method, Kind.BEHIND_A_TABLE, comp, "refuse_path", tables.behind_a_table, "Refused: a segment too many.")
        for method in ("GET", "POST", "PUT", "MERGE", "DELETE")
        for comp in (None, "acl")
    ),
)

BY_KEY: Final[dict[RouteKey, Route]] = {route.key: route for route in ROUTES}
OPERATIONS: Final = frozenset(route.operation for route in ROUTES)
_KINDS: Final = frozenset((kind, comp) for _, kind, comp in BY_KEY)


def refusal_for(method: str, kind: Kind, comp: str | None) -> Refusal:
    """Return the refusal of a request for which there is no route."""
    if (kind, comp) in _KINDS:
        return Refusal(405, "MethodNotAllowed", f"The method {method[:16]} is not known for this resource.")
    if comp is not None:
        return service.bad_query_parameter()
    return Refusal(400, "InvalidUri", "The requested URI does not represent any resource on the server.")

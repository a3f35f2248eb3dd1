"""The operator's door, which has no port of its own: every HTTP port answers it at its prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asterism import __version__

if TYPE_CHECKING:
    from asterism.apis.admin.door import AdminDoor
    from asterism.apis.services import DoorServices

# As `DoorSpec.modules`.
MODULES = ("asterism.apis.admin.door", "asterism.apis.user_functions")
_STORAGE_PORTS = ("table", "queue", "blob")


def build_admin_door(services: DoorServices) -> AdminDoor:
    from asterism.apis.admin.door import AdminDoor
    from asterism.apis.admin.services import AdminServices
    from asterism.apis.user_functions import ContainerFunctions
    from asterism.reading.result_sets import ResultSets

    admin_services = AdminServices(
        services.documents,
        services.admission,
        account=services.account,
        version=__version__,
        usage=services.usage,
        history=services.history,
        health=services.health,
        mover=services.mover,
        migration=services.migration,
        load=services.load,
        partition_key_of_entity=services.tables.partition_key_of,
        collection_store=services.collections,
        blobs=services.blobs,
        namespaces=services.namespaces,
        event_logs=services.event_logs,
        messages=services.messages,
        result_sets=ResultSets(
            monotonic_seconds=services.clock.monotonic_seconds,
            random_bytes=services.random_bytes,
            memory=services.query_memory,
        ),
        udfs_of=lambda container: ContainerFunctions(services.documents, services.scripts, container),
        configured_accounts=services.configured_accounts,
        collection_kinds=services.collection_kinds,
        web_page=_web_page(services),
        mongo_endpoint=services.peers.endpoints.get("mongo"),
        gremlin_endpoint=services.peers.endpoints.get("gremlin"),
        storage_endpoints={
            name: endpoint for name, endpoint in services.peers.endpoints.items() if name in _STORAGE_PORTS
        },
        captures=services.captures,
        controls=services.controls,
    )
    return AdminDoor(
        admin_services,
        keys=services.keys,
        clock=services.clock,
        guard=services.account_guard,
        meter=services.meter,
        new_request_id=services.new_request_id,
    )


def _web_page(services: DoorServices) -> str | None:
    for door in services.peers.served:
        for port in door.spec.ports:
            if port.is_web_page:
                return door.surroundings.endpoints[port.name].url
    return None

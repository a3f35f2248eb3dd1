"""MongoDB's protocol as one row of the table of doors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from asterism.apis.door_spec import (
    HIDDEN_KEY,
    CollectionKind,
    DoorSpec,
    Greeting,
    Introduction,
    PortSpec,
    Surroundings,
)
from asterism.apis.mongo.settings import MongoSettings

if TYPE_CHECKING:
    from asterism.apis.services import DoorServices
    from asterism.apis.transports.doors import AnyDoor

_EMULATOR_USER = "localhost"


def _build(services: DoorServices, settings: MongoSettings) -> Mapping[str, AnyDoor]:
    from asterism.apis.mongo.context import DoorContext
    from asterism.apis.mongo.cursors import CursorRegistry
    from asterism.apis.mongo.door import MongoDoor
    from asterism.apis.mongo.fail_points import FailPoints
    from asterism.apis.mongo.forwarding import Forwarder
    from asterism.apis.mongo.monitoring.logs import keep_recent_lines
    from asterism.apis.mongo.operations import Operations
    from asterism.apis.mongo.sessions import SessionRegistry
    from asterism.apis.mongo.topology import Topology
    from asterism.apis.mongo.transactions import TransactionRegistry, transaction_seconds
    from asterism.apis.mongo.users.authentication import Authenticator
    from asterism.apis.mongo.users.directory import UserDirectory
    from asterism.values.bson.types import ObjectId

    accounts = services.documents.catalog.accounts

    def keys_of(user: str) -> list[str]:
        if user in (services.account, _EMULATOR_USER):
            return [services.keys.primary, services.keys.secondary]
        found = accounts.find(user)
        return [] if found is None or found.kind != "cosmos" else [found.primary_key, found.secondary_key]

    keep_recent_lines(services.clock.wall_seconds())
    monotonic = services.clock.monotonic_seconds
    cursors = CursorRegistry(services.random_bytes, monotonic, place=services.processes.number)
    context = DoorContext(
        services,
        settings,
        cursors,
        TransactionRegistry(
            services.collections, monotonic, lambda: transaction_seconds(context), cursors.end_transaction
        ),
        SessionRegistry(services.clock.wall_seconds),
        Authenticator(
            keys_of,
            services.account,
            UserDirectory(services.collections, monotonic, services.random_bytes),
            services.random_bytes,
            key_is_public=services.key_is_public,
        ),
        Operations(),
        Forwarder(services.processes),
        None if services.controls is None else FailPoints(),
        monotonic(),
        # To a client all processes of the server are one.
        topology=Topology(process_id=ObjectId(services.processes.start_token[:12])),
    )
    return {"mongo": MongoDoor(context)}


def _connection_strings(_: MongoSettings, server: Surroundings, with_secrets: bool) -> Mapping[str, str]:
    place = server.endpoints["mongo"]
    key = quote(server.key, safe="") if server.key_is_public or with_secrets else HIDDEN_KEY
    tls = "&tls=true" if place.is_encrypted else ""
    return {"mongo": f"mongodb://{server.account}:{key}@{place.address}/?replicaSet=globaldb{tls}"}


def _greeting(_: MongoSettings, server: Surroundings) -> Greeting:
    lines = [("MongoDB", f"mongodb://{server.endpoints['mongo'].address}/?replicaSet=globaldb")]
    if server.key_is_public and not server.is_local:
        return Greeting(lines, ["everybody can log in at the MongoDB port while the account has the public key."])
    return Greeting(lines)


def _introduce(settings: MongoSettings, server: Surroundings, account: str, key: str) -> Introduction:
    from asterism.apis.mongo.introduction import introduce

    return introduce(settings, server, account, key)


SPEC = DoorSpec(
    name="mongo",
    help="Cosmos DB for MongoDB",
    ports=(
        PortSpec(
            "mongo",
            "--mongo-port",
            10255,
            "Port for MongoDB clients, plain or with TLS; 0 for any.",
            transport="tcp",
            encryption="optional",
            request_limit="mongo_message_bytes_max",
            idle_limit="mongo_idle_seconds_max",
        ),
    ),
    settings=MongoSettings,
    accounts=("cosmos",),
    modules=("asterism.apis.mongo.door", "asterism.apis.mongo.operations", "asterism.apis.mongo.transactions"),
    build=_build,
    greeting=_greeting,
    connection_strings=_connection_strings,
    introduce=_introduce,
    # As `models.collections.records.MARK`, whose module a spec does not load.
    collections=(
        CollectionKind("collection", "collections", owns=lambda settings: "mongo" in settings, explorer="collections"),
    ),
)

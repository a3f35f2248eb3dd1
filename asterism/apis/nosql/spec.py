"""Cosmos DB for NoSQL as a row of the table of doors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asterism.access.account_settings import CONSISTENCY_LEVELS, DEFAULT_CONSISTENCY
from asterism.apis.door_spec import (
    HIDDEN_KEY,
    CollectionKind,
    DoorSpec,
    Greeting,
    Introduction,
    PortSpec,
    SeedSpec,
    Surroundings,
)
from asterism.apis.settings import HOW, StartRefused, option

if TYPE_CHECKING:
    from asterism.apis.nosql.seed import SeedDatabase
    from asterism.apis.services import DoorServices
    from asterism.apis.transports.doors import AnyDoor


def parse_consistency(given: str) -> str:
    for level in CONSISTENCY_LEVELS:
        if level.lower() == given.lower():
            return level
    raise StartRefused(f"there is no consistency level {given!r}; the levels are {', '.join(CONSISTENCY_LEVELS)}")


@dataclass(frozen=True, slots=True)
class NoSqlSettings:
    lenient_sql: bool = option(
        False,
        "--lenient-sql",
        "Answer queries that run here though the service refuses them, such as ORDER BY in a subquery.",
        panel=HOW,
    )
    consistency: str = option(
        DEFAULT_CONSISTENCY,
        "--consistency",
        "Default consistency level of the account.",
        panel=HOW,
        metavar="LEVEL",
        parse=parse_consistency,
    )


def _build(services: DoorServices, settings: NoSqlSettings) -> Mapping[str, AnyDoor]:
    from asterism.apis.nosql.door import NoSqlDoor

    door = NoSqlDoor(
        services.documents,
        account=services.account,
        keys=services.keys,
        clock=services.clock,
        consistency=settings.consistency,
        limits=services.limits,
        scripts=services.scripts,
        lenient_sql=settings.lenient_sql,
        new_activity_id=services.new_request_id,
        guard=services.account_guard,
        query_memory=services.query_memory,
        meter=services.meter,
        collections=services.collections,
        mongo_address=lambda: _mongo_address(services),
        captures=services.captures,
    )
    return {"nosql": door}


def _mongo_address(services: DoorServices) -> str | None:
    """Return the address of the port for MongoDB's clients, who write what this door only reads."""
    place = services.peers.endpoints.get("mongo")
    return None if place is None else place.address


def _connection_strings(_: NoSqlSettings, server: Surroundings, with_secrets: bool) -> Mapping[str, str]:
    key = server.key if server.key_is_public or with_secrets else HIDDEN_KEY
    return {"nosql": f"AccountEndpoint={server.endpoints['nosql'].url};AccountKey={key};"}


def _greeting(settings: NoSqlSettings, server: Surroundings) -> Greeting:
    url = server.endpoints["nosql"].url
    lines = [("Endpoint", url), ("Connection string", _connection_strings(settings, server, False)["nosql"])]
    if not server.key_is_public:
        lines.append(("Key", "the one given with --key or ASTERISM_KEY; it is not shown here"))
    return Greeting(lines)


def _read_seed(databases: object, place: str) -> list[SeedDatabase]:
    from asterism.apis.nosql.seed import read_databases

    return read_databases(databases, place)


async def _create_seed(services: DoorServices, databases: list[SeedDatabase]) -> Sequence[str]:
    from asterism.apis.nosql.seed import create_databases

    return await create_databases(services, databases)


def _introduce(settings: NoSqlSettings, server: Surroundings, account: str, key: str) -> Introduction:
    from asterism.apis.nosql.introduction import introduce

    return introduce(settings, server, account, key)


SPEC = DoorSpec(
    name="nosql",
    help="Cosmos DB for NoSQL",
    ports=(PortSpec("nosql", "--port", 8081, "Port to listen on; 0 for any."),),
    settings=NoSqlSettings,
    accounts=("cosmos",),
    modules=("asterism.apis.nosql.door",),
    build=_build,
    greeting=_greeting,
    introduce=_introduce,
    connection_strings=_connection_strings,
    # As `CosmosProfile.describes`, whose module a spec does not load.
    collections=(
        CollectionKind(
            "container", "containers", owns=lambda settings: "indexingPolicy" in settings, explorer="documents"
        ),
    ),
    seed=SeedSpec(
        "databases",
        '"databases": [{"id", "containers": [{"id", "partitionKey", "items"}]}]',
        read=_read_seed,
        create=_create_seed,
    ),
)

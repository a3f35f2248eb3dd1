"""Cosmos DB for Apache Gremlin as a row of the table of doors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from asterism.apis.door_spec import HIDDEN_KEY, DoorSpec, Endpoint, Greeting, Introduction, PortSpec, Surroundings
from asterism.apis.gremlin.settings import GremlinSettings

if TYPE_CHECKING:
    from asterism.apis.services import DoorServices
    from asterism.apis.transports.doors import AnyDoor


def _build(services: DoorServices, settings: GremlinSettings) -> Mapping[str, AnyDoor]:
    from asterism.apis.gremlin.accounts import GraphAccount, GraphAccounts
    from asterism.apis.gremlin.door import GremlinDoor
    from asterism.apis.gremlin.http import HttpScripts
    from asterism.apis.gremlin.login import LoginDesk
    from asterism.apis.gremlin.running import Runner
    from asterism.languages.gremlin.engine.run import RunLimits
    from asterism.languages.gremlin.service import GremlinService
    from asterism.languages.gremlin.text.parser import TextLimits

    documents = services.documents
    engine = GremlinService(
        documents,
        account=services.account,
        monotonic=services.clock.monotonic_seconds,
        run_limits=RunLimits(
            seconds=settings.gremlin_evaluation_seconds_max,
            values=settings.gremlin_values_max,
            loops=settings.gremlin_loops_max,
        ),
        text_limits=TextLimits(text_bytes_max=settings.gremlin_script_bytes_max, steps_max=settings.gremlin_steps_max),
    )
    accounts = GraphAccounts(GraphAccount(services.account, services.keys), documents.catalog.accounts)
    desk = LoginDesk(accounts, documents, wall_seconds=services.clock.wall_seconds)
    runner = Runner(engine, settings, services.meter, new_activity_id=services.new_request_id)
    guard = services.account_guard
    scripts = HttpScripts(runner, desk, guard, new_request_id=services.new_request_id)
    return {"gremlin": GremlinDoor(runner, desk, scripts, guard)}


def websocket_url(place: Endpoint) -> str:
    return f"{'wss' if place.is_encrypted else 'ws'}://{place.address}/"


def _connection_strings(_: GremlinSettings, server: Surroundings, with_secrets: bool) -> Mapping[str, str]:
    key = server.key if server.key_is_public or with_secrets else HIDDEN_KEY
    place = server.endpoints["gremlin"]
    return {"gremlin": f"GremlinEndpoint={websocket_url(place)};AccountKey={key};ApiKind=Gremlin;"}


def _greeting(_: GremlinSettings, server: Surroundings) -> Greeting:
    return Greeting([("Gremlin", f"{websocket_url(server.endpoints['gremlin'])} (user /dbs/DATABASE/colls/GRAPH)")])


def _introduce(settings: GremlinSettings, server: Surroundings, account: str, key: str) -> Introduction:
    from asterism.apis.gremlin.introduction import introduce

    return introduce(settings, server, account, key)


SPEC = DoorSpec(
    name="gremlin",
    help="Cosmos DB for Apache Gremlin",
    ports=(
        # That of the vendor's emulator.
        PortSpec(
            "gremlin",
            "--gremlin-port",
            8901,
            "Port for Gremlin clients: websockets, and scripts over HTTP; 0 for any.",
            transport="http+websocket",
            request_limit="gremlin_message_bytes_max",
            idle_limit="gremlin_idle_seconds_max",
        ),
    ),
    settings=GremlinSettings,
    accounts=("cosmos",),
    modules=("asterism.apis.gremlin.door", "asterism.languages.gremlin.service"),
    build=_build,
    greeting=_greeting,
    introduce=_introduce,
    connection_strings=_connection_strings,
)

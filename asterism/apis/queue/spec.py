"""Azure Queue storage as one row of the table of doors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asterism.apis.door_spec import CollectionKind, DoorSpec, Greeting, Introduction, PortSpec, Surroundings
from asterism.apis.storage.settings import StorageSettings
from asterism.apis.storage.spec_texts import connection_string, warnings_about
from asterism.limits import MIB, limit

if TYPE_CHECKING:
    from asterism.apis.services import DoorServices
    from asterism.apis.transports.doors import AnyDoor


@dataclass(frozen=True, slots=True)
class QueueSettings(StorageSettings):
    # The door refuses larger messages in its protocol's own words; only larger bodies still are refused before.
    queue_request_bytes_max: int = limit(
        MIB, "The largest body of a request that the port for queues reads; a message has at most 64 KB."
    )


def _build(services: DoorServices, settings: QueueSettings) -> Mapping[str, AnyDoor]:
    from asterism.apis.queue.door import make_door

    return {"queue": make_door(services, settings)}


def _connection_strings(settings: QueueSettings, server: Surroundings, with_secrets: bool) -> Mapping[str, str]:
    account = next(iter(settings.accounts.values()))
    return {"queue": connection_string(account, {"Queue": server.endpoints["queue"]}, with_secrets=with_secrets)}


def _greeting(settings: QueueSettings, server: Surroundings) -> Greeting:
    account = next(iter(settings.accounts))
    return Greeting([("Queues", f"{server.endpoints['queue'].url}{account}")], warnings_about(settings, server))


def _introduce(settings: QueueSettings, server: Surroundings, account: str, key: str) -> Introduction:  # noqa: ARG001
    from asterism.apis.queue.introduction import introduce

    return introduce(server, account, key)


SPEC = DoorSpec(
    name="queue",
    help="Azure Queue storage",
    ports=(
        # Azurite's, where clients look with `UseDevelopmentStorage=true`.
        PortSpec(
            "queue",
            "--queue-port",
            10001,
            "Port for Azure Queue storage; 0 for any.",
            request_limit="queue_request_bytes_max",
        ),
    ),
    settings=QueueSettings,
    accounts=("storage",),
    modules=("asterism.apis.queue.door",),
    build=_build,
    greeting=_greeting,
    introduce=_introduce,
    connection_strings=_connection_strings,
    collections=(
        CollectionKind(
            "queues",
            "queues",
            owns=lambda settings: "queues" in settings,
            explorer=None,
            is_in_database=False,
            parameter="queue",
            is_shared=True,
        ),
    ),
    account_keys=lambda settings: settings.first_keys(),
)

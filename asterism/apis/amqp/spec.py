"""Azure Service Bus and Event Hubs over AMQP as one row of the table of doors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from asterism.apis.amqp.accounts import DEFAULT_NAMESPACE
from asterism.apis.amqp.connection_text import administration_string, connection_string
from asterism.apis.amqp.settings import MessagingSettings
from asterism.apis.door_spec import (
    HIDDEN_KEY,
    CollectionKind,
    DoorSpec,
    Greeting,
    Introduction,
    PortSpec,
    Surroundings,
)

if TYPE_CHECKING:
    from asterism.apis.services import DoorServices
    from asterism.apis.transports.doors import AnyDoor

# As `models/namespaces/store.py` names them in the settings of a keyspace; importing it here would take long.
_KIND = "messagingKind"
_NAME = "messagingName"


def _build(services: DoorServices, settings: MessagingSettings) -> Mapping[str, AnyDoor]:
    from asterism.apis.amqp.door import make_doors

    return make_doors(services, settings)


async def _prepare(services: DoorServices, settings: MessagingSettings) -> Sequence[str]:
    if settings.messaging_config is None:
        return ()
    from asterism.apis.amqp.door import create_configured

    return await create_configured(services, settings)


def _connection_strings(settings: MessagingSettings, server: Surroundings, with_secrets: bool) -> Mapping[str, str]:
    account = next(iter(settings.namespaces.values()))
    key = account.keys[0] if account.is_public or with_secrets else HIDDEN_KEY
    return {
        "amqp": connection_string(server.endpoints["amqp"], key),
        "messaging": administration_string(server.endpoints["messaging"], key),
    }


def _greeting(settings: MessagingSettings, server: Surroundings) -> Greeting:
    ports = {name: place.address for name, place in server.endpoints.items()}
    default, *others = settings.namespaces
    lines = [
        ("Service Bus, hubs", f"sb://{ports['amqp']}/ (namespace {default}; TLS also at {ports['amqps']})"),
        ("Their management", f"https://{ports['messaging']}/"),
    ]
    if others:
        lines.append(("Other namespaces", ", ".join(others)))
    warnings = []
    if any(account.is_public for account in settings.namespaces.values()) and not server.is_local:
        warnings.append(
            f"everybody knows the key of the namespace {DEFAULT_NAMESPACE}; give Service Bus and Event Hubs a "
            "namespace of your own with --messaging-namespace."
        )
    return Greeting(lines, warnings)


def _introduce(settings: MessagingSettings, server: Surroundings, account: str, key: str) -> Introduction:
    from asterism.apis.amqp.introduction import introduce

    default = next(iter(settings.namespaces.values()))
    # The operator's account is of another kind, also if a namespace has its name.
    own = settings.namespaces.get(account, default if account == server.account else None)
    name, text = (account, key) if own is None else (own.name, own.keys[0])
    return introduce(server, name, text, is_default=name == default.name)


SPEC = DoorSpec(
    name="amqp",
    help="Azure Service Bus and Event Hubs over AMQP",
    ports=(
        # The emulators', and that of AMQP without TLS. Every client can be served here: with TLS, over websockets,
        # and for administration.
        PortSpec(
            "amqp",
            "--amqp-port",
            5672,
            "Port for Service Bus and Event Hubs over AMQP, with and without TLS; 0 for any.",
            transport="tcp+http+websocket",
            encryption="optional",
            request_limit="messaging_request_bytes_max",
        ),
        # Clients that are given no emulator's string use this port, and always TLS: the door refuses others there.
        # With "always" every start of the server would wait for a certificate that few clients ask for.
        PortSpec(
            "amqps",
            "--amqps-port",
            5671,
            "Port for the same with TLS only; 0 for any.",
            transport="tcp+http+websocket",
            encryption="optional",
            request_limit="messaging_request_bytes_max",
        ),
        # The emulators' port for administration.
        PortSpec(
            "messaging",
            "--messaging-port",
            5300,
            "Port for the administration of Service Bus and Event Hubs, and for AMQP; 0 for any.",
            transport="tcp+http+websocket",
            encryption="optional",
            request_limit="messaging_request_bytes_max",
        ),
    ),
    settings=MessagingSettings,
    accounts=("messaging",),
    modules=("asterism.apis.amqp.door",),
    build=_build,
    prepare=_prepare,
    greeting=_greeting,
    introduce=_introduce,
    connection_strings=_connection_strings,
    collections=(
        CollectionKind(
            "hub",
            "hubs",
            owns=lambda settings: settings.get(_KIND) == "hub",
            explorer="events",
            name_property=_NAME,
            is_in_database=False,
            parameter="hub",
        ),
        CollectionKind(
            "bus entity",
            "bus entities",
            owns=lambda settings: settings.get(_KIND) in ("queue", "topic"),
            explorer="messages",
            name_property=_NAME,
            is_in_database=False,
            parameter="entity",
        ),
    ),
)

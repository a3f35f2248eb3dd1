"""Connection strings of namespaces, as the official clients read them."""

from __future__ import annotations

from typing import Final

from asterism.apis.door_spec import Endpoint

ROOT_RULE: Final = "RootManageSharedAccessKey"
# Clients use the port of a string, and AMQP without TLS, only with it [contract, section B].
_EMULATOR: Final = "UseDevelopmentEmulator=true;"


def connection_string(endpoint: Endpoint, key: str) -> str:
    """Return the string for clients that send and receive, without TLS."""
    return f"{_common(endpoint, key)}{_EMULATOR}"


def administration_string(endpoint: Endpoint, key: str) -> str:
    """Return the string for clients that create and list entities, which use https whatever the string says."""
    return _common(endpoint, key)


def _common(endpoint: Endpoint, key: str) -> str:
    return f"Endpoint=sb://{endpoint.address};SharedAccessKeyName={ROOT_RULE};SharedAccessKey={key};"

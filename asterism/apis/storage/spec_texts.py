"""Texts about storage accounts that the specs of the doors share: connection strings, and a warning."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from asterism.access.keys import DEVELOPMENT_ACCOUNT
from asterism.apis.door_spec import HIDDEN_KEY, Endpoint, Surroundings
from asterism.apis.storage.accounts import Account
from asterism.apis.storage.settings import StorageSettings


def connection_string(account: Account, places: Mapping[str, Endpoint], *, with_secrets: bool) -> str:
    """Return a connection string; `places` are endpoints by service as the string spells it: Table, Queue, Blob."""
    key = base64.b64encode(account.keys[0]).decode() if account.is_public or with_secrets else HIDDEN_KEY
    return connection_text(account.name, key, places)


def connection_text(account: str, key: str, places: Mapping[str, Endpoint]) -> str:
    scheme = "https" if any(place.is_encrypted for place in places.values()) else "http"
    named = "".join(f"{service}Endpoint={place.url}{account};" for service, place in places.items())
    return f"DefaultEndpointsProtocol={scheme};AccountName={account};AccountKey={key};{named}"


def warnings_about(settings: StorageSettings, server: Surroundings) -> list[str]:
    """Return the warning of a server that others can reach while the only account has a public key."""
    if settings.has_own_accounts or server.is_local:
        return []
    return [
        f"everybody knows the key of the account {DEVELOPMENT_ACCOUNT}; give tables, queues and blobs accounts of your "
        "own with --storage-account."
    ]

"""Credentials of a directory for the clients' tests: for messaging, and for the storage account of the checkpoints."""

from __future__ import annotations

from typing import Any

from azure.core.credentials import AccessToken

from conformance import credentials
from conformance.amqp.namespace import KEY

AUDIENCE = "https://servicebus.azure.net/"


def messaging_token() -> AccessToken:
    """A token signed with the key of the namespace: its text, which is no base64."""
    return credentials.signed_token(KEY.encode(), audience=AUDIENCE)


def token(scope: str) -> AccessToken:
    return credentials.token(scope) if "storage" in scope else messaging_token()


class Credential(credentials.Credential):
    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        return token(scopes[0])

    def close(self) -> None:
        return None

    def __enter__(self) -> Credential:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


class AsyncCredential(credentials.AsyncCredential):
    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        return token(scopes[0])


def get_credential(*, is_async: bool = False, **_: Any) -> Credential | AsyncCredential:
    return AsyncCredential() if is_async else Credential()

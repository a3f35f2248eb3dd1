"""Tokens for the clients' tests, as a directory would issue them, signed with the key of the account instead."""

from __future__ import annotations

import base64
import hmac
import json
import os
import time
from typing import Any

from azure.core.credentials import AccessToken

TENANT = "5f0c4a2e-0000-4000-8000-000000000001"
USER = "5f0c4a2e-0000-4000-8000-000000000002"


def token(scope: str) -> AccessToken:
    key = os.environ["ASTERISM_TESTS_COSMOS_TOKEN_KEY" if "cosmos" in scope else "ASTERISM_TESTS_STORAGE_TOKEN_KEY"]
    return signed_token(base64.b64decode(key), audience=scope.removesuffix("/.default"))


def signed_token(key: bytes, *, audience: str) -> AccessToken:
    now = int(time.time())
    claims = {
        "aud": audience,
        "iss": f"https://sts.windows.net/{TENANT}/",
        "tid": TENANT,
        "oid": USER,
        "nbf": now - 60,
        "exp": now + 3600,
    }
    signed = f"{_part(json.dumps({'alg': 'HS256', 'typ': 'JWT'}).encode())}.{_part(json.dumps(claims).encode())}"
    digest = hmac.digest(key, signed.encode(), "sha256")
    return AccessToken(f"{signed}.{_part(digest)}", now + 3600)


def _part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class Credential:
    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        return token(scopes[0])


class AsyncCredential:
    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        return token(scopes[0])

    async def close(self) -> None:
        pass

    async def __aenter__(self) -> AsyncCredential:
        return self

    async def __aexit__(self, *_: Any) -> None:
        pass

"""Tokens for the client's tests, as a directory would issue them, signed with the key of the account instead."""

from __future__ import annotations

import base64
import hmac
import json
import os
import time
from typing import Any

from azure.core.credentials import AccessToken


def token(scope: str) -> AccessToken:
    kind = "COSMOS" if "cosmos" in scope else "STORAGE"
    now = int(time.time())
    claims = {
        "aud": scope.removesuffix("/.default"),
        "iss": "https://sts.windows.net/00000000-0000-0000-0000-000000000000/",
        "nbf": now - 60,
        "exp": now + 3600,
    }
    signed = f"{_part(json.dumps({'alg': 'HS256', 'typ': 'JWT'}).encode())}.{_part(json.dumps(claims).encode())}"
    digest = hmac.digest(
        base64.b64decode(os.environ[f"ASTERISM_TESTS_TABLES_PRIMARY_{kind}_ACCOUNT_KEY"]), signed.encode(), "sha256"
    )
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

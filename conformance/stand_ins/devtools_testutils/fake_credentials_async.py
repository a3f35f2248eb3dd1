"""The same for coroutines."""

from __future__ import annotations

from typing import Any

from azure.core.credentials import AccessToken

# Long after any test.
EXPIRES_ON_WALL_SECONDS = 4_102_444_800


class AsyncFakeCredential:
    async def get_token(self, *_: Any, **__: Any) -> AccessToken:
        return AccessToken("no token", EXPIRES_ON_WALL_SECONDS)

    async def close(self) -> None:
        pass

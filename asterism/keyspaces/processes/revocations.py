"""Tokens that were withdrawn before their time, such as sessions that a visitor has ended: all processes refuse them.

They are kept in memory until they would have expired. A server that starts again has forgotten them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

# A report goes through the store; the oldest beyond this are forgotten first.
REVOCATIONS_MAX: Final = 1000


class Revocations:
    """The tokens withdrawn in this process and in others. A `Presence` of `Coordination`."""

    is_busy = False

    def __init__(self, *, wall_seconds: Callable[[], float]) -> None:
        self._wall_seconds = wall_seconds
        # The id of a token, and when it expires.
        self._expiry: dict[str, int] = {}
        # Called when the others should hear of this process soon.
        self.on_news: Callable[[], None] | None = None

    def revoke(self, token_id: str, expires_at: int) -> None:
        self._forget_expired()
        while len(self._expiry) >= REVOCATIONS_MAX:
            del self._expiry[next(iter(self._expiry))]
        self._expiry[token_id] = expires_at
        if self.on_news is not None:
            self.on_news()

    def is_revoked(self, token_id: str) -> bool:
        return token_id in self._expiry

    def report(self) -> Mapping[str, Any]:
        self._forget_expired()
        return {"revoked": dict(self._expiry)} if self._expiry else {}

    def hear(self, reports: list[Mapping[str, Any]]) -> None:
        for report in reports:
            self._expiry |= report.get("revoked", {})

    def _forget_expired(self) -> None:
        now = self._wall_seconds()
        self._expiry = {token_id: end for token_id, end in self._expiry.items() if end > now}

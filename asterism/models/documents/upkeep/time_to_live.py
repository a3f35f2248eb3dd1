"""The time to live of a container's items: the container's default, and what its codec finds in the item itself."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.models.documents.codec import DocumentCodec


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """The rule of a container whose items may expire. `default_seconds` is -1 where only items expire that say so."""

    codec: DocumentCodec
    default_seconds: int

    def expires_at(self, body: bytes) -> int | None:
        """Return the second from which a stored item is expired; None if it never is."""
        return self.codec.expires_at_seconds(body, default_ttl_seconds=self.default_seconds)

    def is_expired(self, body: bytes, *, now: float) -> bool:
        expires_at = self.codec.expires_at_seconds(body, default_ttl_seconds=self.default_seconds)
        return expires_at is not None and expires_at <= now

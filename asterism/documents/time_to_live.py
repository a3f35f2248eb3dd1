"""How long items live: the container's default, the item's own wish, and what follows from the two.

Time counts from an item's last change (`_ts`). A container without a default lets its items live for ever, whatever
they wish; with the default -1 only items that wish it come to an end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from asterism.errors import MalformedRequest
from asterism.values.item import Item
from asterism.values.json_text import loads_stored, unreadable

# A 32-bit integer in the service.
TTL_SECONDS_MAX = 2**31 - 1
FOR_EVER = -1

# `_ts` is the last property of every stored item, so the text tells it without being parsed.
_TIMESTAMP = b'"_ts":'
_OWN_TTL = b'"ttl":'


def check_item_ttl(item: Mapping[str, object]) -> None:
    """Refuses a `ttl` that is no number of seconds and not -1, as the service does in every container."""
    ttl = item["ttl"]
    is_whole = type(ttl) is int or (type(ttl) is float and ttl.is_integer())
    seconds = int(cast(float, ttl)) if is_whole else 0
    if seconds != FOR_EVER and not 1 <= seconds <= TTL_SECONDS_MAX:
        raise MalformedRequest(
            reason=f"The input ttl '{str(ttl)[:32]}' is invalid. Ensure to provide a nonzero positive integer less "
            f"than or equal to '{TTL_SECONDS_MAX}', or -1 for an item that never expires."
        )


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """A container's rule; there is none where the container has no default."""

    default_seconds: int

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> TimeToLive | None:
        default = settings.get("defaultTtl")
        return cls(default) if type(default) is int else None

    def expires_at(self, body: bytes) -> int | None:
        """The second from which a stored item is gone; None when it lives for ever."""
        seconds = self.default_seconds
        if _OWN_TTL in body:
            seconds = self._own_seconds(body)
        if seconds == FOR_EVER:
            return None
        try:
            changed_at = int(body[body.rindex(_TIMESTAMP) + len(_TIMESTAMP) : -1])
        except ValueError:
            raise unreadable(body) from None
        return changed_at + seconds

    def is_expired(self, body: bytes, *, now: float) -> bool:
        expires_at = self.expires_at(body)
        return expires_at is not None and expires_at <= now

    def _own_seconds(self, body: bytes) -> int:
        own = cast(Item, loads_stored(body)).get("ttl")
        # A property of that name may also stand deeper in the item, where it says nothing.
        return int(own) if isinstance(own, int | float) else self.default_seconds

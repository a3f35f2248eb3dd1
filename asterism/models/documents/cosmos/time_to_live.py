"""The time to live that an item asks for itself, in its property `ttl`.

Time counts from an item's last change (`_ts`). A container without a default keeps its items for ever, whatever they
ask for; with the default -1 only items expire that ask for it.
"""

from __future__ import annotations

from typing import Any

from asterism.errors import MalformedRequest

# A 32-bit integer in the service.
TTL_SECONDS_MAX = 2**31 - 1
FOR_EVER = -1


def check_item_ttl(ttl: Any) -> None:
    """Refuse a `ttl` that is neither a number of seconds nor -1, as the service does in every container."""
    is_whole = type(ttl) is int or (type(ttl) is float and ttl.is_integer())
    seconds = int(ttl) if is_whole else 0
    if seconds != FOR_EVER and not 1 <= seconds <= TTL_SECONDS_MAX:
        raise MalformedRequest(
            reason=f"The input ttl '{str(ttl)[:32]}' is invalid. Ensure to provide a nonzero positive integer less "
            f"than or equal to '{TTL_SECONDS_MAX}', or -1 for an item that never expires."
        )

"""Addresses of the bus: entities, subscriptions of topics, and the sub-queues of both.

Names are compared without regard to case, and may contain slashes: an address that is the name of an entity as a whole
is that entity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from asterism.models.messages.messages import SubQueue

MANAGEMENT: Final = "$management"
_SUBSCRIPTIONS: Final = "/subscriptions/"
# The longer ending first: the shorter is an ending of it.
_SUB_QUEUES: Final = (
    ("/$transfer/$deadletterqueue", SubQueue.TRANSFER_DEAD_LETTER),
    ("/$deadletterqueue", SubQueue.DEAD_LETTER),
)


@dataclass(frozen=True, slots=True)
class BusAddress:
    """A place that clients send to or receive from, spelled as the client spelled it."""

    entity: str
    subscription: str | None = None
    sub_queue: SubQueue = SubQueue.MAIN


def parse_address(address: str, is_entity: Callable[[str], bool]) -> BusAddress:
    """Return the place that an address names; `is_entity` tells whether a name is that of an entity."""
    rest = address.strip("/")
    sub_queue = SubQueue.MAIN
    if is_entity(rest):
        return BusAddress(rest)
    for ending, found in _SUB_QUEUES:
        if rest.lower().endswith(ending):
            rest, sub_queue = rest[: -len(ending)], found
            break
    if is_entity(rest):
        return BusAddress(rest, None, sub_queue)
    # The last occurrence: a name of a subscription has no slash.
    at = rest.lower().rfind(_SUBSCRIPTIONS)
    if at < 0:
        return BusAddress(rest, None, sub_queue)
    return BusAddress(rest[:at], rest[at + len(_SUBSCRIPTIONS) :], sub_queue)


def is_management(address: str) -> bool:
    """Return whether an address is that of the requests about an entity, or about the namespace."""
    path = address.strip("/").lower()
    return path == MANAGEMENT or path.endswith(f"/{MANAGEMENT}")


def managed_path(address: str) -> str:
    """Return the path of the entity that an address of requests is about."""
    return address.strip("/")[: -len(MANAGEMENT)].rstrip("/")

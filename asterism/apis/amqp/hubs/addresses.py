"""Addresses of hubs: `hub`, `hub/Partitions/{id}`, `hub/ConsumerGroups/{group}/Partitions/{id}`, in any case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_PARTITIONS: Final = "partitions"
_GROUPS: Final = "consumergroups"


@dataclass(frozen=True, slots=True)
class SendAddress:
    hub: str
    # As the client spelled it; None if the server chooses.
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class ReceiveAddress:
    hub: str
    group: str
    partition: str


def hub_of(path: str) -> str:
    """Return the name of the hub that a path would be of."""
    return path.strip("/").partition("/")[0]


def parse_send_address(address: str) -> SendAddress | None:
    match address.strip("/").split("/"):
        case [hub] if hub:
            return SendAddress(hub)
        case [hub, partitions, partition] if partitions.lower() == _PARTITIONS:
            return SendAddress(hub, partition)
        case _:
            return None


def parse_receive_address(address: str) -> ReceiveAddress | None:
    match address.strip("/").split("/"):
        case [hub, groups, group, partitions, partition] if (groups.lower(), partitions.lower()) == (
            _GROUPS,
            _PARTITIONS,
        ):
            return ReceiveAddress(hub, group, partition)
        case _:
            return None


def partition_number(text: str, partition_count: int) -> int | None:
    """Return the number of a partition by its id; None if the hub has no such partition."""
    # Ids are plain numbers: neither signs nor leading zeros, and no digits of other scripts.
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(partition_count))
    if not is_number or str(int(text)) != text or int(text) >= partition_count:
        return None
    return int(text)

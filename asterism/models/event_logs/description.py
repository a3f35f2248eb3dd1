"""The description of a hub: plain JSON in the settings of its keyspace, and what an operator may set there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

from asterism.errors import MalformedRequest, QuotaExceeded, ResourceNotFound
from asterism.limits import MIB

DEFAULT_GROUP: Final = "$Default"
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_GROUP_NAME_CHARACTERS_MAX: Final = 50

Status = Literal["Active", "Disabled", "SendDisabled", "ReceiveDisabled"]
_STATUSES: Final = get_args(Status)


@dataclass(frozen=True, slots=True)
class HubLimits:
    """The limits of hubs, with the service's defaults; an operator may raise them."""

    # The service has 32, and up to 2,000 in its dedicated tier.
    partitions_max: int = 32
    groups_max: int = 20
    name_characters_max: int = 256
    # The vendor's emulator keeps events for an hour; the service for 1 to 7 days, or 90 in its dearer tiers.
    retention_ms_min: int = HOUR_MS
    retention_ms_max: int = 90 * DAY_MS
    # The largest event, and the largest batch. The service's 1 MB; 20 MB in its dedicated tier.
    message_bytes_max: int = MIB
    # Receivers without an epoch, for each group and partition.
    plain_receivers_max: int = 5
    # Of each hub that has none of its own; None: its throughput is not limited.
    throughput_units: int | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    # As it was created; names are compared without regard to case.
    name: str
    created_ms: int
    metadata: str | None = None
    updated_ms: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "created": self.created_ms,
            "updated": self.updated_ms or self.created_ms,
            "metadata": self.metadata,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ConsumerGroup:
        return cls(stored["name"], stored["created"], stored.get("metadata"), stored["updated"])


@dataclass(frozen=True, slots=True)
class HubDescription:
    """Everything that is set about a hub. Times are milliseconds since 1970."""

    partition_count: int
    created_ms: int
    updated_ms: int
    retention_ms: int = DAY_MS
    # None: only time removes events.
    retention_bytes: int | None = None
    status: Status = "Active"
    # By name in lower case.
    consumer_groups: Mapping[str, ConsumerGroup] = field(default_factory=dict)
    # Plain JSON, which doors understand.
    authorization_rules: tuple[Mapping[str, Any], ...] = ()
    # None: as the server's limits say.
    throughput_units: int | None = None
    # Free text for the owner of the hub.
    user_metadata: str | None = None

    @property
    def takes_events(self) -> bool:
        return self.status in ("Active", "ReceiveDisabled")

    @property
    def gives_events(self) -> bool:
        return self.status in ("Active", "SendDisabled")

    def group(self, name: str) -> ConsumerGroup | None:
        return self.consumer_groups.get(name.lower())

    def to_json(self) -> dict[str, Any]:
        return {
            "partitionCount": self.partition_count,
            "created": self.created_ms,
            "updated": self.updated_ms,
            "retentionMs": self.retention_ms,
            "retentionBytes": self.retention_bytes,
            "status": self.status,
            "consumerGroups": [group.to_json() for group in self.consumer_groups.values()],
            "authorizationRules": [dict(rule) for rule in self.authorization_rules],
            "throughputUnits": self.throughput_units,
            "userMetadata": self.user_metadata,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> HubDescription:
        groups = [ConsumerGroup.from_json(group) for group in stored["consumerGroups"]]
        return cls(
            partition_count=stored["partitionCount"],
            created_ms=stored["created"],
            updated_ms=stored["updated"],
            retention_ms=stored["retentionMs"],
            retention_bytes=stored["retentionBytes"],
            status=stored["status"],
            consumer_groups={group.name.lower(): group for group in groups},
            authorization_rules=tuple(stored["authorizationRules"]),
            throughput_units=stored["throughputUnits"],
            user_metadata=stored.get("userMetadata"),
        )


# --- rules ------------------------------------------------------------------------------------------------------------


def check_hub_name(name: str, limits: HubLimits) -> None:
    if len(name) > limits.name_characters_max or _NAME.fullmatch(name) is None:
        raise MalformedRequest(
            reason=f"The name of a hub has 1 to {limits.name_characters_max} letters, digits, periods, hyphens and "
            "underscores, and begins and ends with a letter or digit."
        )


def check_description(description: HubDescription, limits: HubLimits) -> None:
    """Refuse settings outside of the limits (MalformedRequest)."""
    _check_between("partition count", description.partition_count, 1, limits.partitions_max)
    _check_between(
        "retention in milliseconds", description.retention_ms, limits.retention_ms_min, limits.retention_ms_max
    )
    if description.retention_bytes is not None:
        _check_between("retention in bytes", description.retention_bytes, 1, 2**63 - 1)
    if description.throughput_units is not None:
        _check_between("number of throughput units", description.throughput_units, 1, 10_000)
    if description.status not in _STATUSES:
        raise MalformedRequest(reason=f"The status of a hub is {', '.join(_STATUSES[:-1])} or {_STATUSES[-1]}.")


def _check_between(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise MalformedRequest(reason=f"The {name} is {value:,}; choose {least:,} to {most:,}.")


def with_group(
    description: HubDescription, group: ConsumerGroup, *, namespace: str, limits: HubLimits
) -> HubDescription:
    """Return a description with a consumer group, in place of one with its name."""
    name = group.name
    is_valid = name == DEFAULT_GROUP or (len(name) <= _GROUP_NAME_CHARACTERS_MAX and _NAME.fullmatch(name) is not None)
    if not is_valid:
        raise MalformedRequest(
            reason=f"The name of a consumer group has 1 to {_GROUP_NAME_CHARACTERS_MAX} letters, digits, periods, "
            "hyphens and underscores, and begins and ends with a letter or digit."
        )
    groups = {**description.consumer_groups, name.lower(): group}
    if len(groups) > limits.groups_max:
        raise QuotaExceeded(
            account=namespace, quota="consumer groups of a hub", limit=limits.groups_max, total=len(groups)
        )
    return replace(description, consumer_groups=groups)


def without_group(description: HubDescription, name: str) -> HubDescription:
    """Return a description without a consumer group; ResourceNotFound if it has no group of that name."""
    if name.lower() == DEFAULT_GROUP.lower():
        raise MalformedRequest(reason=f"The consumer group {DEFAULT_GROUP} cannot be deleted.")
    if description.group(name) is None:
        raise ResourceNotFound(kind="consumer group", name=name)
    left = {key: group for key, group in description.consumer_groups.items() if key != name.lower()}
    return replace(description, consumer_groups=left)

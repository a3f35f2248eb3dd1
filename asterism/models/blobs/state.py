"""The state of a container: it stands in the settings of its keyspace, so every process has it in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self

from asterism.errors import StoredDamage
from asterism.models.blobs.leases import Lease

# The settings of a keyspace that is a container have this member, its name.
CONTAINER_MARK: Final = "container"
_STATE: Final = "state"


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """A stored access policy, in the words of the request that stored it."""

    policy_id: str
    start: str | None = None
    expiry: str | None = None
    permissions: str | None = None


@dataclass(frozen=True, slots=True)
class ContainerState:
    """Moments are ticks; `etag` rises with each change that clients can see."""

    created_at: int
    modified_at: int
    etag: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    # "container", "blob", or None for no access without credentials.
    public_access: str | None = None
    policies: tuple[AccessPolicy, ...] = ()
    lease: Lease | None = None
    default_encryption_scope: str | None = None
    denies_scope_override: bool = False
    # Blobs may have immutability policies of their own.
    has_version_immutability: bool = False
    # Soft-deleted: neither found nor listed with the others, and restored by its version.
    deleted_at: int | None = None
    retained_until: int | None = None
    deleted_version: str | None = None

    @property
    def is_deleted(self) -> bool:
        return self.deleted_at is not None

    def touched(self, now: int) -> Self:
        return replace(self, etag=max(now, self.etag + 1), modified_at=now)

    def to_settings(self, name: str) -> dict[str, Any]:
        stored = {key: value for key, value in asdict(self).items() if value is not None}
        return {CONTAINER_MARK: name, _STATE: stored}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        stored = dict(settings[_STATE])
        # Earlier programs stored it, always False.
        stored.pop("has_legal_hold", None)
        try:
            stored["policies"] = tuple(AccessPolicy(**policy) for policy in stored.get("policies", ()))
            if "lease" in stored:
                stored["lease"] = Lease(**stored["lease"])
            return cls(**stored)
        except TypeError:
            raise StoredDamage(what="container state") from None

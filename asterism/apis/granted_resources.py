"""Resource tokens against the permissions that issued them, for all doors that take such tokens."""

from __future__ import annotations

from asterism.access.resource_token import ResourceGrant
from asterism.errors import Forbidden
from asterism.keyspaces.catalog.owned_records import OwnedRecord, OwnedRecords

_READ = "read"


def granted_by(record: OwnedRecord) -> ResourceGrant:
    """Return the grant of a permission, without an expiry and bound to nothing."""
    properties = record.properties
    key = properties.get("resourcePartitionKey")
    return ResourceGrant(
        resource=properties["resource"].strip("/"),
        is_read_only=properties["permissionMode"].lower() == _READ,
        partition_key=None if key is None else tuple(key),
        expires_at_wall_seconds=0,
    )


def check_permission(permissions: OwnedRecords, grant: ResourceGrant) -> None:
    """Refuse a token whose permission was deleted, or grants something else by now."""
    if grant.permission_rid is None:
        return
    record = permissions.get(grant.permission_rid)
    if record is None:
        raise Forbidden(reason="The permission of the resource token has been deleted.")
    now = granted_by(record)
    if (now.resource, now.partition_key) != (grant.resource, grant.partition_key) or (
        now.is_read_only and not grant.is_read_only
    ):
        raise Forbidden(reason="The permission of the resource token has been changed. Read it again for a new token.")

"""The operations of the door, one line each. A route is found by method, kind of resource, `restype`, `comp`, and where
several remain by a header."""

from __future__ import annotations

from typing import Final

from asterism.access.sas_grants import ResourceType
from asterism.apis.blob.blobs import append, blocks, delete, get, lease, properties, put, tags, tiers
from asterism.apis.blob.block_list_xml import BLOCK_LIST_BYTES_MAX
from asterism.apis.blob.containers import containers, listing
from asterism.apis.blob.context import BlobContext
from asterism.apis.blob.kinds import BLOB, CONTAINER, SERVICE
from asterism.apis.blob.service import account, batch, find
from asterism.apis.blob.service.listing import list_containers
from asterism.apis.blob.tags import TAGS_BYTES_MAX
from asterism.apis.storage import service_calls
from asterism.apis.storage.routes import STREAMED, Handler, Needs, Route
from asterism.apis.storage.service_calls import READ_SERVICE, SERVICE_BODY_BYTES_MAX, WRITE_SERVICE

_SERVICE, _CONTAINER, _OBJECT = ResourceType.SERVICE, ResourceType.CONTAINER, ResourceType.OBJECT
_READ_CONTAINER: Final = Needs(_CONTAINER, "r", anonymous=True)
_WRITE_CONTAINER: Final = Needs(_CONTAINER, "w")
_READ: Final = Needs(_OBJECT, "r", "r", anonymous=True)
_WRITE: Final = Needs(_OBJECT, "w", "w")
_CREATE: Final = Needs(_OBJECT, "c|w", "c|w")
_APPEND: Final = Needs(_OBJECT, "a|w", "a|w")
_TAGS: Final = Needs(_OBJECT, "t", "t")
_LEASE: Final = Needs(_OBJECT, "w|d", "w|d")
_IMMUTABILITY: Final = Needs(_OBJECT, "i", "i")
# Every signature of the account or of a resource may ask what kind of account it is.
_ANY: Final = Needs(_SERVICE, "")


def _of(
    kind: str,
    method: str,
    comp: str | None,
    operation: str,
    handler: Handler[BlobContext],
    needs: Needs | None,
    help: str,
    *,
    restype: str | None = None,
    body: int = 0,
    header: str | None = None,
    is_write: bool | None = None,
) -> Route[BlobContext]:
    return Route(
        method,
        kind,
        operation,
        handler,
        help,
        comp=comp,
        restype=restype,
        needs=needs,
        body_bytes_max=body,
        header=header,
        is_write=is_write,
        looks_first=kind != BLOB,
    )


_OF_SERVICE: Final = (
    _of(
        SERVICE,
        "GET",
        "list",
        "list_containers",
        list_containers,
        Needs(_SERVICE, "l"),
        "The containers of the account, in pages.",
    ),
    _of(
        SERVICE,
        "GET",
        "properties",
        "read_properties",
        service_calls.get_properties,
        READ_SERVICE,
        "The service's properties.",
        restype="service",
    ),
    _of(
        SERVICE,
        "PUT",
        "properties",
        "set_properties",
        account.set_properties,
        WRITE_SERVICE,
        "Set the service's properties.",
        restype="service",
        body=SERVICE_BODY_BYTES_MAX,
    ),
    _of(
        SERVICE,
        "GET",
        "stats",
        "read_statistics",
        service_calls.get_statistics,
        READ_SERVICE,
        "The secondary location's delay.",
        restype="service",
    ),
    _of(
        SERVICE,
        "POST",
        "userdelegationkey",
        "read_user_delegation_key",
        service_calls.get_user_delegation_key,
        READ_SERVICE,
        "A key that signs for the holder of a bearer token.",
        restype="service",
        body=SERVICE_BODY_BYTES_MAX,
        is_write=False,
    ),
    _of(
        SERVICE,
        "GET",
        "properties",
        "read_account_information",
        account.get_account_info,
        None,
        "What kind of account it is.",
        restype="account",
    ),
    _of(
        SERVICE,
        "HEAD",
        "properties",
        "read_account_information",
        account.get_account_info,
        None,
        "What kind of account it is.",
        restype="account",
    ),
    _of(
        SERVICE,
        "GET",
        "blobs",
        "find_blobs",
        find.find_in_account,
        Needs(_SERVICE, "f"),
        "Find blobs of the account by their tags.",
    ),
    _of(
        SERVICE,
        "POST",
        "batch",
        "submit_batch",
        batch.submit_batch,
        None,
        "Delete blobs or set their tiers, many at once.",
        body=batch.BATCH_BYTES_MAX,
    ),
)

_OF_CONTAINERS: Final = (
    _of(
        CONTAINER,
        "GET",
        "properties",
        "read_account_information",
        account.get_account_info,
        None,
        "What kind of account it is.",
        restype="account",
    ),
    _of(
        CONTAINER,
        "HEAD",
        "properties",
        "read_account_information",
        account.get_account_info,
        None,
        "What kind of account it is.",
        restype="account",
    ),
    _of(
        CONTAINER,
        "PUT",
        None,
        "create_container",
        containers.create_container,
        Needs(_CONTAINER, "c|w"),
        "Create a container.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "GET",
        None,
        "read_container",
        containers.get_properties,
        _READ_CONTAINER,
        "A container's properties.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "GET",
        "metadata",
        "read_container_metadata",
        containers.get_metadata,
        _READ_CONTAINER,
        "A container's metadata.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "GET",
        "acl",
        "read_container_policies",
        containers.get_policies,
        Needs(_CONTAINER, ""),
        "A container's access policies.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "HEAD",
        None,
        "read_container",
        containers.get_properties,
        _READ_CONTAINER,
        "A container's properties.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "HEAD",
        "metadata",
        "read_container_metadata",
        containers.get_metadata,
        _READ_CONTAINER,
        "A container's metadata.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "HEAD",
        "acl",
        "read_container_policies",
        containers.get_policies,
        Needs(_CONTAINER, ""),
        "A container's access policies.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "PUT",
        "metadata",
        "set_container_metadata",
        containers.set_metadata,
        _WRITE_CONTAINER,
        "Replace a container's metadata.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "PUT",
        "acl",
        "set_container_policies",
        containers.set_policies,
        Needs(_CONTAINER, ""),
        "Set a container's access policies and public access.",
        restype="container",
        body=SERVICE_BODY_BYTES_MAX,
    ),
    _of(
        CONTAINER,
        "DELETE",
        None,
        "delete_container",
        containers.delete_container,
        Needs(_CONTAINER, "d"),
        "Delete a container with its blobs.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "PUT",
        "lease",
        "lease_container",
        containers.lease_container,
        Needs(_CONTAINER, "w|d"),
        "Acquire, renew, change, release or break a container's lease.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "PUT",
        "undelete",
        "restore_container",
        containers.restore_container,
        _WRITE_CONTAINER,
        "Restore a deleted container.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "GET",
        "list",
        "list_blobs",
        listing.list_blobs,
        Needs(_CONTAINER, "l", "l", anonymous=True),
        "The blobs of a container, flat or by hierarchy, in pages.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "GET",
        "blobs",
        "find_blobs_in_container",
        find.find_in_container,
        Needs(_CONTAINER, "f", "f"),
        "Find blobs of a container by their tags.",
        restype="container",
    ),
    _of(
        CONTAINER,
        "POST",
        "batch",
        "submit_batch",
        batch.submit_batch,
        None,
        "Delete blobs of a container or set their tiers, many at once.",
        restype="container",
        body=batch.BATCH_BYTES_MAX,
    ),
)

_OF_BLOBS: Final = (
    _of(
        BLOB,
        "GET",
        "properties",
        "read_account_information",
        account.get_account_info,
        None,
        "What kind of account it is.",
        restype="account",
    ),
    _of(
        BLOB,
        "HEAD",
        "properties",
        "read_account_information",
        account.get_account_info,
        None,
        "What kind of account it is.",
        restype="account",
    ),
    _of(BLOB, "GET", None, "get_blob", get.get_blob, _READ, "The data of a blob, or a range of them."),
    _of(BLOB, "HEAD", None, "read_blob_properties", get.head_blob, _READ, "All about a blob but its data."),
    _of(
        BLOB,
        "PUT",
        None,
        "put_blob",
        put.put_blob,
        _CREATE,
        "Make a block blob with its data, or an empty append or page blob.",
        body=STREAMED,
    ),
    _of(BLOB, "DELETE", None, "delete_blob", delete.delete_blob, None, "Delete a blob, a snapshot or a version."),
    _of(
        BLOB, "PUT", "undelete", "undelete_blob", delete.undelete_blob, _WRITE, "Restore what was deleted under a name."
    ),
    _of(
        BLOB,
        "PUT",
        "block",
        "put_block",
        blocks.put_block,
        _WRITE,
        "Put a block, to be committed later.",
        body=STREAMED,
    ),
    _of(
        BLOB,
        "PUT",
        "blocklist",
        "put_block_list",
        blocks.put_block_list,
        _WRITE,
        "Make a blob of blocks that were put.",
        body=BLOCK_LIST_BYTES_MAX,
    ),
    _of(BLOB, "GET", "blocklist", "read_block_list", blocks.get_block_list, _READ, "The blocks of a blob."),
    _of(
        BLOB,
        "PUT",
        "appendblock",
        "append_block",
        append.append_block,
        _APPEND,
        "Append a block to an append blob.",
        body=STREAMED,
    ),
    _of(BLOB, "PUT", "seal", "seal_blob", append.seal_blob, _APPEND, "Permit no more appends to a blob."),
    _of(BLOB, "GET", "metadata", "read_blob_metadata", properties.get_metadata, _READ, "A blob's metadata."),
    _of(BLOB, "HEAD", "metadata", "read_blob_metadata", properties.get_metadata, _READ, "A blob's metadata."),
    _of(BLOB, "PUT", "metadata", "set_blob_metadata", properties.set_metadata, _WRITE, "Replace a blob's metadata."),
    _of(
        BLOB,
        "PUT",
        "properties",
        "set_blob_properties",
        properties.set_http_headers,
        _WRITE,
        "Replace a blob's HTTP headers.",
    ),
    _of(BLOB, "PUT", "snapshot", "snapshot_blob", properties.snapshot_blob, _CREATE, "Take a snapshot of a blob."),
    _of(
        BLOB,
        "PUT",
        "lease",
        "lease_blob",
        lease.lease_blob,
        _LEASE,
        "Acquire, renew, change, release or break a blob's lease.",
    ),
    _of(BLOB, "PUT", "tier", "set_blob_tier", tiers.set_tier, _WRITE, "Move a blob to another tier."),
    _of(BLOB, "GET", "tags", "read_blob_tags", tags.get_tags, _TAGS, "A blob's tags."),
    _of(BLOB, "PUT", "tags", "set_blob_tags", tags.set_tags, _TAGS, "Replace a blob's tags.", body=TAGS_BYTES_MAX),
)

ROUTES: Final = (*_OF_SERVICE, *_OF_CONTAINERS, *_OF_BLOBS)

"""The operations on blobs that all of them have, and those of block and append blobs, one row each."""

from __future__ import annotations

from typing import Final

from asterism.apis.blob.blobs import append, blocks, delete, get, lease, properties, put, tags, tiers
from asterism.apis.blob.block_list_xml import BLOCK_LIST_BYTES_MAX
from asterism.apis.blob.kinds import BLOB
from asterism.apis.blob.route_rows import APPEND, CREATE, LEASE, READ, TAGS, WRITE, row
from asterism.apis.blob.service import account
from asterism.apis.blob.tags import TAGS_BYTES_MAX
from asterism.apis.storage.routes import STREAMED

BLOB_ROUTES: Final = (
    row(
        BLOB,
        "GET",
        "properties",
        "read_account_information",
        account.get_account_info,
        None,
        "What kind of account it is.",
        restype="account",
    ),
    row(
        BLOB,
        "HEAD",
        "properties",
        "read_account_information",
        account.get_account_info,
        None,
        "What kind of account it is.",
        restype="account",
    ),
    row(BLOB, "GET", None, "get_blob", get.get_blob, READ, "The data of a blob, or a range of them."),
    row(BLOB, "HEAD", None, "read_blob_properties", get.head_blob, READ, "All about a blob but its data."),
    row(
        BLOB,
        "PUT",
        None,
        "put_blob",
        put.put_blob,
        CREATE,
        "Make a block blob with its data, or an empty append or page blob.",
        body=STREAMED,
    ),
    row(
        BLOB,
        "DELETE",
        None,
        "delete_blob",
        delete.delete_blob,
        None,
        "Delete a blob, a snapshot or a version.",
        takes_versions=True,
    ),
    row(
        BLOB, "PUT", "undelete", "undelete_blob", delete.undelete_blob, WRITE, "Restore what was deleted under a name."
    ),
    row(
        BLOB,
        "PUT",
        "block",
        "put_block",
        blocks.put_block,
        CREATE,
        "Put a block, to be committed later.",
        body=STREAMED,
    ),
    row(
        BLOB,
        "PUT",
        "blocklist",
        "put_block_list",
        blocks.put_block_list,
        CREATE,
        "Make a blob of blocks that were put.",
        body=BLOCK_LIST_BYTES_MAX,
    ),
    row(BLOB, "GET", "blocklist", "read_block_list", blocks.get_block_list, READ, "The blocks of a blob."),
    row(
        BLOB,
        "PUT",
        "appendblock",
        "append_block",
        append.append_block,
        APPEND,
        "Append a block to an append blob.",
        body=STREAMED,
    ),
    row(BLOB, "PUT", "seal", "seal_blob", append.seal_blob, APPEND, "Permit no more appends to a blob."),
    row(BLOB, "GET", "metadata", "read_blob_metadata", properties.get_metadata, READ, "A blob's metadata."),
    row(BLOB, "HEAD", "metadata", "read_blob_metadata", properties.get_metadata, READ, "A blob's metadata."),
    row(BLOB, "PUT", "metadata", "set_blob_metadata", properties.set_metadata, WRITE, "Replace a blob's metadata."),
    row(
        BLOB,
        "PUT",
        "properties",
        "set_blob_properties",
        properties.set_http_headers,
        WRITE,
        "Replace a blob's HTTP headers.",
    ),
    row(BLOB, "PUT", "snapshot", "snapshot_blob", properties.snapshot_blob, CREATE, "Take a snapshot of a blob."),
    row(
        BLOB,
        "PUT",
        "lease",
        "lease_blob",
        lease.lease_blob,
        LEASE,
        "Acquire, renew, change, release or break a blob's lease.",
    ),
    row(
        BLOB, "PUT", "tier", "set_blob_tier", tiers.set_tier, WRITE, "Move a blob to another tier.", takes_versions=True
    ),
    row(BLOB, "GET", "tags", "read_blob_tags", tags.get_tags, TAGS, "A blob's tags."),
    row(
        BLOB,
        "PUT",
        "tags",
        "set_blob_tags",
        tags.set_tags,
        TAGS,
        "Replace a blob's tags.",
        body=TAGS_BYTES_MAX,
        takes_versions=True,
    ),
)

"""The operations of the door, one row each. A route is found by method, kind of resource, `restype`, `comp`, and where
several remain by a header."""

from __future__ import annotations

from typing import Final

from asterism.access.sas_grants import ResourceType
from asterism.apis.blob import website
from asterism.apis.blob.account_routes import ACCOUNT_ROUTES
from asterism.apis.blob.blob_routes import BLOB_ROUTES
from asterism.apis.blob.blobs import copies, expiry, from_url, immutability, pages, query
from asterism.apis.blob.kinds import BLOB, WEBSITE
from asterism.apis.blob.query_request import QUERY_REQUEST_BYTES_MAX
from asterism.apis.blob.route_rows import APPEND, CREATE, IMMUTABILITY, READ, WRITE, row
from asterism.apis.storage.routes import STREAMED, Needs

_FROM: Final = "x-ms-copy-source"
_RESIZE: Final = "x-ms-blob-content-length"
_SEQUENCE: Final = "x-ms-sequence-number-action"

_OF_PAGES_AND_SOURCES: Final = (
    row(
        BLOB,
        "PUT",
        None,
        "copy_blob",
        copies.put_from_source,
        CREATE,
        "Copy a blob, or make one of another's data.",
        header=_FROM,
    ),
    row(
        BLOB,
        "PUT",
        "incrementalcopy",
        "copy_blob_incrementally",
        copies.copy_snapshot,
        WRITE,
        "Copy what changed in a snapshot of a page blob since the last copied one.",
    ),
    row(BLOB, "PUT", "copy", "abort_copy", copies.abort_copy, WRITE, "End a copy that is pending."),
    row(
        BLOB,
        "PUT",
        "block",
        "put_block_from_url",
        from_url.put_block_from_url,
        CREATE,
        "Put a block of another blob's data.",
        header=_FROM,
    ),
    row(
        BLOB,
        "PUT",
        "appendblock",
        "append_block_from_url",
        from_url.append_block_from_url,
        APPEND,
        "Append another blob's data.",
        header=_FROM,
    ),
    row(
        BLOB,
        "PUT",
        "page",
        "put_pages_from_url",
        pages.put_pages_from_url,
        WRITE,
        "Write pages of another blob's data.",
        header=_FROM,
    ),
    row(BLOB, "PUT", "page", "put_pages", pages.put_pages, WRITE, "Write or clear pages.", body=STREAMED),
    row(
        BLOB,
        "GET",
        "pagelist",
        "read_page_ranges",
        pages.get_page_ranges,
        READ,
        "The pages that have data, or that differ from a snapshot.",
    ),
    row(BLOB, "PUT", "properties", "resize_blob", pages.resize, WRITE, "Resize a page blob.", header=_RESIZE),
    row(
        BLOB,
        "PUT",
        "properties",
        "set_sequence_number",
        pages.set_sequence_number,
        WRITE,
        "Set a page blob's sequence number.",
        header=_SEQUENCE,
    ),
    row(BLOB, "PUT", "expiry", "set_blob_expiry", expiry.set_expiry, WRITE, "Set the time from which a blob is gone."),
    row(
        BLOB,
        "PUT",
        "immutabilitypolicies",
        "set_immutability_policy",
        immutability.set_policy,
        IMMUTABILITY,
        "Forbid changes of a blob until a time.",
        takes_versions=True,
    ),
    row(
        BLOB,
        "DELETE",
        "immutabilitypolicies",
        "delete_immutability_policy",
        immutability.delete_policy,
        IMMUTABILITY,
        "Permit changes of a blob again.",
        takes_versions=True,
    ),
    row(
        BLOB,
        "PUT",
        "legalhold",
        "set_legal_hold",
        immutability.set_legal_hold,
        IMMUTABILITY,
        "Set or clear a blob's legal hold.",
        takes_versions=True,
    ),
)

_OF_QUERIES: Final = (
    row(
        BLOB,
        "POST",
        "query",
        "query_blob",
        query.query_blob,
        READ,
        "Select records of a blob.",
        body=QUERY_REQUEST_BYTES_MAX,
        is_write=False,
        takes_versions=True,
    ),
)

_OF_WEBSITE: Final = tuple(
    row(
        WEBSITE,
        method,
        None,
        "read_web_page",
        website.get_page,
        Needs(ResourceType.OBJECT, "r", "r", anonymous=True),
        "A page of the account's static web site.",
    )
    for method in ("GET", "HEAD")
)

# Of one key, those with a header stand before the one without.
ROUTES: Final = (*ACCOUNT_ROUTES, *_OF_PAGES_AND_SOURCES, *BLOB_ROUTES, *_OF_QUERIES, *_OF_WEBSITE)

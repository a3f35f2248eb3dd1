"""The index of the tags of a container's blobs: its entries, which change with the blobs.

Only the blob itself is found by its tags, not its snapshots and versions. A key has a digest of the tag's name, the
value, and the point of the blob, so that the blobs of one tag and value lie in the order of their names; an entry is in
the partition of its blob.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from asterism.models.blobs.layout import TAGS
from asterism.models.blobs.record import BlobRecord
from asterism.storage.contract import Batch
from asterism.values.ordered_text import ordered_text

_NAME_DIGEST_BYTES: Final = 8
# Values may have 256 bytes; those that are cut are told apart by the records that they lead to.
_VALUE_BYTES_MAX: Final = 200
_VALUE_END: Final = b"\x00"


def name_prefix(name: str) -> bytes:
    """Return what the keys of all values of a tag begin with."""
    return TAGS + hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_NAME_DIGEST_BYTES).digest()


def value_prefix(name: str, value: str) -> bytes:
    """Return what the keys of a tag and value begin with, before the point."""
    return name_prefix(name) + ordered_text(value)[:_VALUE_BYTES_MAX] + _VALUE_END


def plan_tags(batch: Batch, point: bytes, before: BlobRecord | None, after: BlobRecord | None) -> None:
    """Add the entries that follow from a change of a blob to its batch. None: there is no blob to be found."""
    old = _keys(point, before.tags) if before is not None and before.tags else set()
    new = _keys(point, after.tags) if after is not None and after.tags else set()
    if old or new:
        batch.deletes += old - new
        batch.puts += [(key, point) for key in new - old]


def _keys(point: bytes, tags: Mapping[str, str]) -> set[bytes]:
    return {value_prefix(name, value) + point for name, value in tags.items()}

"""All versions and deletes: what a container with a change-feed retention keeps of every change, images included.

An entry is written in the batch of the change it tells of, and removed when the retention has passed
(`version_retention`). Its value begins with the item's reference, which is what it is routed by when partitions split
or merge; what is needed to take it apart therefore stands at its end:

    reference | image after | image before | operation 1 | flags 1 | reference bytes 2 | bytes of the image after 4 |
    LSN of the image before 8 | wall seconds of the change 8
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, cast

from asterism.documents.item_record import StoredItem
from asterism.keyspaces.layout import VERSIONS, log_suffix, lsn_in_log_key
from asterism.partitioning.partition_key import PartitionKeyDefinition, extract
from asterism.storage.contract import Batch
from asterism.values.item import Item
from asterism.values.json_text import dumps, loads_stored
from asterism.values.undefined import UNDEFINED

_FOOTER = struct.Struct(">BBHIQQ")
_EXPIRED_FLAG = 1


class Operation(IntEnum):
    CREATE = 1
    REPLACE = 2
    DELETE = 3


_WORDS = {Operation.CREATE: "create", Operation.REPLACE: "replace", Operation.DELETE: "delete"}


def retention_seconds(settings: Mapping[str, Any]) -> int | None:
    """How long a container keeps versions and deletes; None if it keeps none. The policy tells it in minutes."""
    policy = settings.get("changeFeedPolicy")
    minutes = policy.get("retentionDuration") if isinstance(policy, Mapping) else None
    if isinstance(minutes, bool) or not isinstance(minutes, int) or minutes <= 0:
        return None
    return minutes * 60


def plan_version(
    batch: Batch,
    reference: bytes,
    *,
    number: int,
    place_in_batch: int,
    body: bytes | None,
    before: StoredItem | None,
    now_wall_seconds: float,
    expired: bool = False,
) -> None:
    """Adds the entry of one change to its batch. A `body` of None is a delete, and `expired` says what deleted it."""
    operation = Operation.DELETE if body is None else Operation.CREATE if before is None else Operation.REPLACE
    after = body or b""
    footer = _FOOTER.pack(
        operation,
        _EXPIRED_FLAG if expired else 0,
        len(reference),
        len(after),
        0 if before is None else before.lsn,
        int(now_wall_seconds),
    )
    value = b"".join((reference, after, b"" if before is None else before.body, footer))
    batch.stamped_puts.append((VERSIONS, log_suffix(place_in_batch=place_in_batch, item_number=number), value))


def changed_at_seconds(value: bytes) -> int:
    """When the change of an entry happened."""
    return int(_FOOTER.unpack_from(value, len(value) - _FOOTER.size)[5])


def version_row(key: bytes, value: bytes, definition: PartitionKeyDefinition) -> bytes:
    """An entry as the feed shows it: the images, and what is to be known of the change."""
    end = len(value) - _FOOTER.size
    told, flags, reference_bytes, after_bytes, before_lsn, seconds = _FOOTER.unpack_from(value, end)
    operation = Operation(told)
    after = value[reference_bytes : reference_bytes + after_bytes]
    before = value[reference_bytes + after_bytes : end]
    metadata: dict[str, object] = {"operationType": _WORDS[operation], "lsn": lsn_in_log_key(key), "crts": seconds}
    if operation is not Operation.CREATE:
        metadata["previousImageLSN"] = before_lsn
    if operation is Operation.DELETE:
        item = cast(Item, loads_stored(before))
        metadata["timeToLiveExpired"] = bool(flags & _EXPIRED_FLAG)
        metadata["id"] = item["id"]
        metadata["partitionKey"] = _key_json(definition, item)
    images = b'{"current":' + (after or b"{}")
    if before:
        images += b',"previous":' + before
    return images + b',"metadata":' + dumps(metadata) + b"}"


def _key_json(definition: PartitionKeyDefinition, item: Item) -> dict[str, object]:
    """The partition key by its paths; a level that the item does not have is left out."""
    values = extract(definition, item)
    named = zip(definition.paths, values, strict=False)
    return {path.lstrip("/"): value for path, value in named if value is not UNDEFINED}

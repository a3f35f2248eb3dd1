"""The rows of the service's two change feeds, as JSON text."""

from __future__ import annotations

from typing import cast

from asterism.models.documents.changes.item_version import ChangeKind, ItemVersion
from asterism.models.documents.cosmos.properties import ID, LSN
from asterism.partitioning.partition_key import PartitionKeyDefinition, extract
from asterism.values.identifiers import Lsn
from asterism.values.item import Item
from asterism.values.json.text import dumps, loads_stored
from asterism.values.undefined import UNDEFINED

_LSN_NAME = LSN.encode()
_WORDS = {ChangeKind.CREATE: "create", ChangeKind.REPLACE: "replace", ChangeKind.DELETE: "delete"}


def latest_row(body: bytes, lsn: Lsn) -> bytes:
    """Return an item with the LSN of its last change."""
    return b'%b,"%b":%d}' % (body[:-1], _LSN_NAME, lsn)


def version_row(version: ItemVersion, definition: PartitionKeyDefinition) -> bytes:
    """Return a change: the images of the item before and after, and the metadata."""
    metadata: dict[str, object] = {
        "operationType": _WORDS[version.kind],
        "lsn": version.lsn,
        "crts": version.changed_at_seconds,
    }
    if version.kind is not ChangeKind.CREATE:
        metadata["previousImageLSN"] = version.before_lsn
    if version.kind is ChangeKind.DELETE:
        item = cast(Item, loads_stored(version.before))
        metadata["timeToLiveExpired"] = version.is_expired
        metadata[ID] = item[ID]
        metadata["partitionKey"] = _key_json(definition, item)
    images = b'{"current":' + (version.after or b"{}")
    if version.before:
        images += b',"previous":' + version.before
    return images + b',"metadata":' + dumps(metadata) + b"}"


def _key_json(definition: PartitionKeyDefinition, item: Item) -> dict[str, object]:
    """Return the partition key by its paths; a level that the item does not have is left out."""
    values = extract(definition, item)
    named = zip(definition.paths, values, strict=False)
    return {path.lstrip("/"): value for path, value in named if value is not UNDEFINED}

"""The properties of a range of ordered keys that a range of hashes does not have: its keys, and its load by key."""

from __future__ import annotations

from typing import Any

from asterism.keyspaces.reshaping.load_watch import LoadWatch
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.partitioning.key_range import FULL
from asterism.partitioning.load_split import SAMPLES_MIN, Drift, hotspot_text, picture_of
from asterism.partitioning.partition_map import PartitionRange
from asterism.values.ordered_text import text_of_leading_part


def readable_key(point: bytes) -> str:
    """Return the key that an effective key was made of; of a long key the beginning."""
    text, is_whole = text_of_leading_part(point)
    return readable_text(text) if is_whole else f"{readable_text(text)}…"


def readable_text(text: str) -> str:
    """Return a text without halves of characters, which keys may have and which cannot be shown."""
    return text.encode("utf-8", "replace").decode()


def describe_ordered(watch: LoadWatch, keyspace: Keyspace, partition: PartitionRange) -> dict[str, Any]:
    """Return the first key of the range and the first behind it (null at the ends of the line), and its load."""
    interval = partition.range
    usage = keyspace.usage.get(partition.id)
    picture = picture_of(() if usage is None else tuple(usage.recent))
    load = watch.load_of(keyspace, partition.id)
    is_hot = load is not None and watch.is_hot(load)
    # Only present load is worth a message.
    moves = load is not None and load.ru_per_second > 0 and picture.drift is not Drift.NONE
    is_known = picture.hottest_key is not None and picture.samples >= SAMPLES_MIN
    return {
        "start_key": None if interval.start == FULL.start else readable_key(interval.start),
        "end_key": None if interval.end == FULL.end else readable_key(interval.end),
        "ru_per_second": 0.0 if load is None else round(load.ru_per_second, 1),
        "hot": is_hot,
        "drift": picture.drift.value if moves else Drift.NONE.value,
        "hottest_share": round(picture.hottest_share, 3) if is_known else None,
        "says": hotspot_text(picture.drift, partition) if moves else "" if load is None else load.refusal,
    }

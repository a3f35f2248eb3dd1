"""Merging of equal traversers into one with a bulk, so that a frontier is never larger than the graph."""

from __future__ import annotations

from collections.abc import Hashable

from asterism.languages.gremlin.engine.traverser import Batch, PathNode, Traverser
from asterism.languages.gremlin.failure import MemoryExceeded
from asterism.languages.gremlin.graph.elements import Edge, Vertex

# Merged traversers that are taken apart again at once.
UNMERGED_MAX = 1_000_000


def merged(batch: Batch) -> Batch:
    """Return the batch with one traverser for all that are at the same element, have the same labels behind them, and
    carry nothing else. The given traversers stay as they are.

    A whole path or a sack belongs to one traverser alone, and values that are no elements are cheap to keep apart.
    """
    if len(batch) < 2 or type(batch[0].path) is PathNode:
        return batch
    places: dict[Hashable, int] = {}
    found: Batch = []
    copied: set[int] = set()
    for traverser in batch:
        value = traverser.value
        kind = type(value)
        if (kind is not Vertex and kind is not Edge) or traverser.sack is not None:
            found.append(traverser)
            continue
        # True and 1 are equal in Python, but they are two partition keys. Labels are equal if they are the same place.
        path = traverser.path
        labels = None if path is None else id(path)
        key = (kind, traverser.origin, value.id, value.key, type(value.key), traverser.loop, labels)
        place = places.setdefault(key, len(found))
        if place == len(found):
            found.append(traverser)
            continue
        if place not in copied:
            copied.add(place)
            found[place] = found[place].copy()
        first = found[place]
        first.bulk += traverser.bulk
        if kind is Vertex and not first.value.is_loaded:
            first.value = value
    return found


def single(traverser: Traverser) -> Traverser:
    """Return the traverser without its bulk: the same object if it has none."""
    if traverser.bulk == 1:
        return traverser
    copied = traverser.copy()
    copied.bulk = 1
    return copied


def unmerged(batch: Batch) -> Batch:
    """Return a traverser of its own for each of those that were merged. Raises MemoryExceeded if they are too many: a
    loop over a few edges can make a bulk of any size."""
    count = sum([traverser.bulk for traverser in batch])
    if count == len(batch):
        return batch
    if count > UNMERGED_MAX:
        raise MemoryExceeded(f"A step would work on more than {UNMERGED_MAX} traversers. Filter or limit them earlier.")
    return [single(traverser) for traverser in batch for _ in range(traverser.bulk)]

"""Merging of equal traversers into one that counts for all of them."""

from __future__ import annotations

from collections.abc import Hashable

from asterism.languages.gremlin.engine.run import Run
from asterism.languages.gremlin.engine.traverser import Batch, PathNode, Traverser
from asterism.languages.gremlin.values.identity import identity_key


def bulked(batch: Batch, run: Run) -> Batch:
    """Return the batch with equal traversers as one, at the place of the first. The given traversers stay as they are.

    Traversers are equal if value, path, loops and sack are; sacks that have an operator to merge by are merged.
    """
    if len(batch) < 2:
        return batch
    found: dict[Hashable, Traverser] = {}
    merge_sacks, is_bulked = run.merge_sacks, run.is_bulked
    for traverser in batch:
        key = merge_key(traverser, ignores_sack=merge_sacks is not None)
        first = found.get(key)
        if first is None:
            found[key] = traverser
            continue
        copied = first.copy()
        copied.bulk = first.bulk + traverser.bulk if is_bulked else 1
        if merge_sacks is not None:
            copied.sack = merge_sacks(first.sack, traverser.sack)
        found[key] = copied
    return list(found.values())


def merge_key(traverser: Traverser, *, ignores_sack: bool) -> Hashable:
    """Return a key that two traversers share if they may be merged."""
    value = identity_key(traverser.value)
    path, loop, origin = traverser.path, traverser.loop, traverser.origin
    if path is None and loop is None and traverser.sack is None:
        return (value, origin)
    sack = None if ignores_sack or traverser.sack is None else identity_key(traverser.sack)
    return (value, origin, loop, sack, None if path is None else _path_key(path))


def _path_key(path: PathNode) -> Hashable:
    places: list[Hashable] = []
    node = path
    while node.parent is not None:
        places.append((identity_key(node.value), node.labels))
        node = node.parent
    return tuple(places)

"""Paths whose values were changed by the requests: the server refuses to change a partition key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.keys.sample_index import SampleIndex
from asterism.advisor.keys.sketches import shortened
from asterism.advisor.value_digests import Scalar

_WRITES = frozenset(("create", "upsert", "replace", "patch"))


def changed_paths(requests: Sequence[CapturedRequest], index: SampleIndex) -> Counter[str]:
    """Return how often a write of an item changed the value at a path: against the write before it, or else
    against the item in the sample: whether that is older or newer, the value was another once."""
    changed: Counter[str] = Counter()
    latest: dict[tuple[str, object], dict[str, Scalar]] = {}
    for request in requests:
        if request.operation not in _WRITES or request.item_id is None or (request.status or 0) >= 400:
            continue
        name = (request.item_id, request.key)
        before = latest.get(name)
        if before is None or request.operation == "create":
            row = None if request.operation == "create" else index.row_of_id(request.item_id)
            before = latest[name] = {} if row is None else dict(index.items[row].values)
        for path, given in request.values.items():
            value = shortened(given)
            if path in before and before[path] != value:
                changed[path] += 1
            before[path] = value
    return changed

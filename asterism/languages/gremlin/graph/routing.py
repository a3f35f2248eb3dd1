"""The way to the elements of a lookup, chosen from the lookup and the index policy alone.

Partition key and id together name items; keys alone name logical partitions; everything else is looked for in all
partitions, by an index if one helps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any, Final

from asterism.languages.gremlin.graph.contract import IndexCondition, Lookup
from asterism.languages.gremlin.graph.elements import KeyValue
from asterism.models.documents.indexes.paths import ARRAY_ELEMENT, Segment, path_token
from asterism.models.documents.indexes.rules import IndexingRules
from asterism.models.documents.indexes.terms import VALUE_BYTES_MAX
from asterism.reading.conditions import Comparison, OneOf, Operator, PathCondition
from asterism.reading.value_spans import spans_of

_OPERATORS: Final[dict[str, Operator]] = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
# Values of a `within` beyond which a scan is as good as their lookups.
_VALUES_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class KeySpan:
    """Entries of an index from `low` up to, not including, `high`, without the family byte."""

    low: bytes
    high: bytes


@dataclass(frozen=True, slots=True)
class IndexRoute:
    """Index entries of the elements that may be meant; others may be among them."""

    name: str
    spans: tuple[KeySpan, ...]


def places_of(lookup: Lookup, key_name: str | None) -> list[tuple[KeyValue, str]] | None:
    """Return the partition keys and ids that a lookup names, each pair once; None if it does not name them."""
    keys, ids = lookup.keys, lookup.ids
    if lookup.places is not None:
        pairs = [
            place
            for place in lookup.places
            if (ids is None or place[1] in ids) and (keys is None or any(same_key(place[0], key) for key in keys))
        ]
        return list(dict.fromkeys(pairs))
    if ids is None:
        return None
    if key_name is None:
        return [(None, element_id) for element_id in dict.fromkeys(ids)]
    if keys is None:
        return None
    return [(key, element_id) for key in dict.fromkeys(keys) for element_id in dict.fromkeys(ids)]


def same_key(left: KeyValue, right: KeyValue) -> bool:
    """Return whether two values are one partition key: true is not 1."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def index_route(lookup: Lookup, rules: IndexingRules, *, is_edge: bool) -> IndexRoute | None:
    """Return the index that names the fewest elements, as far as the conditions tell; None if all must be read."""
    if lookup.ids is not None:
        found = _route("id", (("id",),), [OneOf(("id",), lookup.ids)], rules)
        if found is not None:
            return found
    for condition in sorted(lookup.conditions, key=_rank):
        path_condition = _path_condition(condition)
        if path_condition is not None:
            found = _route(condition.name, _paths_of(condition.name, is_edge=is_edge), [path_condition], rules)
            if found is not None:
                return found
    if lookup.labels is not None:
        return _route("label", (("label",),), [OneOf(("label",), lookup.labels)], rules)
    return None


def end_spans(name: str, rules: IndexingRules, element_id: str, labels: Sequence[str] | None) -> list[KeySpan] | None:
    """Return the entries of the edges with this id at an end (`_vertexId` or `_sink`); None if they are not indexed.

    With labels, a composite index of the end and the label has just those.
    """
    if labels is not None:
        for composite in rules.composites:
            if [path for path, _ in composite.paths] == [(name,), ("label",)] and not composite.paths[0][1]:
                order, bytes_max = composite.order, composite.component_bytes_max
                (head,) = spans_of([Comparison((name,), "=", element_id)], order, bytes_max)
                tails = spans_of([OneOf(("label",), tuple(labels))], order, bytes_max)
                if composite.paths[1][1]:
                    break
                start = composite.token + head.low
                return [KeySpan(start + tail.low, start + tail.high) for tail in tails]
    token = indexed_token(rules, (name,))
    if token is None:
        return None
    (span,) = spans_of([Comparison((name,), "=", element_id)], rules.order, VALUE_BYTES_MAX)
    return [KeySpan(token + span.low, token + span.high)]


@lru_cache(maxsize=4096)
def indexed_token(rules: IndexingRules, segments: tuple[Segment, ...]) -> bytes | None:
    """Return the token of a path in index entries; None if the policy does not cover the path."""
    return path_token(segments) if rules.covers_scalar(segments) else None


def _paths_of(name: str, *, is_edge: bool) -> tuple[tuple[Segment, ...], ...]:
    """Return where the values of a property may stand: an edge has them plainly, a vertex in a list; documents that
    others wrote may have them plainly, or in a plain list."""
    if is_edge:
        return ((name,), (name, ARRAY_ELEMENT))
    return ((name, ARRAY_ELEMENT, "_value"), (name,), (name, ARRAY_ELEMENT))


def _route(
    name: str,
    paths: Sequence[tuple[Segment, ...]],
    conditions: Sequence[PathCondition],
    rules: IndexingRules,
) -> IndexRoute | None:
    spans = spans_of(conditions, rules.order, VALUE_BYTES_MAX)
    if len(spans) > _VALUES_MAX:
        return None
    found: list[KeySpan] = []
    for path in paths:
        token = indexed_token(rules, path)
        if token is None:
            return None
        found += [KeySpan(token + span.low, token + span.high) for span in spans]
    return IndexRoute(name, tuple(found))


def _path_condition(condition: IndexCondition) -> PathCondition | None:
    path, value = (condition.name,), condition.value
    if condition.operator == "within":
        return OneOf(path, tuple(value)) if all(map(_is_indexable, value)) else None
    if not _is_indexable(value):
        return None
    if condition.operator == "eq":
        return Comparison(path, "=", value)
    operator = _OPERATORS.get(condition.operator)
    return None if operator is None else Comparison(path, operator, value)


def _is_indexable(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    # Larger integers are doubles in the index, which a comparison with one would not find.
    return isinstance(value, str) or (isinstance(value, int) and abs(value) <= 2**53)


def _rank(condition: IndexCondition) -> int:
    """Return how few elements a condition leaves, as a rule: lower is fewer."""
    return {"eq": 0, "within": 1}.get(condition.operator, 2)

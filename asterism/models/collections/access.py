"""The choice of an index for a filter and a sort, and the spans of keys that it reads. Pure.

Conditions come from the language as facts that must hold; a scan finds candidates, and the filter decides on each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Protocol

from asterism.keyspaces.routing.families import after_prefix
from asterism.models.collections.layout import ARRAY_VALUES, INDEX_KEY_BYTES_MAX, SINGLE_VALUES
from asterism.models.collections.rules import IndexRules
from asterism.storage.contract import Span
from asterism.values.bson.key_bytes import invert, text_prefix, type_span
from asterism.values.bson.types import DatetimeMS, Int64, MaxKey, MinKey, ObjectId, Regex

# `$in` over several fields multiplies; beyond this many spans a scan of fewer fields is the cheaper one.
_SPANS_MAX = 1000
# Values that equal no value of another kind than their key bytes say, and that no collation changes.
_EXACT_NUMBERS = frozenset({int, Int64, float})
_EXACT_VALUES = _EXACT_NUMBERS | {str, ObjectId, DatetimeMS}
_LOWER_BOUNDS = frozenset({"gt", "gte"})
_BOUNDS = _LOWER_BOUNDS | {"lt", "lte"}
_SPECIAL_OPERATORS = ("geo", "text")
# Above an equality of one field: places and words are more selective, as a rule.
_SPECIAL_SCORE = 2.5


class Condition(Protocol):
    """A fact about a path that every matching document fulfills."""

    @property
    def path(self) -> str: ...

    @property
    def operator(self) -> str: ...

    @property
    def value(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class IndexAccess:
    """Spans of an index that hold every candidate, in the order of the index."""

    rules: IndexRules
    # Of documents without arrays on the path, and of those with them.
    single: tuple[Span, ...]
    arrays: tuple[Span, ...]
    # Fields that are bound to one value each, and whether the index gives the order that was asked for.
    bound_fields: int
    is_sorted: bool
    is_reversed: bool
    score: float
    # True if the documents of `single` fulfill all conditions: none has to be decoded to decide.
    is_exact: bool = False


def choose_access(
    indexes: Sequence[IndexRules],
    conditions: Sequence[Condition],
    sort: Sequence[tuple[str, int]],
    *,
    collation: Mapping[str, Any] | None,
    implied: frozenset[str] = frozenset(),
    hint: str | None = None,
    allowed: frozenset[str] | None = None,
) -> IndexAccess | None:
    """Return the best access, or None for a scan of the collection. `implied` names partial indexes whose filter the
    query implies; `hint` names the index to use; `allowed` names those that may be chosen, None for all."""
    by_path: dict[str, list[Condition]] = {}
    for condition in conditions:
        by_path.setdefault(condition.path, []).append(condition)
    best: IndexAccess | None = None
    for rules in indexes:
        record = rules.record
        is_hinted = hint == record.name
        if hint is not None and not is_hinted:
            continue
        if allowed is not None and record.name not in allowed:
            continue
        if not record.is_ready or (record.is_hidden and not is_hinted):
            continue
        if not rules.is_ordered and not rules.special_fields:
            continue
        if "partialFilterExpression" in record.options and record.name not in implied and not is_hinted:
            continue
        own_collation = record.options.get("collation")
        if (own_collation or None) != (collation or None) and not _is_blind_to_collation(by_path, record.key):
            continue
        if not rules.is_ordered:
            access = _special_access(rules, by_path, has_sort=bool(sort))
        else:
            access = _access(rules, by_path, sort)
        if access is None and is_hinted:
            access = _whole(rules, sort)
        if access is not None and (best is None or access.score > best.score):
            best = access
    return best


def _is_blind_to_collation(by_path: Mapping[str, Sequence[Condition]], key: Mapping[str, Any]) -> bool:
    """Return whether no text is compared, so that the order of text does not matter."""
    compared = [condition for path in key for condition in by_path.get(path, ())]
    return bool(compared) and all(
        condition.operator in _SPECIAL_OPERATORS or isinstance(condition.value, (int, float)) for condition in compared
    )


def _special_access(
    rules: IndexRules, by_path: Mapping[str, Sequence[Condition]], *, has_sort: bool
) -> IndexAccess | None:
    """Return the entries of an index of text or places that the condition on such a field names. The fields before it
    must be bound to values."""
    paths = list(rules.record.key)
    for position, texts_of in rules.special_fields.items():
        bounds = [_points(by_path.get(path, ())) for path in paths[:position]]
        heads = [b""]
        for place, values in enumerate(bounds):
            if values is None or len(heads) * len(values) > _SPANS_MAX:
                break
            encoded = sorted({rules.field_bytes(value, place) for value in values})
            heads = [head + part for head, part in product(heads, encoded)]
        else:
            for condition in by_path.get(paths[position], ()):
                texts = texts_of(condition) if condition.operator in _SPECIAL_OPERATORS else None
                if texts is None:
                    continue
                prefix = rules.prefix(ARRAY_VALUES)
                parts = [
                    text_prefix(text) if is_prefix else rules.field_bytes(text, position) for text, is_prefix in texts
                ]
                spans = tuple(span for part in parts for span in _spans(prefix, [head + part for head in heads], None))
                return IndexAccess(rules, (), spans, position, not has_sort, False, _SPECIAL_SCORE + position)
    return None


def _access(
    rules: IndexRules, by_path: Mapping[str, Sequence[Condition]], sort: Sequence[tuple[str, int]]
) -> IndexAccess | None:
    heads: list[bytes] = [b""]
    bound = 0
    paths = list(rules.record.key)
    is_sparse = bool(rules.record.options.get("sparse"))
    for position, path in enumerate(paths):
        values = _points(by_path.get(path, ()))
        if values is None or (is_sparse and any(value is None for value in values)):
            break
        if len(heads) * len(values) > _SPANS_MAX:
            break
        encoded = sorted({rules.field_bytes(value, position) for value in values})
        heads = [head + part for head, part in product(heads, encoded)]
        bound += 1
    single_range = array_range = None
    if bound < len(paths):
        conditions = by_path.get(paths[bound], ())
        single_range = _range(rules, bound, conditions, one_bound=False)
        array_range = _range(rules, bound, conditions, one_bound=True)
    is_sorted, is_reversed = _order(rules, paths, bound if len(heads) == 1 else -1, sort)
    if bound == 0 and single_range is None and not (sort and is_sorted):
        return None
    if bound == 0 and single_range is None and is_sparse:
        # A sort over an index that does not have all documents.
        return None
    single = _spans(rules.prefix(SINGLE_VALUES), heads, single_range)
    arrays = _spans(rules.prefix(ARRAY_VALUES), heads, array_range)
    score = 2.0 * bound + (1.0 if single_range is not None else 0) + (0.5 if is_sorted and sort else 0)
    score -= 0.01 * len(paths)
    is_exact = _is_exact(rules, by_path, paths, bound)
    return IndexAccess(rules, single, arrays, bound, is_sorted, is_reversed, score, is_exact)


def _is_exact(rules: IndexRules, by_path: Mapping[str, Sequence[Condition]], paths: Sequence[str], bound: int) -> bool:
    """Return whether the spans hold exactly the documents that fulfill the conditions, arrays aside."""
    if rules.collate is not None or not by_path.keys() <= set(paths[: bound + 1]):
        return False
    for position, path in enumerate(paths[: bound + 1]):
        conditions = by_path.get(path, ())
        if position < bound:
            # A path of several equalities has its first one in the spans.
            if len(conditions) != 1 or conditions[0].operator != "eq" or not _is_exact_value(conditions[0].value):
                return False
        elif conditions and not _is_exact_range(rules, position, conditions):
            return False
    return True


def _is_exact_range(rules: IndexRules, position: int, conditions: Sequence[Condition]) -> bool:
    if rules.is_descending(position):
        # The spans of inverted keys include their bounds.
        return False
    if not all(condition.operator in _BOUNDS and _is_exact_value(condition.value) for condition in conditions):
        return False
    # NaN lies below all numbers, and no upper bound holds for it.
    has_lower = any(condition.operator in _LOWER_BOUNDS for condition in conditions)
    return has_lower or all(type(condition.value) not in _EXACT_NUMBERS for condition in conditions)


def _is_exact_value(value: Any) -> bool:
    return type(value) in _EXACT_VALUES and value == value


def natural_access(rules: IndexRules, *, is_reversed: bool) -> IndexAccess:
    """Return the access to all documents of a capped collection in the order of their inserts."""
    return replace(_whole(rules, ()), is_reversed=is_reversed)


def _whole(rules: IndexRules, sort: Sequence[tuple[str, int]]) -> IndexAccess:
    is_sorted, is_reversed = _order(rules, list(rules.record.key), 0, sort)
    single = _spans(rules.prefix(SINGLE_VALUES), [b""], None)
    arrays = _spans(rules.prefix(ARRAY_VALUES), [b""], None)
    return IndexAccess(rules, single, arrays, 0, is_sorted, is_reversed, 0.0)


def _points(conditions: Sequence[Condition]) -> list[Any] | None:
    """Return the values of which the field must have one; None if the conditions name none."""
    for condition in conditions:
        if condition.operator == "eq" and _is_indexable(condition.value):
            return [condition.value]
    for condition in conditions:
        if condition.operator == "in" and condition.value and all(_is_indexable(value) for value in condition.value):
            return list(condition.value)
    return None


def _is_indexable(value: object) -> bool:
    # An array may be the value itself or an element of it, and an expression matches many values.
    return not isinstance(value, (list, Regex))


def _range(
    rules: IndexRules, position: int, conditions: Sequence[Condition], *, one_bound: bool
) -> tuple[bytes, bytes] | None:
    """Return the first key bytes of a field's range and the first behind it, ascending; `one_bound` takes a single
    condition, because others may be met by other elements of an array."""
    low: bytes | None = None
    high: bytes | None = None
    is_descending = rules.is_descending(position)
    for condition in conditions:
        value = condition.value
        if condition.operator not in ("gt", "gte", "lt", "lte", "regex_prefix") or isinstance(
            value, (list, Regex, MinKey, MaxKey, dict)
        ):
            continue
        if condition.operator == "regex_prefix":
            if rules.collate is not None or not value:
                continue
            start, end = _text_prefix(value)
        else:
            # Only values of the same type compare.
            start, end = type_span(value)
            own = rules.field_bytes(value, position)
            own = invert(own) if is_descending else own
            if condition.operator == "gt":
                start = own + b"\xff" if after_prefix(own) is None else (after_prefix(own) or own)
            elif condition.operator == "gte":
                start = own
            elif condition.operator == "lt":
                end = own
            else:
                end = after_prefix(own) or own + b"\xff"
        low = start if low is None else max(low, start)
        high = end if high is None else min(high, end)
        if one_bound:
            break
    if low is None or high is None:
        return None
    if is_descending:
        low, high = _inverted(low, high)
    return low, high


def _inverted(low: bytes, high: bytes) -> tuple[bytes, bytes]:
    """Return the span of the inverted keys of [low, high): every key that begins with an inverted one of it."""
    end = after_prefix(invert(low)) or b"\xff" * (INDEX_KEY_BYTES_MAX + 1)
    return invert(high), end


def _text_prefix(prefix: str) -> tuple[bytes, bytes]:
    start = text_prefix(prefix)
    return start, after_prefix(start) or start + b"\xff"


def _spans(prefix: bytes, heads: Sequence[bytes], bounds: tuple[bytes, bytes] | None) -> tuple[Span, ...]:
    spans = []
    for head in heads:
        whole = prefix + head[:INDEX_KEY_BYTES_MAX]
        if bounds is None:
            spans.append(Span(whole, after_prefix(whole)))
        else:
            limit = len(prefix) + INDEX_KEY_BYTES_MAX
            start, end = (whole + bounds[0])[:limit], (whole + bounds[1])
            if len(end) > limit:
                end = after_prefix(end[:limit]) or end
            if start < end:
                spans.append(Span(start, end))
    return tuple(spans)


def _order(rules: IndexRules, paths: Sequence[str], bound: int, sort: Sequence[tuple[str, int]]) -> tuple[bool, bool]:
    """Return whether the index gives the order of a sort behind the fields that are bound, and whether backwards."""
    if not sort:
        return True, False
    if bound < 0:
        return False, False
    rest = [(path, position) for position, path in enumerate(paths) if position >= bound]
    fixed = set(paths[:bound])
    wanted = [(path, direction) for path, direction in sort if path not in fixed]
    if len(wanted) > len(rest):
        return False, False
    is_reversed: bool | None = None
    for (path, direction), (own, position) in zip(wanted, rest, strict=False):
        if path != own:
            return False, False
        differs = rules.is_descending(position) != (direction < 0)
        if is_reversed is not None and is_reversed != differs:
            return False, False
        is_reversed = differs
    return True, bool(is_reversed)

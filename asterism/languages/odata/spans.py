"""The spans of a table in which a filter can match, from its conditions on PartitionKey and RowKey."""

from __future__ import annotations

from typing import Final, NamedTuple

from asterism.languages.odata.tree import And, Compare, Comparison, Condition, Constant, Or
from asterism.models.tables.property_types import EdmType
from asterism.values.ordered_text import ordered_text

Key = tuple[str, str]

# A filter with more alternatives than this scans the whole span between its first and last key. A URL has room for
# not many more.
BOXES_MAX: Final = 1024
# The same for alternatives that are combined pairwise with others, which a filter may ask for repeatedly.
_PRODUCT_BOXES_MAX: Final = 256


def order(key: Key) -> tuple[bytes, bytes]:
    """Return the sort key of an entity: the service's order of texts, which is not Python's."""
    return ordered_text(key[0]), ordered_text(key[1])


class Interval(NamedTuple):
    """Texts from `lower` on and before `upper`; an `upper` of None is unbounded."""

    lower: str
    upper: str | None

    @property
    def is_empty(self) -> bool:
        return self.upper is not None and ordered_text(self.lower) >= ordered_text(self.upper)

    @property
    def only(self) -> str | None:
        """The only text in the interval, if it holds a single text."""
        return self.lower if self.upper == self.lower + "\0" else None

    def common(self, other: Interval) -> Interval:
        lower = max(self.lower, other.lower, key=ordered_text)
        if self.upper is None or other.upper is None:
            return Interval(lower, self.upper if other.upper is None else other.upper)
        return Interval(lower, min(self.upper, other.upper, key=ordered_text))


EVERY: Final = Interval("", None)


class Box(NamedTuple):
    partition_keys: Interval
    row_keys: Interval

    @property
    def is_empty(self) -> bool:
        return self.partition_keys.is_empty or self.row_keys.is_empty


class KeySpan(NamedTuple):
    """A part of a table in the order of (PartitionKey, RowKey): from `lower` on, before `upper`."""

    lower: Key
    upper: Key | None

    @property
    def partition_key(self) -> str | None:
        """The only PartitionKey in the span, if it lies within a single one."""
        if self.upper is not None and (
            self.upper[0] == self.lower[0] or (self.upper[1] == "" and self.upper[0] == self.lower[0] + "\0")
        ):
            return self.lower[0]
        return None


WHOLE_TABLE: Final = KeySpan(("", ""), None)
_ALL: Final = [Box(EVERY, EVERY)]


def spans_of(condition: Condition | None) -> list[KeySpan]:
    """Return the spans that contain every match, in order and disjoint; an empty list if there can be no match."""
    boxes = _ALL if condition is None else _boxes(condition)
    spans = sorted((_span(box) for box in boxes if not box.is_empty), key=lambda span: order(span.lower))
    disjoint: list[KeySpan] = []
    for span in spans:
        if disjoint and _overlap(disjoint[-1], span):
            disjoint[-1] = KeySpan(disjoint[-1].lower, _later(disjoint[-1].upper, span.upper))
        else:
            disjoint.append(span)
    return disjoint


def within(spans: list[KeySpan], lower: Key, upper: Key | None) -> list[KeySpan]:
    """Return the parts of the spans from `lower` on and before `upper`."""
    parts = (KeySpan(max(span.lower, lower, key=order), _earlier(span.upper, upper)) for span in spans)
    return [part for part in parts if part.upper is None or order(part.lower) < order(part.upper)]


def _earlier(left: Key | None, right: Key | None) -> Key | None:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right, key=order)


def _span(box: Box) -> KeySpan:
    only = box.partition_keys.only
    if only is not None:
        upper = (only + "\0", "") if box.row_keys.upper is None else (only, box.row_keys.upper)
        return KeySpan((only, box.row_keys.lower), upper)
    end = box.partition_keys.upper
    return KeySpan((box.partition_keys.lower, ""), None if end is None else (end, ""))


def _overlap(earlier: KeySpan, later: KeySpan) -> bool:
    return earlier.upper is None or order(later.lower) < order(earlier.upper)


def _later(left: Key | None, right: Key | None) -> Key | None:
    return None if left is None or right is None else max(left, right, key=order)


def _boxes(condition: Condition) -> list[Box]:
    match condition:
        case Compare("PartitionKey", comparison, literal) if literal.type is EdmType.STRING:
            return [Box(interval, EVERY) for interval in _intervals(comparison, str(literal.value))]
        case Compare("RowKey", comparison, literal) if literal.type is EdmType.STRING:
            return [Box(EVERY, interval) for interval in _intervals(comparison, str(literal.value))]
        case Constant(False):
            return []
        case And(parts):
            boxes = _ALL
            # The most selective part first: a PartitionKey before a list of rows, so that it is never left out.
            for others in sorted((_boxes(part) for part in parts), key=len):
                boxes = _common(boxes, others)
            return boxes
        case Or(parts):
            return _fewer([box for part in parts for box in _boxes(part)])
        case _:
            return _ALL


def _common(boxes: list[Box], others: list[Box]) -> list[Box]:
    if len(boxes) > 1 and len(boxes) * len(others) > _PRODUCT_BOXES_MAX:
        # Every match lies in these boxes already.
        return boxes
    found = (
        Box(box.partition_keys.common(other.partition_keys), box.row_keys.common(other.row_keys))
        for box in boxes
        for other in others
    )
    return [box for box in found if not box.is_empty]


def _fewer(boxes: list[Box]) -> list[Box]:
    if len(boxes) <= BOXES_MAX:
        return boxes
    ends = [box.partition_keys.upper for box in boxes]
    end = None if None in ends else max((end for end in ends if end is not None), key=ordered_text)
    return [Box(Interval(min((box.partition_keys.lower for box in boxes), key=ordered_text), end), EVERY)]


def _intervals(comparison: Comparison, value: str) -> list[Interval]:
    after = value + "\0"
    match comparison:
        case Comparison.EQ:
            return [Interval(value, after)]
        case Comparison.NE:
            return [Interval("", value), Interval(after, None)]
        case Comparison.GT:
            return [Interval(after, None)]
        case Comparison.GE:
            return [Interval(value, None)]
        case Comparison.LT:
            return [Interval("", value)]
        case Comparison.LE:
            return [Interval("", after)]

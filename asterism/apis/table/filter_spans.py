"""Which stretches of a table a filter can match in: its conditions on PartitionKey and RowKey, as spans to scan."""

from __future__ import annotations

from typing import Final, NamedTuple

from asterism.apis.table.edm import EdmType
from asterism.apis.table.filter_tree import And, Compare, Comparison, Condition, Constant, Or
from asterism.values.ordered_text import ordered_text

Key = tuple[str, str]

# A filter with more alternatives than this is answered from the whole stretch between its first and last key. A URL has
# room for not many more.
BOXES_MAX: Final = 1024


def order(key: Key) -> tuple[bytes, bytes]:
    """What keys sort by: the service's order of texts, which is not Python's."""
    return ordered_text(key[0]), ordered_text(key[1])


class Interval(NamedTuple):
    """Texts from `lower` on and before `upper`; None is no end."""

    lower: str
    upper: str | None

    @property
    def is_empty(self) -> bool:
        return self.upper is not None and ordered_text(self.lower) >= ordered_text(self.upper)

    @property
    def only(self) -> str | None:
        """The one text in it, if there is just one."""
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
    """A stretch of a table in the order of (PartitionKey, RowKey): from `lower` on, before `upper`."""

    lower: Key
    upper: Key | None

    @property
    def partition_key(self) -> str | None:
        """The only partition key in it, if it lies within one."""
        if self.upper is not None and (
            self.upper[0] == self.lower[0] or (self.upper[1] == "" and self.upper[0] == self.lower[0] + "\0")
        ):
            return self.lower[0]
        return None


WHOLE_TABLE: Final = KeySpan(("", ""), None)
_ALL: Final = [Box(EVERY, EVERY)]


def spans_of(condition: Condition | None) -> list[KeySpan]:
    """The spans in which every match lies, in order and apart from each other; none when there can be no match."""
    boxes = _ALL if condition is None else _boxes(condition)
    spans = sorted((_span(box) for box in boxes if not box.is_empty), key=lambda span: order(span.lower))
    apart: list[KeySpan] = []
    for span in spans:
        if apart and _touch(apart[-1], span):
            apart[-1] = KeySpan(apart[-1].lower, _later(apart[-1].upper, span.upper))
        else:
            apart.append(span)
    return apart


def within(spans: list[KeySpan], lower: Key, upper: Key | None) -> list[KeySpan]:
    """What the spans have between two keys, the second not included."""
    return [
        span
        for span in (KeySpan(max(one.lower, lower, key=order), _earlier(one.upper, upper)) for one in spans)
        if span.upper is None or order(span.lower) < order(span.upper)
    ]


def _earlier(one: Key | None, other: Key | None) -> Key | None:
    return (other if one is None else one) if one is None or other is None else min(one, other, key=order)


def _span(box: Box) -> KeySpan:
    only = box.partition_keys.only
    if only is not None:
        upper = (only + "\0", "") if box.row_keys.upper is None else (only, box.row_keys.upper)
        return KeySpan((only, box.row_keys.lower), upper)
    end = box.partition_keys.upper
    return KeySpan((box.partition_keys.lower, ""), None if end is None else (end, ""))


def _touch(earlier: KeySpan, later: KeySpan) -> bool:
    return earlier.upper is None or order(later.lower) < order(earlier.upper)


def _later(one: Key | None, other: Key | None) -> Key | None:
    return None if one is None or other is None else max(one, other, key=order)


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
            for part in parts:
                boxes = _common(boxes, _boxes(part))
            return boxes
        case Or(parts):
            return _fewer([box for part in parts for box in _boxes(part)])
        case _:
            return _ALL


def _common(some: list[Box], others: list[Box]) -> list[Box]:
    if len(some) * len(others) > BOXES_MAX:
        # Either side alone is true of every match as well.
        return some if len(some) <= len(others) else others
    found = (
        Box(one.partition_keys.common(other.partition_keys), one.row_keys.common(other.row_keys))
        for one in some
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

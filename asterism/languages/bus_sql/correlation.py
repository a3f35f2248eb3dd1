"""Correlation filters: fields that must all be equal, looked up in dictionaries rather than checked one by one.

Filters with the same fields form a shape, with a dictionary from the values of its fields. A shape is only looked at if
a message has the field that the fewest filters have: so 100,000 filters cost a message some lookups for each of its
properties, whether they differ in their values or in the names of their fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from asterism.languages.bus_sql.errors import MalformedRule
from asterism.languages.bus_sql.subject import Subject, system_text
from asterism.languages.bus_sql.typed_values import typed_value
from asterism.languages.bus_sql.values import exact_key, value_of
from asterism.models.messages.descriptions import FilterDescription

# The fields of a description -> those of the message.
_FIELDS: Final = {
    "correlation_id": "correlation_id",
    "message_id": "message_id",
    "to": "to",
    "reply_to": "reply_to",
    "label": "subject",
    "session_id": "group_id",
    "reply_to_session_id": "reply_to_group_id",
    "content_type": "content_type",
}

# A field of the message, or the name of an application property behind a mark.
_Field = str
_USER: Final = "user:"
_Values = tuple[tuple[Any, ...], ...]


class CorrelationIndex:
    """Finds the filters that a message fits."""

    def __init__(self, filters: Sequence[FilterDescription]) -> None:
        """Filters are known by their places. MalformedRule for a filter without a field, or with one of two types."""
        wanted = [_wanted(each) for each in filters]
        counts = Counter(field for fields in wanted for field in fields)
        # The rarest field -> shapes -> values -> places of the filters.
        self._by_anchor: dict[_Field, dict[tuple[_Field, ...], dict[_Values, list[int]]]] = {}
        for place, fields in enumerate(wanted):
            anchor = min(fields, key=lambda field: (counts[field], field))
            shape = tuple(sorted(fields))
            values = tuple(fields[field] for field in shape)
            self._by_anchor.setdefault(anchor, {}).setdefault(shape, {}).setdefault(values, []).append(place)
        self._system_anchors = tuple(field for field in self._by_anchor if not field.startswith(_USER))
        self._reads_user = any(field.startswith(_USER) for field in counts)

    def matches(self, subject: Subject) -> list[int]:
        """Return the places of the filters that the message fits, in order."""
        if not self._by_anchor:
            return []
        found: list[int] = []
        for anchor in self._anchors(subject):
            for shape, by_values in self._by_anchor.get(anchor, {}).items():
                values = tuple(_key_of(subject, field) for field in shape)
                if None not in values:
                    found += by_values.get(values, ())  # type: ignore[arg-type]  # no None among them
        return sorted(found)

    def _anchors(self, subject: Subject) -> Iterable[_Field]:
        if not self._reads_user:
            return self._system_anchors
        return (*self._system_anchors, *(_USER + name for name in subject.user_properties))


def _key_of(subject: Subject, field: _Field) -> tuple[Any, ...] | None:
    if field.startswith(_USER):
        return exact_key(value_of(subject.user_properties.get(field[len(_USER) :])))
    return exact_key(system_text(subject, field))


def _wanted(given: FilterDescription) -> dict[_Field, tuple[Any, ...]]:
    """Return the fields of a filter with the keys of their values."""
    wanted: dict[_Field, Any] = {
        field: getattr(given, name) for name, field in _FIELDS.items() if getattr(given, name) is not None
    }
    for property in given.properties:
        wanted[_USER + property.name] = typed_value(property.name, property.type, property.text)
    if not wanted:
        raise MalformedRule(reason="A correlation filter needs at least one property to compare.")
    keys = {}
    for field, value in wanted.items():
        key = exact_key(value_of(value))
        if key is None:
            raise MalformedRule(reason=f"The value of '{field.removeprefix(_USER)}' equals nothing.")
        keys[field] = key
    return keys

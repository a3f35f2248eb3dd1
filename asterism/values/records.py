"""The program's own small records (jobs, tasks, positions) as bytes. Data of clients has codecs of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Self, get_args, get_origin, get_type_hints

from asterism.errors import StoredDamage
from asterism.values.json.text import dumps, loads, loads_stored


def pack_record(record: object) -> bytes:
    """Return a record as bytes. It consists of texts, numbers, booleans and None, in lists and dicts by name."""
    return dumps(record)


def unpack_record(stored: bytes) -> Any:
    """Return the fields of a record that this program has stored; StoredDamage if they cannot be read."""
    return loads_stored(stored)


def unpack_token(token: bytes) -> Any:
    """Return the fields of a record that a client was given and sends back; MalformedRequest if they cannot be read."""
    return loads(token)


class Form(NamedTuple):
    """The conversion of a value that is not None to JSON, and back."""

    pack: Callable[[Any], object]
    unpack: Callable[[Any], Any]


class StoredRecord:
    """Base of dataclasses that are stored as a JSON object with a member for each field.

    Bytes are stored as hexadecimal text, members of an enumeration by their value, sets as sorted lists, tuples as
    lists, and dataclasses as objects. A field that an older program did not store has its default; a member that a
    newer program has added is ignored.
    """

    __slots__ = ()

    # Fields with other forms than those of their types.
    FORMS: ClassVar[Mapping[str, Form]] = {}
    # Fields that are stored under other names than their own.
    STORED_NAMES: ClassVar[Mapping[str, str]] = {}
    # Values of fields that older programs did not store, if they are not the defaults.
    ABSENT_VALUES: ClassVar[Mapping[str, object]] = {}
    # Fields that are stored only if they have a value.
    STORED_IF_SET: ClassVar[frozenset[str]] = frozenset()
    NOT_STORED: ClassVar[frozenset[str]] = frozenset()

    def to_fields(self) -> dict[str, Any]:
        stored: dict[str, Any] = {}
        for name, stored_name, form, _ in _layout_of(type(self)):
            value = getattr(self, name)
            if value is None and name in self.STORED_IF_SET:
                continue
            stored[stored_name] = value if form is None or value is None else form.pack(value)
        return stored

    @classmethod
    def from_fields(cls, stored: Mapping[str, Any]) -> Self:
        """Return the record of stored members; StoredDamage if they are not those of such a record."""
        values: dict[str, Any] = {}
        try:
            for name, stored_name, form, has_default in _layout_of(cls):
                if stored_name in stored:
                    value = stored[stored_name]
                    values[name] = value if form is None or value is None else form.unpack(value)
                elif name in cls.ABSENT_VALUES:
                    values[name] = cls.ABSENT_VALUES[name]
                elif not has_default:
                    raise StoredDamage(what=cls.__name__)
            return cls(**values)
        except (KeyError, TypeError, ValueError):
            raise StoredDamage(what=cls.__name__) from None

    def to_bytes(self) -> bytes:
        return pack_record(self.to_fields())

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        return cls.from_fields(unpack_record(stored))


class _FieldLayout(NamedTuple):
    name: str
    stored_name: str
    form: Form | None
    has_default: bool


# Found at the first use of a class: its annotations may name modules that are imported later than its own.
_layouts: dict[type[StoredRecord], tuple[_FieldLayout, ...]] = {}


def _layout_of(kind: type[StoredRecord]) -> tuple[_FieldLayout, ...]:
    layout = _layouts.get(kind)
    if layout is None:
        layout = _layouts[kind] = _make_layout(kind)
    return layout


def _make_layout(kind: type[StoredRecord]) -> tuple[_FieldLayout, ...]:
    assert is_dataclass(kind), "a stored record is a dataclass"
    types = get_type_hints(kind)
    return tuple(
        _FieldLayout(
            field.name,
            kind.STORED_NAMES.get(field.name, field.name),
            kind.FORMS.get(field.name) or _form_of(types[field.name]),
            field.default is not MISSING or field.default_factory is not MISSING,
        )
        for field in fields(kind)
        if field.name not in kind.NOT_STORED
    )


def _form_of(annotation: Any) -> Form | None:
    """Return the form of a type; None for values that are JSON themselves."""
    kind = get_origin(annotation) or annotation
    if kind is bytes:
        return Form(bytes.hex, bytes.fromhex)
    if kind is frozenset:
        return Form(sorted, frozenset)
    if kind is tuple:
        return Form(list, tuple)
    if kind is Mapping:
        return Form(dict, dict)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Form(attrgetter("value"), kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return Form(asdict, lambda stored: kind(**stored))
    if type(None) in get_args(annotation):
        forms = [_form_of(part) for part in get_args(annotation) if part is not type(None)]
        return forms[0] if len(forms) == 1 else None
    return None

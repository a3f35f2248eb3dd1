"""Messages of AMQP 1.0 as slices of their encoded sections, each decoded when it is first asked for.

A message that is only passed on costs a walk over the heads of its sections. Parsing checks that the sections are
known, in order and within the payload; the accessors of a section raise InvalidAmqp when its content is not valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from asterism.values.amqp.constructors import skip_plain_value, skip_value
from asterism.values.amqp.types import (
    Decimal32,
    Decimal64,
    Decimal128,
    InvalidAmqp,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    Uuid,
)
from asterism.values.amqp.value_codec import decode_value, encode_list_of, encode_value

# The format of a transfer whose data sections are encoded messages each.
BATCH_FORMAT: Final = 0x80013700

_HEADER: Final = 0x70
_DELIVERY_ANNOTATIONS: Final = 0x71
_ANNOTATIONS: Final = 0x72
_PROPERTIES: Final = 0x73
_APPLICATION_PROPERTIES: Final = 0x74
_DATA: Final = 0x75
_SEQUENCE: Final = 0x76
_VALUE: Final = 0x77
_FOOTER: Final = 0x78

# The descriptors of sections as a parsed message has them.
_HEADER_START: Final = bytes((0, 0x53, _HEADER))
_DELIVERY_ANNOTATIONS_START: Final = bytes((0, 0x53, _DELIVERY_ANNOTATIONS))
_ANNOTATIONS_START: Final = bytes((0, 0x53, _ANNOTATIONS))

_LIST8: Final = 0xC0
_STRING8: Final = 0xA1
_PROPERTIES_COUNT: Final = 13

_LISTS = frozenset(b"\x45\xc0\xd0")
_MAPS = frozenset(b"\xc1\xd1")
_BINARIES = frozenset(b"\xa0\xb0")
# The constructors that the value of a section may have; a value section has any.
_CONSTRUCTORS: Final[dict[int, frozenset[int]]] = {
    _HEADER: _LISTS,
    _DELIVERY_ANNOTATIONS: _MAPS,
    _ANNOTATIONS: _MAPS,
    _PROPERTIES: _LISTS,
    _APPLICATION_PROPERTIES: _MAPS,
    _DATA: _BINARIES,
    _SEQUENCE: _LISTS,
    _FOOTER: _MAPS,
}
# How sections begin whose length has one byte, as most have: with descriptor and constructor. These are in order, and
# need no further check, behind any section with a lower code.
_SHORT_SECTIONS: Final = {
    bytes((0, 0x53, code, constructor)): code
    for code, constructors in _CONSTRUCTORS.items()
    for constructor in constructors & frozenset(b"\xc0\xc1\xa0")
    if code <= _DATA
}
_LONG_DATA_START: Final = bytes((0, 0x53, _DATA, 0xB0))
_SECTION_SYMBOLS: Final = {
    "amqp:header:list": _HEADER,
    "amqp:delivery-annotations:map": _DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": _ANNOTATIONS,
    "amqp:properties:list": _PROPERTIES,
    "amqp:application-properties:map": _APPLICATION_PROPERTIES,
    "amqp:data:binary": _DATA,
    "amqp:amqp-sequence:list": _SEQUENCE,
    "amqp:amqp-value:*": _VALUE,
    "amqp:footer:map": _FOOTER,
}


class Header(NamedTuple):
    """None where a field is absent."""

    durable: bool | None = None
    priority: int | None = None
    # Milliseconds.
    ttl: int | None = None
    first_acquirer: bool | None = None
    delivery_count: int | None = None


class Properties(NamedTuple):
    """None where a field is absent. Ids keep their type; texts may have arrived as binary, see `text_of`."""

    message_id: Any = None
    user_id: Any = None
    to: Any = None
    subject: Any = None
    reply_to: Any = None
    correlation_id: Any = None
    content_type: Any = None
    content_encoding: Any = None
    absolute_expiry_time: Any = None
    creation_time: Any = None
    group_id: Any = None
    group_sequence: Any = None
    reply_to_group_id: Any = None


_NO_HEADER = Header()
_NO_PROPERTIES = Properties()


class Message:
    """One encoded message. Sections are contiguous and in order, so that their ends are all there is to know."""

    __slots__ = (
        "_annotations",
        "_application_properties",
        "_body",
        "_ends",
        "_header",
        "_properties",
        "payload",
    )

    def __init__(self, payload: bytes, ends: tuple[int, int, int, int, int, int]) -> None:
        self.payload = payload
        # Of the header, both annotations, the properties, the application properties, and the body.
        self._ends = ends
        self._header: Header | None = None
        self._annotations: dict[str, Any] | None = None
        self._properties: Properties | None = None
        self._application_properties: dict[str, Any] | None = None
        self._body: tuple[Any] | None = None

    @classmethod
    def parse(cls, payload: bytes) -> Message:
        """Return the message in a payload; InvalidAmqp if its sections are not those of a message."""
        ends = [0, 0, 0, 0, 0, 0, 0, 0, 0]
        offset, last, size = 0, _HEADER - 1, len(payload)
        while offset < size:
            start = payload[offset : offset + 4]
            code = _SHORT_SECTIONS.get(start, 0)
            if code > last and offset + 4 < size:
                offset += 5 + payload[offset + 4]
                if offset > size:
                    raise InvalidAmqp("the value is cut short")
            elif start == _LONG_DATA_START and last < _DATA:
                code = _DATA
                offset = skip_plain_value(payload, offset + 3)
            else:
                if payload[offset : offset + 2] != b"\x00\x53":
                    return cls.parse(_with_usual_sections(payload))
                if offset + 3 >= size:
                    raise InvalidAmqp("the message is cut short")
                code = payload[offset + 2]
                if code == _DELIVERY_ANNOTATIONS < last:
                    return cls.parse(_with_usual_sections(payload))
                _check_section(code, last, payload[offset + 3])
                offset = _section_end(payload, offset + 3, code)
            last = code
            ends[code - _HEADER] = offset
        # The end of every section is that of those before it, as far as they are absent.
        header, delivery_annotations, annotations, properties, application_properties, data, sequence, value, _ = ends
        delivery_annotations = delivery_annotations or header
        annotations = annotations or delivery_annotations
        properties = properties or annotations
        application_properties = application_properties or properties
        body = data or sequence or value or application_properties
        return cls(payload, (header, delivery_annotations, annotations, properties, application_properties, body))

    # --- sections as bytes, with their descriptors; b"" where absent ---

    @property
    def header_bytes(self) -> bytes:
        return self.payload[: self._ends[0]]

    @property
    def delivery_annotations_bytes(self) -> bytes:
        return self.payload[self._ends[0] : self._ends[1]]

    @property
    def annotations_bytes(self) -> bytes:
        return self.payload[self._ends[1] : self._ends[2]]

    @property
    def properties_bytes(self) -> bytes:
        return self.payload[self._ends[2] : self._ends[3]]

    @property
    def application_properties_bytes(self) -> bytes:
        return self.payload[self._ends[3] : self._ends[4]]

    @property
    def body_bytes(self) -> bytes:
        return self.payload[self._ends[4] : self._ends[5]]

    @property
    def footer_bytes(self) -> bytes:
        return self.payload[self._ends[5] :]

    @property
    def bare(self) -> bytes:
        """The properties and everything behind them, as they came."""
        return self.payload[self._ends[2] :]

    # --- sections as values ---

    @property
    def header(self) -> Header:
        if self._header is None:
            section = self.header_bytes
            self._header = _known_header(section) if section else _NO_HEADER
        return self._header

    @property
    def annotations(self) -> dict[str, Any]:
        if self._annotations is None:
            self._annotations = _text_keys(self.annotations_bytes)
        return self._annotations

    @property
    def delivery_annotations(self) -> dict[str, Any]:
        return _text_keys(self.delivery_annotations_bytes)

    @property
    def properties(self) -> Properties:
        if self._properties is None:
            section = self.properties_bytes
            self._properties = _properties_of(section) if section else _NO_PROPERTIES
        return self._properties

    @property
    def application_properties(self) -> dict[str, Any]:
        if self._application_properties is None:
            self._application_properties = _text_keys(self.application_properties_bytes)
        return self._application_properties

    @property
    def body(self) -> Any:
        """The value of a value section, the joined bytes of data sections, the lists of sequences; or None."""
        if self._body is None:
            self._body = (_body_of(self.body_bytes),)
        return self._body[0]


def leading_ends(payload: bytes) -> tuple[int, int, int]:
    """Return where the header, the delivery annotations and the message annotations end in a payload that is known to
    be a message: what is behind them is not walked over."""
    header = skip_plain_value(payload, 3) if payload[:3] == _HEADER_START else 0
    delivery_annotations = annotations = header
    if payload[header : header + 3] == _DELIVERY_ANNOTATIONS_START:
        delivery_annotations = annotations = skip_plain_value(payload, header + 3)
    if payload[annotations : annotations + 3] == _ANNOTATIONS_START:
        annotations = skip_plain_value(payload, annotations + 3)
    return header, delivery_annotations, annotations


def _check_section(code: int, last: int, constructor: int) -> None:
    if not _HEADER <= code <= _FOOTER:
        raise InvalidAmqp(f"0x{code:02x} is not a section of a message")
    is_in_order = code > last or (code == last and code in (_DATA, _SEQUENCE))
    if not is_in_order or (code != last and last in (_DATA, _SEQUENCE) and code != _FOOTER):
        raise InvalidAmqp("the sections of the message are not in order")
    if code != _VALUE and constructor not in _CONSTRUCTORS[code]:
        raise InvalidAmqp(f"section 0x{code:02x} does not have the type of its content")


def _section_end(payload: bytes, offset: int, code: int) -> int:
    return skip_value(payload, offset) if code == _VALUE else skip_plain_value(payload, offset)


def _with_usual_sections(payload: bytes) -> bytes:
    """Return the message with its sections in order, and with descriptors of one byte, the only ones that some clients
    know. Clients in Python write delivery annotations behind everything else."""
    sections: list[tuple[int, bytes]] = []
    offset, size = 0, len(payload)
    while offset < size:
        if payload[offset] != 0:
            raise InvalidAmqp("the message has a value outside its sections")
        descriptor, start = decode_value(payload, offset + 1)
        code = _SECTION_SYMBOLS.get(descriptor) if isinstance(descriptor, Symbol) else descriptor
        if not isinstance(code, int) or not _HEADER <= code <= _FOOTER:
            raise InvalidAmqp("the message has a section that is not known")
        if start >= size:
            raise InvalidAmqp("the message is cut short")
        offset = _section_end(payload, start, code)
        sections.append((code, bytes((0, 0x53, code)) + payload[start:offset]))
    sections.sort(key=lambda section: section[0])
    return b"".join(section for _, section in sections)


def _fields(section: bytes, count_max: int) -> list[Any]:
    fields, end = decode_value(section, 3)
    if end != len(section) or len(fields) > count_max:
        raise InvalidAmqp("a section of the message has more fields than are known")
    return list(fields)


def _header_of(section: bytes) -> Header:
    header = Header(*_fields(section, 5))
    for field in header:
        # Booleans are numbers in Python, and the only other type of these fields.
        if not isinstance(field, int | None) or (field is not None and field < 0):
            raise InvalidAmqp("a field of the header does not have its type")
    return header


# The messages of a sender have few different headers, and few different properties but for their ids: sections that
# were decoded lately are not decoded again. Values of fields are immutable.
_KNOWN_SECTIONS_MAX: Final = 512
_KNOWN_BYTES_MAX: Final = 256
_remembered_header = lru_cache(maxsize=_KNOWN_SECTIONS_MAX)(_header_of)


def _known_header(section: bytes) -> Header:
    return _remembered_header(section) if len(section) <= _KNOWN_BYTES_MAX else _header_of(section)


def _properties_of(section: bytes) -> Properties:
    size = len(section)
    # A short list whose first field is a short text.
    if 8 <= size <= _KNOWN_BYTES_MAX and section[3] == _LIST8 and section[4] == size - 5 and section[6] == _STRING8:
        end = 8 + section[7]
        if end > size:
            raise InvalidAmqp("the value is cut short")
        try:
            fields = (section[8:end].decode("utf-8"), *_remembered_fields(section[5] - 1, section[end:]))
        except UnicodeDecodeError:
            raise InvalidAmqp("the text is not valid UTF-8") from None
        # As `Properties(…)` makes it, without the function in Python that this calls.
        return tuple.__new__(Properties, fields)
    return Properties(*_fields(section, _PROPERTIES_COUNT))


@lru_cache(maxsize=_KNOWN_SECTIONS_MAX)
def _remembered_fields(count: int, encoded: bytes) -> tuple[Any, ...]:
    """Return the properties behind the message id, with nulls for those that are not there."""
    if not 0 <= count < _PROPERTIES_COUNT:
        raise InvalidAmqp("a section of the message has more fields than are known")
    fields, offset = [], 0
    for _ in range(count):
        field, offset = decode_value(encoded, offset)
        fields.append(field)
    if offset != len(encoded):
        raise InvalidAmqp("a section of the message is not as long as it says")
    return (*fields, *[None] * (_PROPERTIES_COUNT - 1 - count))


def _text_keys(section: bytes) -> dict[str, Any]:
    if not section:
        return {}
    mapping, _ = decode_value(section, 3)
    return {str(key): value for key, value in mapping.items()}


def _body_of(sections: bytes) -> Any:
    if not sections:
        return None
    values, offset = [], 0
    while offset < len(sections):
        value, offset = decode_value(sections, offset + 3)
        values.append(value)
    if sections[2] == _DATA:
        return values[0] if len(values) == 1 else b"".join(values)
    return values if sections[2] == _SEQUENCE else values[0]


# --- encoding -------------------------------------------------------------------------------------------------------


def encode_header(header: Header) -> bytes:
    """Return the section of a header, every field written."""
    return _section(
        _HEADER,
        encode_list_of(
            [
                encode_value(header.durable),
                _encode_as(UByte, header.priority),
                _encode_as(UInt, header.ttl),
                encode_value(header.first_acquirer),
                _encode_as(UInt, header.delivery_count),
            ]
        ),
    )


def encode_delivery_annotations(annotations: Mapping[str, Any]) -> bytes:
    """Return the section of delivery annotations, also of none: receivers look for an empty one."""
    return _section(_DELIVERY_ANNOTATIONS, encode_value(_symbol_keys(annotations)))


def encode_annotations(annotations: Mapping[str, Any]) -> bytes:
    """Return the section of message annotations."""
    return _section(_ANNOTATIONS, encode_value(_symbol_keys(annotations)))


def encode_properties(properties: Properties) -> bytes:
    """Return the section of properties, every field written."""
    fields = properties._replace(
        message_id=_id_of(properties.message_id),
        correlation_id=_id_of(properties.correlation_id),
        content_type=_as(Symbol, properties.content_type),
        content_encoding=_as(Symbol, properties.content_encoding),
        absolute_expiry_time=_as(Timestamp, properties.absolute_expiry_time),
        creation_time=_as(Timestamp, properties.creation_time),
        group_sequence=_as(UInt, properties.group_sequence),
    )
    return _section(_PROPERTIES, encode_value(list(fields)))


def encode_application_properties(properties: Mapping[str, Any]) -> bytes:
    """Return the section of application properties."""
    return _section(_APPLICATION_PROPERTIES, encode_value({str(key): value for key, value in properties.items()}))


def encode_value_body(value: Any) -> bytes:
    """Return the section of a body that is a single value."""
    return _section(_VALUE, encode_value(value))


def encode_data_body(data: bytes) -> bytes:
    """Return the section of a body of bytes."""
    return _section(_DATA, encode_value(data))


def _section(code: int, content: bytes) -> bytes:
    # The descriptor in its one-byte form: clients read the third byte as the code without a look at the second.
    return bytes((0, 0x53, code)) + content


def _symbol_keys(annotations: Mapping[str, Any]) -> dict[Any, Any]:
    return {key if isinstance(key, ULong) else Symbol(key): value for key, value in annotations.items()}


def _id_of(value: Any) -> Any:
    # The only numbers among ids are unsigned.
    return ULong(value) if type(value) is int else value


def _as(kind: type, value: Any) -> Any:
    # Plain values get the type of the field. Any other came from a client, as texts in binary do, and stays as it is.
    return kind(value) if type(value) in (int, str) and issubclass(kind, type(value)) else value


def _encode_as(kind: type, value: Any) -> bytes:
    return b"\x40" if value is None else encode_value(kind(value))


# --- batches and texts ----------------------------------------------------------------------------------------------


def batch_parts(payload: bytes) -> tuple[Message, list[bytes]]:
    """Return the envelope of a batch, which is the sections before its data, and the messages in its data sections.

    Raises InvalidAmqp unless the payload is a message with data sections; the messages are not looked into.
    """
    whole = Message.parse(payload)
    sections = whole.body_bytes
    if sections[2:3] != bytes((_DATA,)):
        raise InvalidAmqp("a batch has no data sections")
    messages, offset = [], 0
    while offset < len(sections):
        message, offset = decode_value(sections, offset + 3)
        messages.append(message)
    end = len(whole.payload) - len(whole.footer_bytes) - len(sections)
    return Message.parse(whole.payload[:end]), messages


def text_of(value: Any) -> str | None:
    """Return a text that may have arrived as binary, which clients make of texts that they pass on; or None."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes) and not isinstance(value, Uuid | Decimal32 | Decimal64 | Decimal128):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return None
    return None

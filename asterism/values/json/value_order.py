"""The order of JSON values as index terms, access plans and collectors take it."""

from __future__ import annotations

from typing import Final

from asterism.values.json import key_bytes
from asterism.values.json.order import sort_key
from asterism.values.value_order import ValueOrder, behind


class _JsonOrder:
    """Made once. Functions are attributes as they are: most of them run for every value that is written or compared."""

    undefined: Final = key_bytes.ENCODED_UNDEFINED
    defined_spans: Final = ((key_bytes.ENCODED_NULL, behind(key_bytes.OBJECT_START)),)
    nested_span: Final = (key_bytes.ARRAY_START, behind(key_bytes.OBJECT_START))
    any_array: Final = key_bytes.ARRAY_START
    any_object: Final = key_bytes.OBJECT_START
    string_start: Final = key_bytes.STRING_START
    string_end: Final = key_bytes.STRING_END

    encode = staticmethod(key_bytes.encode)
    encode_number = staticmethod(key_bytes.encode_number)
    decode = staticmethod(key_bytes.decode)
    is_as_written = staticmethod(key_bytes.is_as_written)
    scalar_length = staticmethod(key_bytes.scalar_length)
    sort_key = staticmethod(sort_key)

    @staticmethod
    def type_span(encoded: bytes) -> tuple[bytes, bytes]:
        # False and true are one type, and the only one that has two ranks.
        if encoded in (key_bytes.ENCODED_FALSE, key_bytes.ENCODED_TRUE):
            return key_bytes.ENCODED_FALSE, behind(key_bytes.ENCODED_TRUE)
        return encoded[:1], behind(encoded[:1])


JSON_ORDER: Final[ValueOrder] = _JsonOrder()

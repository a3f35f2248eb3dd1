"""Binary data as text, in the formats that `$convert` knows."""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from typing import Any, Final

from asterism.values.bson.types import Binary

FORMATS: Final = ("auto", "base64", "base64url", "utf8", "hex", "uuid")
UUID_SUBTYPE: Final = 4
# Of the first version of the format: its content begins with its own length, which decoders take off.
_OLD_BINARY_SUBTYPE: Final = 2

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}", re.ASCII)
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*={0,2}", re.ASCII)
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2})*", re.ASCII)


def subtype_of(value: Any) -> int:
    return value.subtype if isinstance(value, Binary) else 0


def content_of(value: Any) -> bytes:
    if subtype_of(value) == _OLD_BINARY_SUBTYPE:
        return len(value).to_bytes(4, "little") + bytes(value)
    return bytes(value)


def binary_of(content: bytes, subtype: int) -> Any:
    return content if subtype == 0 else Binary(content, subtype)


def parse(text: str, format_name: str) -> bytes:
    """The bytes that a text stands for. Raises ValueError."""
    if format_name == "utf8":
        return text.encode("utf-8", "surrogatepass")
    if format_name == "hex":
        if not _HEX.fullmatch(text):
            raise ValueError("not pairs of hexadecimal digits")
        return bytes.fromhex(text)
    if format_name == "uuid":
        if not _UUID.fullmatch(text):
            raise ValueError("not a UUID")
        return uuid.UUID(text).bytes
    if format_name == "base64":
        if len(text) % 4 or not _BASE64.fullmatch(text):
            raise ValueError("not base64")
        return _decode_base64(text)
    if format_name == "base64url":
        if not _BASE64URL.fullmatch(text):
            raise ValueError("not base64url")
        unpadded = text.rstrip("=").replace("-", "+").replace("_", "/")
        return _decode_base64(unpadded + "=" * (-len(unpadded) % 4))
    raise ValueError("no text can be read by this format")


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as problem:
        raise ValueError(str(problem)) from None


def write(value: Any, format_name: str) -> str:
    """The text of binary data. Raises ValueError."""
    content = content_of(value)
    is_uuid = subtype_of(value) == UUID_SUBTYPE and len(content) == 16
    if format_name == "auto":
        format_name = "uuid" if is_uuid else "base64"
    if format_name == "utf8":
        return content.decode("utf-8")
    if format_name == "hex":
        return content.hex().upper()
    if format_name == "uuid":
        if not is_uuid:
            raise ValueError("not the bytes of a UUID")
        return str(uuid.UUID(bytes=content))
    if format_name == "base64url":
        return base64.urlsafe_b64encode(content).decode("ascii").rstrip("=")
    return base64.b64encode(content).decode("ascii")

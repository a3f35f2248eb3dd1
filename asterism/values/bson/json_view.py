"""Documents of MongoDB as JSON items, for readers that know no BSON. One way only: types that JSON lacks become text.

A date is ISO 8601 text, an ObjectId its 24 hexadecimal digits, a UUID its usual text, other data of the generic subtype
base64 text. Numbers stay numbers unless JSON readers would round them: int64 beyond 2^53, every decimal128, NaN and the
infinities are text. A regular expression is text between slashes, code its text. Rare types are objects of extended
JSON: timestamps, minimum and maximum keys, code with a scope, binary data of other subtypes.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bson import json_util
from bson.codec_options import DatetimeConversion

from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import (
    Binary,
    Code,
    DatetimeMS,
    Decimal128,
    Document,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)

# Readers that keep numbers as doubles know whole numbers exactly up to here.
EXACT_INTEGER_MAX: Final = 2**53
# Properties that every item has from the server. A document's own field of such a name gets underscores behind it.
SYSTEM_PROPERTIES: Final = ("id", "_rid", "_self", "_etag", "_attachments", "_ts")

_UUID_SUBTYPES: Final = (4, 3)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_PER_DAY: Final = 86_400_000
_DAYS_PER_ERA: Final = 146_097
_YEARS_PER_ERA: Final = 400
# Dates beyond those that `datetime` knows stay numbers.
_CANONICAL: Final = json_util.CANONICAL_JSON_OPTIONS.with_options(datetime_conversion=DatetimeConversion.DATETIME_MS)
_FLAGS: Final = (("i", re.IGNORECASE), ("l", re.LOCALE), ("m", re.MULTILINE), ("s", re.DOTALL), ("u", re.UNICODE))
_ISO_DATE: Final = re.compile(r"([+-]\d{6,9}|\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})Z")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WHOLE_NUMBER: Final = re.compile(r"-?\d{1,19}")


# --- values ---------------------------------------------------------------------------------------------------------


def to_json(value: Any) -> Any:
    """Return a value of BSON as one of JSON."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is dict:
        return {name: to_json(member) for name, member in value.items()}
    if kind is list:
        return [to_json(member) for member in value]
    convert = _CONVERTERS.get(kind)
    if convert is None:
        convert = next((known for type_, known in _CONVERTERS.items() if isinstance(value, type_)), str)
    return convert(value)


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _integer(value: int) -> int | str:
    return int(value) if abs(value) <= EXACT_INTEGER_MAX else str(int(value))


def _binary(value: Binary) -> object:
    if value.subtype in _UUID_SUBTYPES and len(value) == 16:
        return _uuid_text(value)
    if value.subtype == 0:
        return _base64(value)
    return {"$binary": {"base64": _base64(value), "subType": f"{value.subtype:02x}"}}


def _uuid_text(value: bytes) -> str:
    digits = value.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def date_text(milliseconds: int) -> str:
    """Return a moment as ISO 8601 text; years beyond 0 to 9999 have a sign and six digits or more."""
    days, rest = divmod(milliseconds, _MILLISECONDS_PER_DAY)
    # The calendar repeats itself after 400 years, so that a year which `datetime` knows stands for each other.
    era, days = divmod(days, _DAYS_PER_ERA)
    moment = _EPOCH + timedelta(days=days)
    year = moment.year + era * _YEARS_PER_ERA
    seconds, thousandths = divmod(rest, 1000)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+07d}"
    hours, minutes = divmod(seconds // 60, 60)
    return (
        f"{shown}-{moment.month:02d}-{moment.day:02d}T{hours:02d}:{minutes:02d}:{seconds % 60:02d}.{thousandths:03d}Z"
    )


def _date_of(text: str) -> DatetimeMS | None:
    found = _ISO_DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day, hours, minutes, seconds, thousandths = (int(part) for part in found.groups())
    era, year_in_era = divmod(year - _EPOCH.year, _YEARS_PER_ERA)
    try:
        moment = datetime(_EPOCH.year + year_in_era, month, day, tzinfo=UTC)
    except ValueError:
        return None
    days = (moment - _EPOCH).days + era * _DAYS_PER_ERA
    milliseconds = days * _MILLISECONDS_PER_DAY + ((hours * 60 + minutes) * 60 + seconds) * 1000 + thousandths
    if date_text(milliseconds) != text or not -(2**63) <= milliseconds < 2**63:
        return None
    return DatetimeMS(milliseconds)


def _regex(value: Any) -> str:
    flags = value.flags if isinstance(value.flags, int) else 0
    return f"/{_text(value.pattern)}/{''.join(letter for letter, flag in _FLAGS if flags & flag)}"


def _text(pattern: str | bytes) -> str:
    return pattern if isinstance(pattern, str) else pattern.decode("utf-8", "replace")


def _code(value: Code) -> object:
    scope = value.scope
    return str(value) if scope is None else {"$code": str(value), "$scope": to_json(dict(scope))}


_CONVERTERS: Final[dict[type, Callable[[Any], Any]]] = {
    int: _integer,
    Int64: _integer,
    float: _number,
    ObjectId: str,
    DatetimeMS: lambda value: date_text(int(value)),
    Decimal128: str,
    bytes: _base64,
    Binary: _binary,
    Regex: _regex,
    re.Pattern: _regex,
    Code: _code,
    Timestamp: lambda value: {"$timestamp": {"t": value.time, "i": value.inc}},
    MinKey: lambda _: {"$minKey": 1},
    MaxKey: lambda _: {"$maxKey": 1},
}


def values_of_text(text: str) -> Iterator[Any]:
    """Yield the values of BSON that `to_json` shows as this text, but for regular expressions."""
    yield text
    yield Code(text)
    if len(text) == 24 and ObjectId.is_valid(text) and text == text.lower():
        yield ObjectId(text)
    found = _date_of(text)
    if found is not None:
        yield found
    if text in ("NaN", "Infinity", "-Infinity"):
        yield float(text.replace("Infinity", "inf"))
        yield Decimal128(text)
    elif _NUMBER.fullmatch(text):
        yield from _numbers_of(text)
    yield from _binaries_of(text)


def _numbers_of(text: str) -> Iterator[Any]:
    if _WHOLE_NUMBER.fullmatch(text) and EXACT_INTEGER_MAX < abs(int(text)) < 2**63:
        yield Int64(int(text))
    try:
        yield Decimal128(text)
    except (ArithmeticError, ValueError):
        # More digits, or a larger exponent, than the type has.
        return


def _binaries_of(text: str) -> Iterator[Any]:
    if _UUID.fullmatch(text):
        for subtype in _UUID_SUBTYPES:
            yield Binary(bytes.fromhex(text.replace("-", "")), subtype)
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        return
    if _base64(data) == text:
        yield data


# --- ids ------------------------------------------------------------------------------------------------------------


def id_text(document_id: Any) -> str:
    """Return an `_id` as the id of an item: text as it is, ObjectIds, UUIDs, dates and numbers as `to_json` shows them,
    all others as extended JSON."""
    if isinstance(document_id, str) and type(document_id) is str:
        return document_id
    if isinstance(document_id, (ObjectId, DatetimeMS)) or _is_uuid(document_id):
        return str(to_json(document_id))
    if isinstance(document_id, int) and not isinstance(document_id, bool):
        return str(int(document_id))
    if isinstance(document_id, float) and math.isfinite(document_id):
        return str(int(document_id)) if document_id.is_integer() else repr(document_id)
    return json_util.dumps(document_id, json_options=_CANONICAL, separators=(",", ":"), ensure_ascii=False)


def ids_of_text(text: str) -> list[Any]:
    """Return the values of `_id` that `id_text` shows as this text, those that clients use most often first."""
    found: list[Any] = [text]
    if len(text) == 24 and ObjectId.is_valid(text) and text == text.lower():
        found.append(ObjectId(text))
    if _WHOLE_NUMBER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        found.append(Int64(int(text)))
    if _NUMBER.fullmatch(text):
        found.append(float(text))
    found += [value for value in (_date_of(text),) if value is not None]
    found += [value for value in _binaries_of(text) if _is_uuid(value)]
    if text[:1] in tuple('{["ntf'):
        try:
            # Through bytes, so that the values have the classes that stored ones have.
            parsed = json_util.loads(text, json_options=_CANONICAL)
            found.append(decode(encode({"_id": parsed}))["_id"])
        except Exception:
            # The parser raises what its helpers raise. The text of a client merely begins like extended JSON.
            pass
    return [value for value in found if _shows(value, text)]


def _shows(value: Any, text: str) -> bool:
    try:
        return id_text(value) == text
    except Exception:
        # As above.
        return False


def _is_uuid(value: Any) -> bool:
    return isinstance(value, Binary) and value.subtype in _UUID_SUBTYPES and len(value) == 16


# --- items ----------------------------------------------------------------------------------------------------------


def item_of(document: Document, *, rid: str, self_link: str, etag: str, seconds: int) -> dict[str, Any]:
    """Return a document as an item: `id` from `_id`, the fields, and the properties that the server adds."""
    item: dict[str, Any] = {"id": id_text(document.get("_id"))}
    for name, value in document.items():
        item[shown_name(name, document) if name in SYSTEM_PROPERTIES else name] = to_json(value)
    item["_rid"], item["_self"], item["_etag"], item["_attachments"] = rid, self_link, etag, "attachments/"
    item["_ts"] = seconds
    return item


def shown_name(name: str, document: Document | None = None) -> str:
    """Return the name under which an item has a field of a document."""
    if name not in SYSTEM_PROPERTIES:
        return name
    shown = f"{name}_"
    while document is not None and shown in document:
        shown += "_"
    return shown

"""The options of an index, as a table: the check of each and the form in which it is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.indexes.refusals import cannot_create, wrong_type
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import is_nan, to_decimal
from asterism.values.bson.order import compare
from asterism.values.bson.types import Decimal128, Document

INT32_MAX = 2**31 - 1
# Weights of fields in a text index, from 1 to here.
WEIGHT_MAX = 99_999

_LANGUAGE_CODES = {
    "danish": "da",
    "dutch": "nl",
    "english": "en",
    "finnish": "fi",
    "french": "fr",
    "german": "de",
    "hungarian": "hu",
    "italian": "it",
    "norwegian": "nb",
    "portuguese": "pt",
    "romanian": "ro",
    "russian": "ru",
    "spanish": "es",
    "swedish": "sv",
    "turkish": "tr",
}
_LANGUAGES = frozenset(("none", *_LANGUAGE_CODES, *_LANGUAGE_CODES.values()))

# Returns the stored form; raises for a value that cannot be right.
CheckOption = Callable[[str, Any], Any]


def _flag(name: str, value: Any) -> bool:
    if type(value) is not bool and not is_number(value):
        raise wrong_type(name, "a bool or a number")
    return value if type(value) is bool else compare(value, 0) != 0


def _boolean(name: str, value: Any) -> bool:
    if type(value) is not bool:
        raise wrong_type(name, "a bool")
    return value


def _object(name: str, value: Any) -> Document:
    if type(value) is not dict:
        raise wrong_type(name, "an object")
    return value


def _string(name: str, value: Any) -> str:
    if type(value) is not str:
        raise wrong_type(name, "a string")
    return value


def _number(name: str, value: Any) -> Any:
    if not is_number(value):
        raise wrong_type(name, "a number")
    return value


def _double(name: str, value: Any) -> float:
    return float(to_decimal(_number(name, value)))


def _expiry(name: str, value: Any) -> int:
    if not is_number(value) or is_nan(value) or compare(value, 0) < 0 or compare(value, INT32_MAX) > 0:
        raise cannot_create(f"TTL index '{name}' option must be a number within an acceptable range")
    return int(to_decimal(value))


def _integer_within(least: int, most: int, *, code: int) -> CheckOption:
    """An integer in a range. A decimal is no integer, but another mistake than a text."""

    def check(name: str, value: Any) -> int:
        number = _number(name, value)
        if type(number) is Decimal128 or not compare(least, number) <= 0 <= compare(most, number):
            raise MongoFailure(code, f"The field '{name}' must be between {least} and {most}")
        return int(number)

    return check


def _language(name: str, value: Any) -> str:
    if _string(name, value) not in _LANGUAGES:
        raise cannot_create(f"{name} is not valid: {value}")
    return str(value)


def _language_override(name: str, value: Any) -> str:
    if not _string(name, value):
        raise cannot_create(f"{name} cannot be empty")
    return str(value)


def _weights(name: str, value: Any) -> Document:
    if type(value) is str or type(value) is list:
        raise cannot_create("text index option 'weights' must be an object")
    for path, weight in _object(name, value).items():
        if not is_number(weight) or not compare(weight, 1) >= 0 >= compare(weight, WEIGHT_MAX):
            raise cannot_create(f"text index weight must be in the exclusive interval (0,{WEIGHT_MAX + 1}): {path}")
    return {path: _whole(weight) for path, weight in value.items()}


def _whole(number: Any) -> int:
    return int(to_decimal(number))


def _version(name: str, value: Any) -> int:
    number = _number(name, value)
    if compare(number, 1) != 0 and compare(number, 2) != 0:
        raise cannot_create(f"Invalid index specification: index version {value} is not supported")
    return _whole(number)


OPTIONS: dict[str, CheckOption] = {
    "v": _version,
    "unique": _flag,
    "sparse": _flag,
    "background": _flag,
    "dropDups": _flag,
    "hidden": _boolean,
    "prepareUnique": _flag,
    "expireAfterSeconds": _expiry,
    "partialFilterExpression": _object,
    "collation": _object,
    "wildcardProjection": _object,
    "weights": _weights,
    "default_language": _language,
    "language_override": _language_override,
    "textIndexVersion": _integer_within(1, 3, code=67),
    "2dsphereIndexVersion": _integer_within(1, 3, code=67),
    "bits": _integer_within(1, 32, code=72),
    "min": _double,
    "max": _double,
    "coarsestIndexedLevel": _number,
    "finestIndexedLevel": _number,
    "bucketSize": _number,
    "storageEngine": _object,
    "ns": _string,
    "clustered": _flag,
}
# Options that have no effect any more, or that another part of the specification shows.
_NOT_STORED = frozenset(("v", "ns", "dropDups", "clustered"))
# Options that are shown only where they are on.
_SHOWN_IF_ON = frozenset(("unique", "sparse", "hidden", "prepareUnique"))


def check_options(specification: Document) -> Document:
    """Return the options of an index in their stored form."""
    stored: Document = {}
    for name, value in specification.items():
        if name in ("key", "name"):
            continue
        check = OPTIONS.get(name)
        if check is None:
            raise MongoFailure(197, f"The field '{name}' is not valid for an index specification.")
        checked = check(name, value)
        if name not in _NOT_STORED and (checked or name not in _SHOWN_IF_ON):
            stored[name] = checked
    return stored


def version_of(specification: Document) -> int:
    return _version("v", specification["v"]) if "v" in specification else 2


def check_plane_bounds(options: Document) -> None:
    """Check the bounds of a 2d index."""
    least, most = options.get("min", -180), options.get("max", 180)
    if is_nan(least) or is_nan(most) or compare(least, most) >= 0:
        raise MongoFailure(72, "region for hash must be valid and have positive area, but [min, max] is not")

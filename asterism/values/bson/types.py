"""The values of BSON as the program works on them: the classes of `bson`, which only this package imports.

A document is a dict, an array a list, text a str, null None, a boolean a bool. int32 is a plain int, int64 an `Int64`,
double a float, a date always a `DatetimeMS`. Binary data of subtype 0 is bytes, of any other subtype a `Binary`.
"""

from __future__ import annotations

from typing import Any, Final, final

from bson.binary import Binary
from bson.code import Code
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.regex import Regex
from bson.timestamp import Timestamp

__all__ = [
    "MISSING",
    "Absence",
    "Binary",
    "Code",
    "DatetimeMS",
    "Decimal128",
    "Document",
    "Int64",
    "MaxKey",
    "MinKey",
    "Missing",
    "ObjectId",
    "Regex",
    "Timestamp",
]

Document = dict[str, Any]


@final
class Absence:
    """The absence of a value: a path that leads nowhere. There is one, `MISSING`, compared with `is`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = Absence()
# As the modules of the language call the class.
Missing = Absence

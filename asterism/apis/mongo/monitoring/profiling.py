"""`profile`: the profiler of a database, which is always off here."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.mongo.arguments import NUMBER, as_int, wrong_type
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, FieldRule
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.numbers import exact_value, is_nan
from asterism.values.bson.types import Document

_SETTINGS: Final[Document] = {"was": 0, "slowms": 100, "sampleRate": 1.0}
_RATE_MAX: Final = 1


async def profile(call: Call) -> Document:
    """Show that the profiler is off; refuse to switch it on, because there is no collection that it would write to."""
    level: Any = call.target
    if level is None:
        raise MongoFailure(40414, "BSON field 'profile.profile' is missing but a required field")
    if type_name(level) not in NUMBER:
        raise wrong_type("profile.profile", level, NUMBER)
    rate = call.get("sampleRate")
    if rate is not None and (is_nan(rate) or not 0 <= exact_value(rate) <= _RATE_MAX):
        raise MongoFailure(2, "'sampleRate' must be between 0.0 and 1.0 inclusive")
    wanted = call.get("filter")
    if wanted is not None and type(wanted) is not dict and wanted != "unset":
        raise MongoFailure(2, "Expected an object, or the string 'unset', as the filter of the profiler")
    if as_int(level) in (1, 2):
        raise MongoFailure(
            115, "Commands are not recorded in system.profile. Use explain, currentOp, top and serverStatus instead."
        )
    return dict(_SETTINGS)


COMMANDS = (
    Command("profile", profile, "The profiler, which is off.", access=Access.DATABASE_ADMIN,
            fields={"slowms": FieldRule(NUMBER), "sampleRate": FieldRule(NUMBER), "filter": FieldRule()}),
)  # fmt: skip

"""`getParameter` and `setParameter`: a table of the parameters that clients ask for, with the values in force.

Only parameters that change something here can be set; what they are set to lasts as long as the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asterism.apis.mongo.arguments import TEXT, TRUTH, as_bool, as_int, check_document
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, FieldRule
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import is_nan
from asterism.values.bson.types import Document

_MEGABYTE: Final = 1024 * 1024
_LEVELS_MAX: Final = 5
_SECONDS_MAX: Final = 86_400
_DETAIL_FIELDS: Final = {"showDetails": FieldRule(TRUTH), "allParameters": FieldRule(TRUTH), "setAt": FieldRule(TEXT)}


@dataclass(frozen=True, slots=True)
class Parameter:
    default: Any
    # Checks a new value and returns it as it is kept; None for a parameter that only the start sets.
    read: Callable[[str, Any], Any] | None = None
    at_startup: bool = True
    # Carries out a change.
    apply: Callable[[Call, Any], None] | None = None


def _flag(name: str, value: Any) -> bool:
    if type(value) is not bool and not is_number(value):
        raise MongoFailure(14, f"The parameter '{name}' must be a boolean")
    return as_bool(value)


def _level(name: str, value: Any) -> int:
    if not is_number(value) or is_nan(value) or not 0 <= as_int(value) <= _LEVELS_MAX:
        raise MongoFailure(2, f"The parameter '{name}' must be a number from 0 to {_LEVELS_MAX}")
    return as_int(value)


def _seconds(name: str, value: Any) -> int:
    if not is_number(value) or is_nan(value) or not 1 <= as_int(value) <= _SECONDS_MAX:
        raise MongoFailure(2, f"The parameter '{name}' must be a number of seconds from 1 to {_SECONDS_MAX}")
    return as_int(value)


def _apply_expiry(call: Call, is_on: bool) -> None:
    call.store.expires_documents = is_on


def _apply_expiry_rounds(call: Call, seconds: int) -> None:
    call.store.expiry_round_seconds = float(seconds)


def _apply_level(_: Call, level: int) -> None:
    logging.getLogger("asterism").setLevel(logging.DEBUG if level else logging.INFO)


PARAMETERS: Final[Mapping[str, Parameter]] = {
    "allowDiskUseByDefault": Parameter(True),
    "authenticationMechanisms": Parameter(["SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN"]),
    "enableTestCommands": Parameter(False),
    "featureCompatibilityVersion": Parameter({"version": "7.0"}, at_startup=False),
    "internalQueryMaxBlockingSortMemoryUsageBytes": Parameter(100 * _MEGABYTE),
    "localLogicalSessionTimeoutMinutes": Parameter(30),
    "logLevel": Parameter(0, _level, apply=_apply_level),
    "maxBSONDepth": Parameter(200),
    "maxTransactionLockRequestTimeoutMillis": Parameter(5),
    "quiet": Parameter(False, _flag),
    "requireApiVersion": Parameter(False),
    "saslHostName": Parameter(""),
    "transactionLifetimeLimitSeconds": Parameter(60, _seconds),
    "ttlMonitorEnabled": Parameter(True, _flag, apply=_apply_expiry),
    "ttlMonitorSleepSecs": Parameter(2, _seconds, apply=_apply_expiry_rounds),
}


async def get_parameter(call: Call) -> Document:
    wanted = call.target
    details: Document = {}
    if isinstance(wanted, dict):
        check_document("getParameter", wanted, _DETAIL_FIELDS)
        details = wanted
    known = {name: parameter for name, parameter in PARAMETERS.items() if _is_set_at(parameter, details.get("setAt"))}
    if wanted != "*" and not _is_on(details, "allParameters"):
        known = {name: PARAMETERS[name] for name in call.body if name in PARAMETERS}
        if not known:
            raise MongoFailure(72, "no option found to get")
    found = {name: _current(call, name) for name in known}
    if not _is_on(details, "showDetails"):
        return found
    return {
        name: {
            "value": value,
            "settableAtRuntime": known[name].read is not None,
            "settableAtStartup": known[name].at_startup,
        }
        for name, value in found.items()
    }


def _is_on(details: Document, name: str) -> bool:
    return details.get(name) is not None and as_bool(details[name])


def _is_set_at(parameter: Parameter, moment: str | None) -> bool:
    match moment:
        case None:
            return True
        case "runtime":
            return parameter.read is not None
        case "startup":
            return parameter.at_startup
        case _:
            raise MongoFailure(2, f"Enumeration value '{moment}' for field 'getParameter.setAt' is not a valid value.")


def _current(call: Call, name: str) -> Any:
    if name == "enableTestCommands":
        return call.context.fail_points is not None
    return call.context.parameters.get(name, PARAMETERS[name].default)


async def set_parameter(call: Call) -> Document:
    names = [name for name in call.body if name in PARAMETERS]
    unknown = [
        name for name in list(call.body)[1:]
        if name not in PARAMETERS and not name.startswith("$") and name not in ("lsid", "comment", "txnNumber")
    ]  # fmt: skip
    if not names or unknown:
        raise MongoFailure(72, f"no option found to set, or unknown: {unknown}")
    changes: Document = {}
    for name in names:
        read = PARAMETERS[name].read
        if read is None:
            raise MongoFailure(20, f"The parameter '{name}' cannot be changed while the server runs")
        changes[name] = read(name, call.body[name])
    before = _current(call, names[0])
    for name, value in changes.items():
        call.context.parameters[name] = value
        apply = PARAMETERS[name].apply
        if apply is not None:
            apply(call, value)
    return {"was": before}


COMMANDS = (
    Command("getParameter", get_parameter, "Parameters.", admin_only=True, ignores_unknown_fields=True),
    Command("setParameter", set_parameter, "Change a parameter.", admin_only=True, ignores_unknown_fields=True,
            access=Access.CLUSTER_ADMIN),
)  # fmt: skip

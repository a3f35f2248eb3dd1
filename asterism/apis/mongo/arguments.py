"""The checks that every command's arguments go through before its handler sees them, by the command's row."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN
from typing import Any, Final

from asterism.apis.mongo.commands import Command, FieldRule, Target
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import Decimal128, Document, Int64

BAD_VALUE: Final = 2
TYPE_MISMATCH: Final = 14
INVALID_NAMESPACE: Final = 73
UNKNOWN_FIELD: Final = 40415

# Beside the fields of its own, every command may have these, and any that begins with `$`.
GENERAL_FIELDS: Final = frozenset(
    {
        "lsid", "txnNumber", "autocommit", "startTransaction", "stmtId", "readConcern", "writeConcern", "maxTimeMS",
        "comment", "apiVersion", "apiStrict", "apiDeprecationErrors", "coordinator", "maxTimeMSOpOnly",
        "readPreference", "rawData", "databaseVersion", "shardVersion", "clientOperationKey", "expectPrefix",
        "requestGossipRoutingCache", "traceCtx", "allowImplicitCollectionCreation", "isImplicitCreate",
        "mayBypassWriteBlocking", "needsMerge", "fromRouter", "querySettings", "originalQueryShapeHash",
        "serialization_context", "tenantId", "help", "queryOptions",
    }
)  # fmt: skip

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1


def check_arguments(command: Command, name: str, body: Document, sections: Mapping[str, list[bytes]]) -> None:
    """Raise MongoFailure for a field that is unknown, missing or of another type than the command's row says."""
    rules = command.fields
    if not command.ignores_unknown_fields:
        for field_name in body:
            if field_name in rules or field_name == name or field_name in GENERAL_FIELDS or field_name[:1] == "$":
                continue
            raise MongoFailure(
                UNKNOWN_FIELD,
                f"BSON field '{command.name}.{field_name}' is an unknown field.",
            )
    for field_name, value in body.items():
        rule = rules.get(field_name)
        if rule is None:
            continue
        if value is None:
            if rule.null_code is not None and field_name not in sections:
                raise wrong_type(f"{command.name}.{field_name}", None, rule.types, code=rule.null_code)
        elif rule.types and field_name not in sections and type_name(value) not in rule.types:
            raise wrong_type(f"{command.name}.{field_name}", value, rule.types, code=rule.code)
    for field_name, rule in command.required:
        if body.get(field_name) is None and field_name not in sections:
            raise MongoFailure(
                rule.missing_code, f"BSON field '{command.name}.{field_name}' is missing but a required field"
            )
    check_target(command, body[name])


def wrong_type(path: str, value: Any, expected: tuple[str, ...], *, code: int = TYPE_MISMATCH) -> MongoFailure:
    names = f"type '{expected[0]}'" if len(expected) == 1 else f"types '[{', '.join(expected)}]'"
    return MongoFailure(code, f"BSON field '{path}' is the wrong type '{type_name(value)}', expected {names}")


def check_target(command: Command, value: Any) -> None:
    match command.target:
        case Target.COLLECTION:
            if type(value) is not str:
                raise MongoFailure(command.target_type_code, f"collection name has invalid type {type_name(value)}")
            check_collection_name(value)
        case Target.COLLECTION_OR_DATABASE:
            if type(value) is str:
                check_collection_name(value)
            elif type(value) is bool or type_name(value) not in ("int", "long", "double", "decimal"):
                raise MongoFailure(command.target_type_code, f"collection name has invalid type {type_name(value)}")
        case _:
            pass


# --- names ----------------------------------------------------------------------------------------------------------

_DATABASE_CHARACTERS_MAX: Final = 63
_NAMESPACE_BYTES_MAX: Final = 255
_FORBIDDEN_IN_DATABASE: Final = frozenset('/\\. "$\0')


def check_database_name(name: str) -> None:
    if (
        not name
        or len(name.encode()) > _DATABASE_CHARACTERS_MAX
        or (name != "$external" and not _FORBIDDEN_IN_DATABASE.isdisjoint(name))
    ):
        raise MongoFailure(INVALID_NAMESPACE, f"Invalid database name: '{name}'")


def check_collection_name(name: str) -> None:
    """Refuse text that cannot name a collection that exists; `create` refuses more."""
    if not name or name[0] == "." or "\0" in name:
        raise MongoFailure(INVALID_NAMESPACE, f"Invalid namespace specified '{name}'")


def check_new_collection_name(database: str, name: str) -> None:
    check_collection_name(name)
    if "$" in name or name[-1] == ".":
        raise MongoFailure(INVALID_NAMESPACE, f"Invalid collection name: {name}")
    if len(f"{database}.{name}".encode()) > _NAMESPACE_BYTES_MAX:
        raise MongoFailure(
            INVALID_NAMESPACE, f"Fully qualified namespace is too long. Namespace: {database}.{name} Max: 255"
        )


def split_namespace(namespace: Any, *, path: str) -> tuple[str, str]:
    """Return database and collection of a full name such as `shop.orders`."""
    if type(namespace) is not str:
        raise wrong_type(path, namespace, ("string",))
    database, _, collection = namespace.partition(".")
    check_database_name(database)
    check_collection_name(collection)
    return database, collection


# --- numbers --------------------------------------------------------------------------------------------------------


def whole_number(value: Any, path: str, *, at_least: int | None = None, at_most: int = INT64_MAX) -> int:
    """Return a number of any type as an integer, cut to the range of int64; refuse what is no number or too small."""
    number = truncated(value)
    if number is None:
        raise wrong_type(path, value, ("long", "int", "decimal", "double"))
    if at_least is not None and number < at_least:
        raise MongoFailure(BAD_VALUE, f"BSON field '{path}' value must be >= {at_least}, actual value '{number}'")
    if number > at_most:
        raise MongoFailure(BAD_VALUE, f"BSON field '{path}' value must be <= {at_most}, actual value '{number}'")
    return number


def truncated(value: Any) -> int | None:
    """Return a number without its fraction, within int64, NaN as 0; None for what is no number."""
    if type(value) is bool:
        return None
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Decimal128):
        decimal = value.to_decimal()
        if decimal.is_nan():
            return 0
        if decimal.is_infinite():
            return INT64_MAX if decimal > 0 else -INT64_MAX - 1
        if decimal.adjusted() >= 40:
            return INT64_MAX if decimal > 0 else -INT64_MAX - 1
        # Only doubles are cut; decimals are rounded to the even neighbor.
        return _within_int64(int(decimal.to_integral_value(ROUND_HALF_EVEN)))
    if isinstance(value, float):
        if value != value:
            return 0
        if value in (float("inf"), float("-inf")):
            return INT64_MAX if value > 0 else -INT64_MAX - 1
        return _within_int64(int(value))
    return None


def _within_int64(number: int) -> int:
    return max(-INT64_MAX - 1, min(INT64_MAX, number))


def as_long(number: int) -> Int64:
    return Int64(number)


# --- parts of commands ----------------------------------------------------------------------------------------------

ANY: Final[tuple[str, ...]] = ()
ARRAY: Final = ("array",)
BOOL: Final = ("bool",)
NUMBER: Final = ("int", "long", "double", "decimal")
OBJECT: Final = ("object",)
TEXT: Final = ("string",)
# Types where MongoDB also takes a number for a boolean.
TRUTH: Final = ("bool", *NUMBER)
MISSING_FIELD: Final = 40414


def check_document(where: str, document: Mapping[str, Any], fields: Mapping[str, FieldRule]) -> None:
    """Check the fields of a part of a command against its own table."""
    for name, value in document.items():
        rule = fields.get(name)
        if rule is None:
            raise MongoFailure(UNKNOWN_FIELD, f"BSON field '{where}.{name}' is an unknown field.")
        if value is None:
            if rule.null_code is not None:
                raise wrong_type(f"{where}.{name}", None, rule.types, code=rule.null_code)
        elif rule.types and type_name(value) not in rule.types:
            raise wrong_type(f"{where}.{name}", value, rule.types, code=rule.code)
    for name, rule in fields.items():
        if rule.is_required and document.get(name) is None:
            raise MongoFailure(MISSING_FIELD, f"BSON field '{where}.{name}' is missing but a required field")


def as_int(value: Any) -> int:
    """Return a number of any type as an integer, toward zero, within int64."""
    return truncated(value) or 0


def as_bool(value: Any) -> bool:
    return bool(value.to_decimal()) if isinstance(value, Decimal128) else bool(value)

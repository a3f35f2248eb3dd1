"""`validator`, `validationLevel` and `validationAction`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import VALIDATOR_FEATURES, compile_filter
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

_CHOICES: Final = {
    "validationLevel": ("off", "strict", "moderate"),
    "validationAction": ("error", "warn", "errorAndLog"),
}
_WITHOUT_VALIDATORS: Final = frozenset({"admin", "config", "local"})
_NEAR: Final = ("$near", "$nearSphere", "$geoNear")


def check_choices(options: Document) -> None:
    for name, allowed in _CHOICES.items():
        if options.get(name) is not None and options[name] not in allowed:
            raise MongoFailure(2, f"Enumeration value '{options[name]}' for field '{name}' is not a valid value.")


def check_validator(call: Call, name: str, validator: Document) -> None:
    """Refuse a validator that cannot be compiled, or where there can be none."""
    if call.database in _WITHOUT_VALIDATORS:
        raise MongoFailure(72, f"Document validators are not allowed on collections in the {call.database} database")
    if name.startswith("system."):
        raise MongoFailure(72, f"Document validators are not allowed on system collection {name}")
    _check_operators(validator)
    compile_filter(validator, new_context(call.now, call.cluster_time), features=VALIDATOR_FEATURES)


def _check_operators(filter: Any) -> None:
    """Refuse the operators that need an index or a script."""
    for name, operand in filter.items():
        if name in ("$text", "$where"):
            raise MongoFailure(2, f"{name} is not allowed in this context")
        if name in ("$and", "$or", "$nor") and isinstance(operand, list):
            for part in operand:
                if isinstance(part, dict):
                    _check_operators(part)
        elif isinstance(operand, dict) and not name.startswith("$"):
            for operator in operand:
                if operator in _NEAR:
                    raise MongoFailure(5626500, f"{operator} is not allowed in this context")

"""Outcomes and errors as the protocol's described lists, and back."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from asterism.apis.amqp.engine.transfer_codec import ACCEPTED_STATE
from asterism.apis.amqp.nodes import (
    ACCEPTED,
    INTERNAL_ERROR,
    RELEASED,
    Accepted,
    AmqpError,
    Declared,
    Modified,
    Outcome,
    Rejected,
    Released,
)
from asterism.values.amqp.types import Described, InvalidAmqp, Symbol, ULong
from asterism.values.amqp.value_codec import encode_value

_ERROR: Final = ULong(0x1D)
_ACCEPTED: Final = ULong(0x24)
_REJECTED: Final = ULong(0x25)
_RELEASED: Final = ULong(0x26)
_MODIFIED: Final = ULong(0x27)
_DECLARED: Final = ULong(0x33)
_TRANSACTIONAL: Final = ULong(0x34)

_CODE_OF_SYMBOL: Final[dict[str, int]] = {
    "amqp:error:list": _ERROR,
    "amqp:received:list": 0x23,
    "amqp:accepted:list": _ACCEPTED,
    "amqp:rejected:list": _REJECTED,
    "amqp:released:list": _RELEASED,
    "amqp:modified:list": _MODIFIED,
    "amqp:declared:list": _DECLARED,
    "amqp:transactional-state:list": _TRANSACTIONAL,
}

# Longer sentences are of no use to a client, and the frame has a limit.
_DESCRIPTION_CHARACTERS_MAX: Final = 2048

ACCEPTED_BYTES: Final = encode_value(ACCEPTED_STATE)


class ClientState(NamedTuple):
    """The state that a client gives a delivery: an outcome, perhaps within a transaction."""

    # None: the delivery has no outcome yet.
    outcome: Outcome | None
    transaction: bytes | None


_ACCEPTED_BY_CLIENT: Final = ClientState(ACCEPTED, None)


def state_of(value: Any) -> ClientState:
    """Return the state that a described list says. Raises InvalidAmqp."""
    if value is ACCEPTED_STATE:
        return _ACCEPTED_BY_CLIENT
    if value is None:
        return ClientState(None, None)
    code, fields = _described_list(value)
    if code == _TRANSACTIONAL:
        transaction, outcome = _padded(fields, 2)
        if not isinstance(transaction, bytes):
            raise InvalidAmqp("a transactional state does not name its transaction")
        return ClientState(None if outcome is None else _outcome_of(outcome), transaction)
    return ClientState(_outcome_of(value), None)


def _outcome_of(value: Any) -> Outcome | None:
    code, fields = _described_list(value)
    if code == _ACCEPTED:
        return ACCEPTED
    if code == _RELEASED:
        return RELEASED
    if code == _REJECTED:
        (error,) = _padded(fields, 1)
        return Rejected(None if error is None else error_of(error))
    if code == _MODIFIED:
        failed, undeliverable, annotations = _padded(fields, 3)
        if not isinstance(annotations, dict | None):
            raise InvalidAmqp("annotations that a delivery is modified by are not a map")
        return Modified(failed is True, undeliverable is True, annotations or None)
    # `received` says how much has arrived: that is no outcome.
    return None


def error_of(value: Any) -> AmqpError:
    """Return the error that a described list says. Raises InvalidAmqp."""
    code, fields = _described_list(value)
    condition, description, info = _padded(fields, 3)
    if code != _ERROR or not isinstance(condition, str):
        raise InvalidAmqp("an error does not have the form of an error")
    return AmqpError(
        str(condition),
        description if isinstance(description, str) else "",
        info if isinstance(info, dict) else None,
    )


def _described_list(value: Any) -> tuple[int | None, list[Any]]:
    if not isinstance(value, Described) or type(value.value) is not list:
        raise InvalidAmqp("the state of a delivery is not a described list")
    descriptor = value.descriptor
    code = _CODE_OF_SYMBOL.get(descriptor) if isinstance(descriptor, Symbol) else descriptor
    return code, value.value


def _padded(fields: list[Any], count: int) -> list[Any]:
    if len(fields) > count:
        raise InvalidAmqp("the state of a delivery has more fields than are known")
    return fields + [None] * (count - len(fields))


def encoded_state(outcome: Outcome, transaction: bytes | None = None) -> bytes:
    """Return the bytes of an outcome, within a transaction if there is one. Never fails for lack of a form: an error
    that cannot be written loses its further fields."""
    if transaction is None and isinstance(outcome, Accepted):
        return ACCEPTED_BYTES
    state = _described(outcome)
    if transaction is not None:
        state = Described(_TRANSACTIONAL, [transaction, state])
    return encode_value(state)


def _described(outcome: Outcome) -> Described:
    match outcome:
        case Accepted():
            return ACCEPTED_STATE
        case Released():
            return Described(_RELEASED, [])
        case Rejected(error):
            return Described(_REJECTED, [described_error(error)])
        case Modified(delivery_failed, undeliverable_here, annotations):
            return Described(
                _MODIFIED, [delivery_failed, undeliverable_here, dict(annotations) if annotations else None]
            )
        case Declared(transaction):
            return Described(_DECLARED, [transaction])


def described_error(error: AmqpError | None) -> Described | None:
    """Return an error as its described list, which always has a form."""
    if error is None:
        return None
    condition = error.condition if error.condition.isascii() else INTERNAL_ERROR
    description = error.description[:_DESCRIPTION_CHARACTERS_MAX].encode("utf-8", "replace").decode("utf-8")
    info = None if error.info is None else {Symbol(key): item for key, item in error.info.items()}
    try:
        encode_value(info)
    except InvalidAmqp:
        info = None
    return Described(_ERROR, [Symbol(condition), description, info])

"""The outcomes of deliveries as actions of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asterism.apis.amqp.nodes import Accepted, Modified, Outcome, Rejected, Released
from asterism.models.messages.messages import Abandon, Action, Complete, DeadLetter, Defer, Unlock
from asterism.values.amqp.message import text_of

REASON: Final = "DeadLetterReason"
DESCRIPTION: Final = "DeadLetterErrorDescription"

COMPLETE: Final = Complete()
UNLOCK: Final = Unlock()


def action_of(outcome: Outcome) -> Action:
    """Return the action that an outcome asks for [contract, section C]."""
    match outcome:
        case Accepted():
            return COMPLETE
        case Released():
            return UNLOCK
        case Modified(undeliverable_here=True):
            return Defer(texts_of_keys(outcome.annotations))
        case Modified():
            # Clients for JavaScript abandon without saying that the delivery failed; the delivery counts all the same.
            return Abandon(texts_of_keys(outcome.annotations))
        case Rejected():
            info = {} if outcome.error is None else texts_of_keys(outcome.error.info)
            reason, description = info.pop(REASON, None), info.pop(DESCRIPTION, None)
            return DeadLetter(text_of(reason), text_of(description), info)
        case _:
            return UNLOCK


def texts_of_keys(properties: Mapping[Any, Any] | None) -> dict[str, Any]:
    """Return properties by the text of their names, which come as symbols, texts or binaries."""
    if not properties:
        return {}
    return {text_of(name) or str(name): value for name, value in properties.items()}

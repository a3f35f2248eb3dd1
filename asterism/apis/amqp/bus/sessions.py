"""Sessions as links accept them: the filter that asks for one, and the lock of a link that does not settle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.bus.limits import BusLimits
from asterism.apis.amqp.errors import SESSION_LOCK_LOST, words_of_failure
from asterism.apis.amqp.nodes import INVALID_FIELD, NOT_ALLOWED, AmqpError, Attach, AttachReply
from asterism.models.messages.messages import Failure

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel
    from asterism.models.messages.sessions import SessionHold

SESSION_FILTER: Final = "com.microsoft:session-filter"
TIMEOUT_PROPERTY: Final = "com.microsoft:timeout"
LOCKED_UNTIL_PROPERTY: Final = "com.microsoft:locked-until-utc"

_TICKS_PER_MS: Final = 10_000
# .NET counts from the year 1.
_TICKS_TO_1970: Final = 621_355_968 * 10**9


def ticks_of(ms: int) -> int:
    """Return a time as .NET counts it."""
    return ms * _TICKS_PER_MS + _TICKS_TO_1970


def check_kind(attach: Attach, channel: Channel) -> None:
    """Refuse receivers of sessions where there are none, and others where there are."""
    if channel.requires_session and SESSION_FILTER not in attach.filters:
        raise AmqpError(
            NOT_ALLOWED, "The entity requires sessions: receive from it with a receiver that accepts a session."
        )
    if not channel.requires_session and SESSION_FILTER in attach.filters:
        raise AmqpError(NOT_ALLOWED, "The entity has no sessions: receive from it with a receiver without a session.")


async def accept(attach: Attach, channel: Channel, limits: BusLimits) -> SessionHold:
    """Wait for the session that a link asks for, or for the next available, and hold it."""
    wanted: Any = attach.filters[SESSION_FILTER]
    if isinstance(wanted, bytes):
        # A text that Python has passed on [A8].
        wanted = wanted.decode("utf-8", "replace")
    if wanted is not None and not isinstance(wanted, str):
        raise AmqpError(INVALID_FIELD, "The session filter is neither a session id nor null.")
    if wanted is not None and len(wanted) > limits.id_characters_max:
        raise AmqpError(INVALID_FIELD, f"The session id is longer than {limits.id_characters_max} characters.")
    timeout_ms = attach.properties.get(TIMEOUT_PROPERTY)
    seconds = timeout_ms / 1000 if isinstance(timeout_ms, int) else limits.session_wait_seconds
    hold = await channel.accept_session(None if wanted is None else str(wanted), wait_seconds=seconds)
    # A client that has nothing to settle does not renew the lock either.
    hold.renews_itself = attach.is_presettled
    return hold


def reply_of(hold: SessionHold) -> AttachReply:
    """Return the parts of the answer to an attach that name the session."""
    return AttachReply(
        properties={LOCKED_UNTIL_PROPERTY: ticks_of(hold.locked_until_ms)}, filters={SESSION_FILTER: hold.session_id}
    )


def lock_lost() -> AmqpError:
    return AmqpError(SESSION_LOCK_LOST, words_of_failure(Failure.SESSION_LOCK_LOST).description)

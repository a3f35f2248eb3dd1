"""The properties of a message, as rules look them up: without regard to the case of their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from asterism.languages.bus_sql.values import TICKS_PER_MILLISECOND, Span, value_of
from asterism.models.messages.rules import Envelope, FilterFailed
from asterism.values.amqp.message import Message, Properties, text_of
from asterism.values.amqp.types import InvalidAmqp, Timestamp, Uuid

_ABSENT: Final = object()


class Subject:
    """A message with what the entity knows about it. Sections are decoded when a rule first asks for them."""

    __slots__ = ("_by_folded_name", "_properties", "_user", "envelope", "message")

    def __init__(self, message: Message, envelope: Envelope) -> None:
        self.message = message
        self.envelope = envelope
        self._user: dict[str, Any] | None = None
        self._by_folded_name: dict[str, str] | None = None
        self._properties: Properties | None = None

    @property
    def properties(self) -> Properties:
        if self._properties is None:
            try:
                self._properties = self.message.properties
            except InvalidAmqp as problem:
                raise FilterFailed(f"The properties of the message are malformed: {problem}.") from None
        return self._properties

    @property
    def user_properties(self) -> dict[str, Any]:
        if self._user is None:
            try:
                self._user = self.message.application_properties
            except (InvalidAmqp, AttributeError) as problem:
                raise FilterFailed(f"The application properties of the message are malformed: {problem}.") from None
        return self._user

    def annotation(self, name: str) -> Any:
        try:
            return self.message.annotations.get(name)
        except (InvalidAmqp, AttributeError) as problem:
            raise FilterFailed(f"The annotations of the message are malformed: {problem}.") from None

    def user_name(self, name: str) -> str | None:
        """Return the name of a property as the message spells it; None if it has none of the name."""
        properties = self.user_properties
        if name in properties:
            return name
        if self._by_folded_name is None:
            # The first of several that differ in their case counts.
            self._by_folded_name = {known.lower(): known for known in reversed(properties)}
        return self._by_folded_name.get(name.lower())

    def user(self, name: str) -> Any:
        """Return the value of a property that the sender chose; None without one."""
        sent = self.user_properties.get(name, _ABSENT)
        if sent is _ABSENT:
            known = self.user_name(name)
            sent = None if known is None else self.user_properties[known]
        return value_of(sent)


class Draft(Subject):
    """A copy of a message that an action changes."""

    __slots__ = ("is_changed",)

    def __init__(self, message: Message, envelope: Envelope) -> None:
        super().__init__(message, envelope)
        self._user = dict(super().user_properties)
        # Application properties, and properties of the system.
        self.is_changed = [False, False]

    def set_user(self, name: str, value: Any) -> None:
        known = self.user_name(name)
        self.user_properties[known or name] = value
        self._by_folded_name = None
        self.is_changed[0] = True

    def remove_user(self, name: str) -> None:
        known = self.user_name(name)
        if known is not None:
            del self.user_properties[known]
            self._by_folded_name = None
            self.is_changed[0] = True

    def set_system(self, field: str, value: Any) -> None:
        self._properties = self.properties._replace(**{field: value})
        self.is_changed[1] = True


# --- properties of the system ---------------------------------------------------------------------------------------

_Reader = Callable[[Subject], Any]


def system_text(subject: Subject, field: str) -> str | None:
    """Return a field of the message's properties as text. Ids have several types in AMQP, and are texts for rules."""
    value = getattr(subject.properties, field)
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if isinstance(value, Uuid):
        digits = value.hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return str(value) if isinstance(value, int) else text_of(value)


def _field(name: str) -> _Reader:
    return lambda subject: system_text(subject, name)


def _moment(name: str) -> _Reader:
    def read(subject: Subject) -> Timestamp | None:
        milliseconds = getattr(subject.envelope, name)
        return None if milliseconds is None else Timestamp(milliseconds)

    return read


def _annotation(name: str) -> _Reader:
    return lambda subject: value_of(subject.annotation(name))


def _envelope(name: str) -> _Reader:
    return lambda subject: getattr(subject.envelope, name)


def _time_to_live(subject: Subject) -> Span | None:
    ttl_ms = subject.envelope.ttl_ms
    return None if ttl_ms is None else Span(ttl_ms * TICKS_PER_MILLISECOND)


# The properties that an action may set, by their names in lower case -> the fields that hold them.
SETTABLE: Final = {
    "messageid": "message_id",
    "correlationid": "correlation_id",
    "to": "to",
    "replyto": "reply_to",
    "label": "subject",
    "subject": "subject",
    "replytosessionid": "reply_to_group_id",
    "contenttype": "content_type",
}
SYSTEM: Final[dict[str, _Reader]] = {
    **{name: _field(field) for name, field in SETTABLE.items()},
    "sessionid": _field("group_id"),
    "enqueuedtimeutc": _moment("enqueued_ms"),
    "sequencenumber": _envelope("sequence_number"),
    "enqueuedsequencenumber": _envelope("enqueued_sequence_number"),
    "timetolive": _time_to_live,
    "partitionkey": _annotation("x-opt-partition-key"),
    "viapartitionkey": _annotation("x-opt-via-partition-key"),
    "deliverycount": _envelope("delivery_count"),
    "scheduledenqueuetimeutc": _moment("scheduled_ms"),
    "lockeduntilutc": _moment("locked_until_ms"),
    "expiresatutc": _moment("expires_ms"),
    "deadlettersource": _envelope("dead_letter_source"),
    "state": lambda subject: int(subject.envelope.state),
}


def system_reader(name: str) -> _Reader:
    """Return a function that reads a property of the system; for an unknown name a function that fails."""
    known = SYSTEM.get(name.lower())
    if known is not None:
        return known

    def fail(_: Subject) -> Any:
        raise FilterFailed(f"There is no system property '{name}'.")

    return fail

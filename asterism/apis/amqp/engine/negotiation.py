"""The beginning of a connection: protocol headers, SASL, and the `open` of both sides."""

from __future__ import annotations

import enum
import hmac
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.engine.frame_codec import (
    AMQP_FRAME,
    AMQP_HEADER,
    SASL_FRAME,
    SASL_HEADER,
    Frame,
    ProtocolHeader,
)
from asterism.apis.amqp.engine.performatives import Performative, decode_performative, encode_performative
from asterism.apis.amqp.engine.tokens import TokenGrant
from asterism.apis.amqp.nodes import INVALID_FIELD, AmqpError
from asterism.values.amqp.message import text_of
from asterism.values.amqp.types import Array, InvalidAmqp, Symbol, UByte, UInt, UShort

if TYPE_CHECKING:
    from asterism.apis.amqp.engine.connection import Connection

# Clients take the first that they know. The first of these is how some name the tokens of `$cbs`.
_ANONYMOUS: Final = ("MSSBCBS", "ANONYMOUS", "EXTERNAL")
_PLAIN: Final = "PLAIN"
_MECHANISMS: Final = ("MSSBCBS", _PLAIN, "ANONYMOUS", "EXTERNAL")
_SUCCESS, _REFUSED = UByte(0), UByte(1)
# The least that a peer may agree to.
_FRAME_BYTES_MIN: Final = 512
_FRAMING_ERROR: Final = "amqp:connection:framing-error"
# The audience of the rights that come with a key.
_PLAIN_AUDIENCE: Final = "\0plain"


class NegotiationFailed(Exception):
    """The client speaks another protocol, or has the wrong key; the last bytes say so, and nothing more is sent."""


class _Step(enum.Enum):
    SASL_HEADER = enum.auto()
    SASL_INIT = enum.auto()
    AMQP_HEADER = enum.auto()
    OPEN = enum.auto()


class Negotiation:
    """Takes a connection through its first messages, one at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._step = _Step.SASL_HEADER
        self._plain_namespace: str | None = None

    async def advance(self, message: ProtocolHeader | Frame) -> bool:
        """Take one message in; True if it was the client's `open`.

        Raises NegotiationFailed, and AmqpError or InvalidAmqp once errors can be told.
        """
        match self._step, message:
            case _Step.SASL_HEADER, ProtocolHeader(content):
                self._take_sasl_header(content)
            case _Step.SASL_INIT, Frame(kind=kind, body=body) if kind == SASL_FRAME:
                await self._take_sasl_init(body)
            case _Step.AMQP_HEADER, ProtocolHeader(content):
                self._take_amqp_header(content)
            case _Step.OPEN, Frame(body=b""):
                return False
            case _Step.OPEN, Frame(kind=kind, body=body) if kind == AMQP_FRAME:
                self._take_open(body)
                return True
            case _Step.OPEN, _:
                self._send_open()
                raise AmqpError(_FRAMING_ERROR, "The first frame is not an open.")
            case _:
                raise NegotiationFailed
        return False

    def _take_sasl_header(self, content: bytes) -> None:
        self._connection.write(SASL_HEADER)
        if content != SASL_HEADER:
            # Whatever it is, this is the header that it should have been.
            raise NegotiationFailed
        mechanisms = Array.of(Symbol, _MECHANISMS)
        self._connection.write(encode_performative(0, Performative.SASL_MECHANISMS, [mechanisms], kind=SASL_FRAME))
        self._step = _Step.SASL_INIT

    async def _take_sasl_init(self, body: bytes) -> None:
        try:
            code, fields, _ = decode_performative(body)
        except InvalidAmqp:
            raise NegotiationFailed from None
        if code != Performative.SASL_INIT:
            raise NegotiationFailed
        mechanism, response, hostname = text_of(fields[0]), fields[1], text_of(fields[2])
        is_welcome = mechanism in _ANONYMOUS or (mechanism == _PLAIN and await self._take_key(response, hostname))
        outcome = [_SUCCESS if is_welcome else _REFUSED, None]
        self._connection.write(encode_performative(0, Performative.SASL_OUTCOME, outcome, kind=SASL_FRAME))
        if not is_welcome:
            raise NegotiationFailed
        self._step = _Step.AMQP_HEADER

    async def _take_key(self, response: Any, hostname: str | None) -> bool:
        """Check the name of a rule and its key, which give the rule's rights on the whole namespace."""
        connection = self._connection
        parts = response.split(b"\0") if isinstance(response, bytes) else []
        if len(parts) != 3:
            return False
        namespace = connection.host.namespace_of(hostname or connection.server_name)
        rules = await connection.host.keys_for(namespace, "")
        keys, rights = rules.get(parts[1].decode("utf-8", "replace"), ((), frozenset()))
        if not any(hmac.compare_digest(key.encode("utf-8"), parts[2]) for key in keys):
            connection.counters.tokens_refused += 1
            return False
        connection.counters.tokens_accepted += 1
        now = connection.clock.date_seconds()
        connection.peer.tokens.put(_PLAIN_AUDIENCE, TokenGrant("", rights), now_wall_seconds=now)
        self._plain_namespace = namespace
        return True

    def _take_amqp_header(self, content: bytes) -> None:
        self._connection.write(AMQP_HEADER)
        if content != AMQP_HEADER:
            raise NegotiationFailed
        self._step = _Step.OPEN

    def _send_open(self) -> None:
        """Send this side's open, which goes first: it can then say why it closes."""
        connection, settings = self._connection, self._connection.settings
        connection.write(
            encode_performative(
                0,
                Performative.OPEN,
                [
                    connection.container_id,
                    None,
                    UInt(settings.frame_bytes_max),
                    UShort(settings.channel_max),
                    UInt(settings.idle_milliseconds),
                ],
            )
        )
        connection.is_opened = True

    def _take_open(self, body: bytes) -> None:
        connection = self._connection
        self._send_open()
        code, fields, _ = decode_performative(body)
        if code != Performative.OPEN:
            raise AmqpError(_FRAMING_ERROR, "The first frame is not an open.")
        container_id, hostname, frame_bytes_max = text_of(fields[0]), text_of(fields[1]), fields[2]
        if container_id is None or not isinstance(frame_bytes_max, int | None):
            raise InvalidAmqp("the open lacks a container-id, or a field does not have its type")
        if frame_bytes_max is not None and frame_bytes_max < _FRAME_BYTES_MIN:
            raise AmqpError(INVALID_FIELD, f"The max-frame-size is below {_FRAME_BYTES_MIN}.")
        connection.peer.container_id = container_id
        connection.peer.namespace = connection.host.namespace_of(hostname or connection.server_name)
        if self._plain_namespace not in (None, connection.peer.namespace):
            raise AmqpError("amqp:unauthorized-access", "The key that was given is of another namespace.")
        if frame_bytes_max is not None:
            connection.frame_bytes_max = min(frame_bytes_max, connection.frame_bytes_max)

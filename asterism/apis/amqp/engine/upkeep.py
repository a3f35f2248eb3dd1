"""The state of a connection that changes with time alone: quiet, silence, tokens that expire, and disuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from asterism.apis.amqp.engine.frame_codec import EMPTY_FRAME
from asterism.apis.amqp.engine.pulse import TICKS_PER_HEARTBEAT
from asterism.apis.amqp.nodes import UNAUTHORIZED, AmqpError

if TYPE_CHECKING:
    from asterism.apis.amqp.engine.connection import Connection

_FORCED: Final = "amqp:connection:forced"


class Upkeep:
    """Looks after one connection, a few times in a heartbeat."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._quiet_ticks = 0
        self._silent_ticks = 0
        self._ticks = 0
        self._began = connection.clock.monotonic_seconds()

    def on_tick(self, now_monotonic_seconds: float) -> None:
        connection = self._connection
        self._quiet_ticks = 0 if connection.has_sent else self._quiet_ticks + 1
        self._silent_ticks = 0 if connection.has_received else self._silent_ticks + 1
        connection.has_sent = connection.has_received = False
        if self._quiet_ticks >= TICKS_PER_HEARTBEAT and connection.is_opened:
            connection.write(EMPTY_FRAME)
            connection.has_sent = False
            connection.counters.heartbeats += 1
            self._quiet_ticks = 0
        self._ticks += 1
        if self._ticks % TICKS_PER_HEARTBEAT == 0:
            self._look_at_silence()
            self._look_at_rights()
            self._look_at_use(now_monotonic_seconds)

    def _look_at_silence(self) -> None:
        settings = self._connection.settings
        silent_seconds = self._silent_ticks * settings.heartbeat_seconds / TICKS_PER_HEARTBEAT
        if silent_seconds > settings.silence_seconds_max:
            sentence = f"The client has sent nothing for {settings.silence_seconds_max:g} seconds."
            self._connection.end(AmqpError(_FORCED, sentence))

    def _look_at_rights(self) -> None:
        """Detach the links whose tokens have expired and were not renewed."""
        connection = self._connection
        if not connection.peer.tokens.drop_expired(now_wall_seconds=connection.clock.date_seconds()):
            return
        for link in list(connection.open_links):
            if not link.peer.still_holds():
                sentence = "The token of the link has expired. Put another to $cbs, and attach again."
                link.detach(AmqpError(UNAUTHORIZED, sentence))

    def _look_at_use(self, now: float) -> None:
        connection, settings = self._connection, self._connection.settings
        if connection.peer.tokens.is_unused and now - self._began > settings.token_seconds_max:
            sentence = f"The connection has put no token within {settings.token_seconds_max:g} seconds."
            connection.end(AmqpError(_FORCED, sentence))
        elif not any(link.is_of_entity for link in connection.open_links):
            last_used = connection.last_used_monotonic_seconds
            allowed = settings.linkless_seconds_max if last_used is None else settings.idle_link_seconds_max
            if now - (self._began if last_used is None else last_used) > allowed:
                sentence = f"The connection was inactive for more than the allowed {allowed:g} seconds."
                connection.end(AmqpError(_FORCED, sentence))

"""The limits and times of the engine, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.limits import KIB, MIB


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The numbers come from the service's own answers, measured or documented, where no other reason is given."""

    frame_bytes_max: int = 64 * KIB
    channel_max: int = 4999
    # Handles are single bytes in the frames of this side.
    handle_max: int = 255
    links_per_connection_max: int = 5000
    # Before its first token a client needs the two of `$cbs`; some attach others meanwhile.
    links_without_token_max: int = 100
    # In frames; renewed at half.
    incoming_window: int = 5000
    # Of a link on which the client sends; renewed at half.
    credit: int = 1000
    # Of a message from a client, where its node has no limit of its own: what clients assume.
    message_bytes_max: int = MIB
    # Messages that have arrived in part, of one connection: many links may be in the middle of one.
    partial_bytes_max: int = 128 * MIB
    # Messages and settlements that wait for their nodes, of one connection: it is read no further above these.
    waiting_bytes_max: int = 8 * MIB
    waiting_count_max: int = 10_000
    # The same of all connections of a process: above this, each is read no further while it has more than a fair share.
    waiting_bytes_total_max: int = 256 * MIB
    waiting_bytes_share: int = 64 * KIB
    # Frames for a client that does not take them as fast; nodes wait above the first, reading stops above the second.
    unsent_bytes_soft_max: int = 256 * KIB
    unsent_bytes_max: int = 4 * MIB
    # Deliveries of a session that the client has not settled; above this the oldest is forgotten.
    unsettled_max: int = 100_000
    # Requests to a management node of one link that are answered at the same time.
    requests_at_once_max: int = 16
    # Answers of these that a client gives no credit for; the oldest are dropped, as their requests have timed out.
    answers_bytes_max: int = 4 * MIB
    # Tokens of one connection, and the name of the entity that a token is for.
    tokens_max: int = 10_000
    audience_characters_max: int = 4 * KIB

    # A connection is told to expect frames, as it is told to send some.
    idle_milliseconds: int = 120_000
    # Twice that, as peers are asked to send at half the time.
    silence_seconds_max: float = 240.0
    # A client's keep-alive thread holds the lock of its socket while it waits for a frame: it must not wait long.
    heartbeat_seconds: float = 5.0
    # How long a connection may be without a token, without links at its beginning, and after its last link.
    token_seconds_max: float = 20.0
    linkless_seconds_max: float = 60.0
    idle_link_seconds_max: float = 300.0
    # How long the work under way is waited for, and the last bytes, when a connection has ended.
    finish_seconds_max: float = 30.0
    flush_seconds_max: float = 5.0


@dataclass(slots=True)
class EngineCounters:
    """Totals since the process started, and what there is at present."""

    connections: int = 0
    links: int = 0
    connections_opened: int = 0
    links_opened: int = 0
    links_refused: int = 0
    frames_received: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    transfers_received: int = 0
    transfers_sent: int = 0
    # Of messages that wait for their nodes at present.
    waiting_bytes: int = 0
    settlements: int = 0
    heartbeats: int = 0
    tokens_accepted: int = 0
    tokens_refused: int = 0
    failures: int = 0

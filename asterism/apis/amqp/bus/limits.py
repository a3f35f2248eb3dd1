"""The limits of messages and links, which the settings of the door change."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BusLimits:
    """Spec S4, and the service's own numbers where it names none."""

    # Receivers of one queue, or of one subscription.
    receivers_per_entity_max: int = 5_000
    # Characters of message ids and session ids.
    id_characters_max: int = 128
    # Of one application property, and of all.
    property_bytes_max: int = 32 * 1024
    properties_bytes_max: int = 64 * 1024
    transaction_messages_max: int = 100
    transaction_seconds_max: float = 120.0
    # Transactions of one connection that are open at the same time; each of them may hold `transaction_messages_max`.
    transactions_per_connection_max: int = 100
    # Of one answer to `peek-message`.
    peek_bytes_max: int = 256 * 1024
    # Time that a client waits for the next available session if it names none.
    session_wait_seconds: float = 65.0

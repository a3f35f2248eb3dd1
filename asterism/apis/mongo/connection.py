"""The state of one connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Connection:
    number: int
    peer_address: str
    local_address: str
    is_tls: bool
    server_name: str | None = None
    # The account whose data it sees, and the user who logged in; "" before.
    account: str = ""
    user: str = ""
    application: str = ""
    # A login under way.
    conversation: Any = None
    # Of the last command, for `getLastRequestStatistics`.
    last_command: str = ""
    last_charge: float = 0.0
    last_milliseconds: float = 0.0

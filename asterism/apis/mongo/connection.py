"""The state of one connection."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asterism.apis.mongo.users.rights import Rights
    from asterism.apis.transports.tcp import ByteStream


@dataclass(slots=True)
class Connection:
    number: int
    peer_address: str
    local_address: str
    is_tls: bool
    server_name: str | None = None
    stream: ByteStream | None = None
    # The account whose data it sees; "" before a login.
    account: str = ""
    # Names the user as owner of cursors and sessions: an account, or `database.name` of a user; "" for neither.
    user: str = ""
    user_name: str = ""
    user_database: str = "admin"
    # True for the account itself, or where no login is needed: everything is allowed.
    is_owner: bool = False
    # The rights of any other user, as last looked up.
    rights: Rights | None = None
    # Of the driver's program, as its first hello says.
    application: str = ""
    # A login under way.
    conversation: Any = None
    # Of the last command, for `getLastRequestStatistics`.
    last_command: str = ""
    last_charge: float = 0.0
    last_milliseconds: float = 0.0

    @property
    def is_ending(self) -> bool:
        return self.stream is not None and self.stream.is_draining

    async def pause(self, seconds: float, until: asyncio.Event) -> None:
        """Wait for the time or the event, no longer than the server runs; ClientGone if the client goes before."""
        if self.stream is None:
            return
        await self.stream.while_connected(_first(seconds, until, self.stream))


async def _first(seconds: float, until: asyncio.Event, stream: ByteStream) -> None:
    waits = [asyncio.ensure_future(until.wait()), asyncio.ensure_future(stream.until_draining())]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()

"""The client of a connection, as nodes see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from asterism.apis.amqp.engine.tokens import TokenTable
from asterism.apis.amqp.nodes import Right
from asterism.clock import Clock


@dataclass(slots=True)
class ClientPeer:
    """A `Peer`. The one of a link remembers the rights that were required of it, which hold as long as the link."""

    clock: Clock
    tokens: TokenTable
    peer_address: str
    namespace: str = ""
    container_id: str = ""
    shared: dict[str, Any] = field(default_factory=dict)
    requirements: list[tuple[str, Right]] | None = None

    def require(self, path: str, right: Right) -> None:
        # Expiry times are dates that clients sign.
        self.tokens.require(path, right, now_wall_seconds=self.clock.date_seconds())
        if self.requirements is not None:
            self.requirements.append((path, right))

    def of_link(self) -> ClientPeer:
        """Return the same peer with requirements of its own."""
        return ClientPeer(
            self.clock,
            self.tokens,
            self.peer_address,
            self.namespace,
            self.container_id,
            self.shared,
            [],
        )

    def still_holds(self) -> bool:
        """Return whether the tokens still give every right that was required."""
        now = self.clock.date_seconds()
        return all(
            self.tokens.gives(path, right, now_wall_seconds=now)
            for path, right in dict.fromkeys(self.requirements or ())
        )

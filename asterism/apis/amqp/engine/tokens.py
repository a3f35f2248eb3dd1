"""The rights that the tokens of one connection give, by paths of its namespace."""

from __future__ import annotations

import math
from dataclasses import dataclass

from asterism.access.messaging_token import is_below
from asterism.apis.amqp.nodes import RESOURCE_LIMIT, UNAUTHORIZED, AmqpError, Right

ALL_RIGHTS = frozenset(Right)


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """Rights on a path and everything below it, for some time."""

    # In lower case, without slashes at its ends; "" is the whole namespace.
    scope: str
    rights: frozenset[Right]
    expires_wall_seconds: float = math.inf

    def gives(self, path: str, right: Right, *, now_wall_seconds: float) -> bool:
        # A rule that may manage may also send and listen.
        has_right = right in self.rights or Right.MANAGE in self.rights
        return has_right and now_wall_seconds < self.expires_wall_seconds and is_below(path, self.scope)


class TokenTable:
    """The grants of one connection: the last for every audience, as clients renew a token by putting another."""

    def __init__(self, *, tokens_max: int) -> None:
        self._tokens_max = tokens_max
        self._by_audience: dict[str, TokenGrant] = {}
        # No grant has ever been put.
        self.is_unused = True

    def put(self, audience: str, grant: TokenGrant, *, now_wall_seconds: float) -> None:
        """Add or renew a grant; AmqpError when there are too many."""
        if len(self._by_audience) >= self._tokens_max and audience not in self._by_audience:
            self.drop_expired(now_wall_seconds=now_wall_seconds)
            if len(self._by_audience) >= self._tokens_max:
                raise AmqpError(RESOURCE_LIMIT, f"A connection has at most {self._tokens_max} tokens.")
        self._by_audience[audience] = grant
        self.is_unused = False

    def gives(self, path: str, right: Right, *, now_wall_seconds: float) -> bool:
        path = path.strip("/").lower()
        grants = self._by_audience.values()
        return any(grant.gives(path, right, now_wall_seconds=now_wall_seconds) for grant in grants)

    def require(self, path: str, right: Right, *, now_wall_seconds: float) -> None:
        """Check that a grant gives a right on a path; AmqpError if none does."""
        if not self.gives(path, right, now_wall_seconds=now_wall_seconds):
            raise AmqpError(
                UNAUTHORIZED,
                f"Unauthorized access. '{right.value}' claim(s) are required to perform this operation. "
                f"Resource: '{path}'. Put a token that gives them to $cbs first.",
            )

    def drop_expired(self, *, now_wall_seconds: float) -> bool:
        """Forget the grants that have expired; True if there were any, so that links have to be looked at."""
        held = self._by_audience
        if all(now_wall_seconds < grant.expires_wall_seconds for grant in held.values()):
            return False
        self._by_audience = {key: grant for key, grant in held.items() if now_wall_seconds < grant.expires_wall_seconds}
        return True

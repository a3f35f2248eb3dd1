"""Sessions and consistency levels: the freshness that a request asks of a read, and the LSN that an answer reports.

In a store without copies every read sees every acknowledged write, so all five levels are met; the door only refuses
a level that the account does not offer, and a token of a log that this server has not reached. In a store with copies,
they may answer the levels below bounded staleness.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from asterism.apis.nosql import headers
from asterism.apis.transports.http import Headers
from asterism.errors import MalformedRequest

# From the strongest to the weakest: a request may ask for less than the account gives, never for more.
CONSISTENCY_LEVELS: Final = ("Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual")
_SESSION: Final = "Session"
# Bounded staleness is met by reading the newest: no bound on a copy's lag has to be watched.
_NEWEST: Final = frozenset({"Strong", "BoundedStaleness"})
# A client that only reads sends one token again and again; long ones are parsed each time, to keep the cache small.
_CACHED_TOKEN_CHARACTERS_MAX: Final = 128
_CACHED_TOKENS_MAX: Final = 2048


class ConsistencyRules:
    """The levels that a request may ask for, given the account's own."""

    __slots__ = ("_account_level", "_allowed")

    def __init__(self, account_level: str) -> None:
        if account_level not in CONSISTENCY_LEVELS:
            raise ValueError(f"an account's consistency is one of {', '.join(CONSISTENCY_LEVELS)}")
        self._account_level = account_level
        strongest = CONSISTENCY_LEVELS.index(account_level)
        self._allowed = {level: level == _SESSION for level in CONSISTENCY_LEVELS[strongest:]}

    def reads_newest(self, given: Headers) -> bool:
        """Return whether a read must see every acknowledged write, rather than those of its session."""
        return (given.get(headers.CONSISTENCY_LEVEL) or self._account_level) in _NEWEST

    def session_of(self, given: Headers) -> Mapping[int, int] | None:
        """Return the LSN that a read must have reached by range id, or None if any will do; refuse unknown levels."""
        level = given.get(headers.CONSISTENCY_LEVEL)
        uses_session = self._allowed.get(self._account_level if level is None else level)
        if uses_session is None:
            self._refuse(level or "")
        if not uses_session:
            return None
        token = given.get(headers.SESSION_TOKEN)
        if not token:
            return None
        return _parse_cached(token) if len(token) <= _CACHED_TOKEN_CHARACTERS_MAX else parse_session_token(token)

    def _refuse(self, level: str) -> None:
        if level not in CONSISTENCY_LEVELS:
            raise MalformedRequest(
                reason=f"The value '{level[:64]}' specified for the header '{headers.CONSISTENCY_LEVEL}' is invalid."
            )
        raise MalformedRequest(
            reason=f"ConsistencyLevel {level} specified in the request is stronger than the account's, which is "
            f"{self._account_level}. Ensure that the request's level is not stronger."
        )


def session_token(range_id: int, lsn: int) -> str:
    return f"{range_id}:-1#{lsn}"


def parse_session_token(token: str) -> dict[int, int]:
    """Parse `0:-1#12`, several of them with commas between, and the vector `0:1#12#3=11` (version, LSN, regions)."""
    reached: dict[int, int] = {}
    for part in token.split(","):
        range_text, _, progress = part.strip().partition(":")
        segments = progress.split("#")
        # The form without a version is older, and still what some callers build by hand.
        lsn_text = segments[1] if len(segments) > 1 else segments[0]
        try:
            range_id, lsn = int(range_text), int(lsn_text)
        except ValueError:
            raise MalformedRequest(
                reason=f"The value '{token[:128]}' specified for the header '{headers.SESSION_TOKEN}' is invalid."
            ) from None
        reached[range_id] = max(lsn, reached.get(range_id, 0))
    return reached


_parse_cached = lru_cache(maxsize=_CACHED_TOKENS_MAX)(parse_session_token)

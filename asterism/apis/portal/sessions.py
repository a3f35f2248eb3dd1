"""Sessions as signed texts, so that every process of a server knows them and a restart does not end them.

The secret is derived from the account's primary key: a new key ends all sessions of the account. Signing out clears the
cookie and revokes the session in all processes.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass

from asterism.access.keys import Grant

_SESSION_LABEL = b"asterism portal session 1"
_CSRF_LABEL = b"asterism portal form 1"
ID_BYTES = 16
# Longer texts are not ours, and are not decoded.
TOKEN_CHARACTERS_MAX = 1024


@dataclass(frozen=True, slots=True)
class Session:
    account: str
    grant: Grant
    id: str
    expires_at: int
    # Of the server's own account, which sees all accounts, nodes and jobs.
    is_operator: bool = False

    @property
    def may_change(self) -> bool:
        return self.grant is Grant.FULL


def sign_session(session: Session, key: bytes) -> str:
    """Return the text of the cookie."""
    members = {"a": session.account, "g": session.grant.value, "i": session.id, "e": session.expires_at}
    payload = json.dumps(members, separators=(",", ":")).encode()
    return f"{_text(payload)}.{_text(_mac(key, _SESSION_LABEL, payload))}"


def read_session(
    token: str, *, key_of: Callable[[str], bytes | None], operator: str, now_wall_seconds: float
) -> Session | None:
    """Return the session of a cookie; None if it is not genuine, has expired, or its account has gone.

    `key_of` returns the primary key of an account.
    """
    if len(token) > TOKEN_CHARACTERS_MAX:
        return None
    payload_text, _, mac_text = token.partition(".")
    try:
        payload, mac = _bytes(payload_text), _bytes(mac_text)
        members = json.loads(payload)
        account, session = str(members["a"]), _session_of(members, operator)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    key = key_of(account)
    if key is None or not hmac.compare_digest(_mac(key, _SESSION_LABEL, payload), mac):
        return None
    return session if now_wall_seconds < session.expires_at else None


def csrf_token(session: Session, key: bytes) -> str:
    """Return the text that every changing request of the session must carry, which no other site can read."""
    return _text(_mac(key, _CSRF_LABEL, session.id.encode()))


def new_session_id(random_bytes: Callable[[int], bytes]) -> str:
    return _text(random_bytes(ID_BYTES))


def _session_of(members: dict[str, object], operator: str) -> Session:
    account, expires_at = str(members["a"]), members["e"]
    if not isinstance(expires_at, int):
        raise TypeError
    return Session(account, Grant(members["g"]), str(members["i"]), expires_at, account == operator)


def _mac(key: bytes, label: bytes, payload: bytes) -> bytes:
    return hmac.digest(hmac.digest(key, label, "sha256"), payload, "sha256")


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None

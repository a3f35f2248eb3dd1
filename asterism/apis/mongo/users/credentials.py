"""Credentials of users as they are stored, and those of an account's keys, which are derived when they are needed."""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from asterism.apis.mongo.users import scram
from asterism.apis.mongo.users.sasl_text import ProhibitedText
from asterism.apis.mongo.users.scram import Credentials
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document

# Keys of accounts and mechanisms whose credentials are kept; beyond it the oldest are derived again.
_KEPT_MAX = 1024


def stored_form(credentials: Iterable[Credentials]) -> Document:
    return {
        each.mechanism: {
            "iterationCount": each.iterations,
            "salt": base64.b64encode(each.salt).decode(),
            "storedKey": base64.b64encode(each.stored_key).decode(),
            "serverKey": base64.b64encode(each.server_key).decode(),
        }
        for each in credentials
    }


def read_stored(mechanism: str, user: Document) -> Credentials | None:
    """Return the credentials of a stored user for a mechanism; None if it has none."""
    found: Any = user.get("credentials", {}).get(mechanism)
    if found is None:
        return None
    salt, stored_key, server_key = (base64.b64decode(found[name]) for name in ("salt", "storedKey", "serverKey"))
    return Credentials(mechanism, found["iterationCount"], salt, stored_key, server_key)


async def credentials_of(
    name: str,
    password: str,
    mechanisms: Sequence[str],
    random_bytes: Callable[[int], bytes],
    *,
    is_digested: bool = False,
) -> Document:
    """Derive the credentials of a new password, in the form in which they are stored."""
    derived = []
    for mechanism in mechanisms:
        try:
            secret = scram.password_text(mechanism, name, password, is_digested=is_digested)
        except ProhibitedText:
            raise MongoFailure(2, "Error preflighting UTF-8 conversion: the password has a prohibited character") from (
                None
            )
        salt = random_bytes(scram.SALT_BYTES[mechanism])
        derived.append(await asyncio.to_thread(scram.derive, mechanism, secret, salt))
    return stored_form(derived)


class KeyCredentials:
    """Credentials of the keys of accounts, which stand in the configuration or in the catalog as they are."""

    def __init__(self, salt_secret: Callable[[], str]) -> None:
        """`salt_secret` is known to this installation only, so that no client can tell a made-up salt from others."""
        self._salt_secret = salt_secret
        self._known: dict[tuple[str, str, str], Credentials] = {}

    def blank(self, mechanism: str, user: str) -> Credentials:
        """Return credentials with the salt of a name, the same with every login, that no password matches."""
        salt = hmac.digest(self._salt_secret().encode(), f"mongo {mechanism} {user}".encode(), "sha256")
        size = scram.SALT_BYTES[mechanism]
        return Credentials(mechanism, scram.ITERATIONS[mechanism], salt[:size], b"", b"")

    async def derive(self, mechanism: str, user: str, keys: Iterable[str]) -> list[Credentials]:
        found = []
        for key in keys:
            known = self._known.get((mechanism, user, key))
            blank = self.blank(mechanism, user)
            if known is None or known.salt != blank.salt:
                secret = scram.password_text(mechanism, user, key)
                known = await asyncio.to_thread(scram.derive, mechanism, secret, blank.salt)
                while len(self._known) >= _KEPT_MAX:
                    del self._known[next(iter(self._known))]
                self._known[mechanism, user, key] = known
            found.append(known)
        return found

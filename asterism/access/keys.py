"""The four keys of an account: two with full access, two that are read-only."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from asterism.access.checked_signatures import CheckedSignatures

# Public: printed in the vendor's documentation of its emulator and the default of its clients' own tests, so that
# they connect to a local server without any configuration. Not a secret, and unfit for a server that others can reach.
WELL_KNOWN_EMULATOR_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
# Public as well: the account that clients of storage services use by default (`UseDevelopmentStorage=true`).
DEVELOPMENT_ACCOUNT = "devstoreaccount1"
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
PUBLIC_KEYS = (WELL_KNOWN_EMULATOR_KEY, DEVELOPMENT_KEY)

_SECONDARY_LABEL = b"asterism secondary key 1"
_READ_ONLY_LABEL = b"asterism read-only key 1"


class Grant(Enum):
    """Access that a key grants."""

    FULL = "full"
    READ_ONLY = "read only"


_READING_VERBS = frozenset({"GET", "HEAD"})


def grant_allows(grant: Grant, *, verb: str, is_query: bool) -> bool:
    """Return True if the grant covers a request. Read-only keys may read and query, which is a POST by its verb."""
    return grant is Grant.FULL or is_query or verb.upper() in _READING_VERBS


def derive_readonly_key(key: str) -> str:
    """Return the read-only key that belongs to `key` if none is configured.

    HMAC-SHA512 of a fixed label under the key: every server with the same configuration has the same read-only key, and
    the key itself cannot be computed from it.
    """
    return _derive(key, label=_READ_ONLY_LABEL)


def derive_secondary_key(primary: str) -> str:
    """Return the secondary key of an account with only a primary key; derived in the same way."""
    return _derive(primary, label=_SECONDARY_LABEL)


def _derive(key: str, *, label: bytes) -> str:
    return base64.b64encode(hmac.digest(_decode_key(key), label, "sha512")).decode("ascii")


def _decode_key(key: str) -> bytes:
    try:
        key_bytes = base64.b64decode(key, validate=True)
    except binascii.Error:
        raise ValueError("an account key must be base64 text") from None
    if not key_bytes:
        raise ValueError("an account key must not be empty")
    return key_bytes


@dataclass(frozen=True, slots=True)
class AccountKeys:
    """The keys as base64 text, decoded once. Raises ValueError if a key is not base64."""

    primary: str = field(repr=False)
    secondary: str = field(repr=False)
    primary_readonly: str = field(repr=False)
    secondary_readonly: str = field(repr=False)
    # In the order in which they are tried: most requests carry the primary key.
    decoded: tuple[tuple[bytes, Grant], ...] = field(init=False, repr=False, compare=False)
    checked: CheckedSignatures[Grant] = field(init=False, repr=False, compare=False, default_factory=CheckedSignatures)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decoded", tuple(self._decode()))

    def _decode(self) -> Iterator[tuple[bytes, Grant]]:
        yield _decode_key(self.primary), Grant.FULL
        yield _decode_key(self.secondary), Grant.FULL
        yield _decode_key(self.primary_readonly), Grant.READ_ONLY
        yield _decode_key(self.secondary_readonly), Grant.READ_ONLY

    def grant_of(self, given: bytes) -> Grant | None:
        """Return the grant of a key given as base64 text, or None if it is not one of the account's keys."""
        texts = (self.primary, self.secondary, self.primary_readonly, self.secondary_readonly)
        for text, (_, grant) in zip(texts, self.decoded, strict=True):
            if hmac.compare_digest(text.encode(), given):
                return grant
        return None

    @classmethod
    def complete(
        cls,
        *,
        primary: str,
        secondary: str | None = None,
        primary_readonly: str | None = None,
        secondary_readonly: str | None = None,
    ) -> AccountKeys:
        """Return all four keys, and derive those that are not given from those that are."""
        full_secondary = secondary or derive_secondary_key(primary)
        return cls(
            primary=primary,
            secondary=full_secondary,
            primary_readonly=primary_readonly or derive_readonly_key(primary),
            secondary_readonly=secondary_readonly or derive_readonly_key(full_secondary),
        )

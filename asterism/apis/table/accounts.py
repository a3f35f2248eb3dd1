"""The accounts of the door, and which of them a request is for."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from asterism.access.checked_signatures import CheckedSignatures
from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY

# Public: printed in the vendor's documentation and the default of every client (`UseDevelopmentStorage=true`).
DEVELOPMENT_ACCOUNT: Final = "devstoreaccount1"
DEVELOPMENT_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

_PUBLIC_KEYS: Final = frozenset(map(base64.b64decode, (DEVELOPMENT_KEY, WELL_KNOWN_EMULATOR_KEY)))

SECONDARY_SUFFIX: Final = "-secondary"
_HOST_STYLE: Final = re.compile(r"([a-z0-9-]+)\.table\.", re.IGNORECASE)
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{1,61}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    keys: tuple[bytes, ...]
    checked: CheckedSignatures[None] = field(init=False, repr=False, compare=False, default_factory=CheckedSignatures)

    @property
    def is_public(self) -> bool:
        """Whether a key of it is printed in documentation."""
        return not _PUBLIC_KEYS.isdisjoint(self.keys)


Accounts = Mapping[str, Account]


def parse_account(text: str) -> Account:
    """From `NAME:KEY`, or `NAME:KEY1;KEY2` while keys are being exchanged; ValueError says what is wrong with it."""
    name, colon, key_texts = text.partition(":")
    if not colon or not _NAME.fullmatch(name):
        raise ValueError("write NAME:KEY, with a name of small letters, digits and hyphens and a key in base64")
    try:
        keys = tuple(base64.b64decode(key, validate=True) for key in key_texts.split(";"))
    except binascii.Error:
        raise ValueError(f"a key of the account {name!r} is not base64 text") from None
    if not all(keys):
        raise ValueError(f"a key of the account {name!r} is empty")
    return Account(name, keys)


@dataclass(slots=True)
class Address:
    """What a request's host and path say before anything is looked up."""

    account: str
    # The path behind the account, percent-decoded, without the slash in front.
    resource: str
    is_secondary: bool
    # The paths that the client may have signed, decoded, the likeliest first.
    signed_paths: tuple[str, ...]
    # What answers put in front of a table's name, behind scheme and host.
    base_path: str


def read_address(authority: str, path: str) -> Address:
    """Path style (`/account/…`) unless the host names the account (`account.table.…`).

    The client mangles a path-style secondary: it puts `account-secondary` before the path it has signed, and when it
    comes back to the primary, `account` before that.
    """
    host = _HOST_STYLE.match(authority)
    if host is not None:
        name = host[1]
        account = name.removesuffix(SECONDARY_SUFFIX)
        return Address(account, path.removeprefix("/"), account != name, (path,), "")
    first, _, rest = path.removeprefix("/").partition("/")
    if not first.endswith(SECONDARY_SUFFIX):
        detour = f"{first}{SECONDARY_SUFFIX}/{first}/"
        if rest.startswith(detour):
            rest = rest.removeprefix(detour)
            return Address(first, rest, False, (f"/{first}/{rest}", path), f"/{first}")
        return Address(first, rest, False, (path,), f"/{first}")
    account = first.removesuffix(SECONDARY_SUFFIX)
    second, _, behind = rest.partition("/")
    if second == account:
        return Address(account, behind, True, (f"/{rest}", path), f"/{account}")
    return Address(account, rest, True, (path, f"/{account}/{rest}"), f"/{account}")

"""Settings of an account, checked: its name, its kind, its consistency, its keys."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from asterism.errors import MalformedRequest

# A Cosmos account has databases and containers; a storage account has tables, queues and blobs; a messaging account is
# a namespace of hubs, queues and topics, whose keys are used as texts.
COSMOS: Final = "cosmos"
STORAGE: Final = "storage"
MESSAGING: Final = "messaging"
ACCOUNT_KINDS: Final = (COSMOS, STORAGE, MESSAGING)

# From the strongest to the weakest: a request may ask for less than the account gives, never for more.
CONSISTENCY_LEVELS: Final = ("Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual")
DEFAULT_CONSISTENCY: Final = "Session"

# As long as the service's own keys.
KEY_BYTES: Final = 64

# The label of a host name, as clients put it into addresses; the service allows the same.
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{1,42}[a-z0-9])")


def checked_account_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise MalformedRequest(
            reason=f"The account cannot be named '{name[:64]}'. Use 3 to 44 small letters, digits and hyphens, with a "
            "letter or digit first and last."
        )
    return name


def checked_account_kind(kind: str) -> str:
    if kind not in ACCOUNT_KINDS:
        raise MalformedRequest(reason=f"'{kind[:64]}' is not a kind of account. The kinds are {_list(ACCOUNT_KINDS)}.")
    return kind


def checked_consistency(level: str) -> str:
    """Return the service's spelling of a consistency level, given in any case."""
    for known in CONSISTENCY_LEVELS:
        if known.lower() == level.lower():
            return known
    raise MalformedRequest(
        reason=f"'{level[:64]}' is not a consistency level. The levels are {_list(CONSISTENCY_LEVELS)}."
    )


def checked_key(key: str) -> str:
    try:
        is_key = bool(base64.b64decode(key, validate=True))
    except (binascii.Error, ValueError):
        is_key = False
    if not is_key:
        raise MalformedRequest(reason="A key of an account must be base64 text. Leave it out to have one made.")
    return key


def key_text(random: bytes) -> str:
    return base64.b64encode(random).decode("ascii")


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)

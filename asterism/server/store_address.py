"""The address of a store as an operator writes it: checked, and shown without its secrets.

A password with a sign that has a meaning in an address splits the address in the wrong places, and a part of the
password would be taken for a host, a port or a database. Such an address is refused, and never shown.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from asterism.server.config import StartRefused

LMDB_PREFIX = "lmdb:"
# Not for operators, who write `--data :memory:`: each time it is opened it is another store.
MEMORY_ADDRESS = "memory:"
POSTGRES_SCHEMES = ("postgresql", "postgres")

_HOST = re.compile(r"(?:[^\s\[\]:@]*|\[[0-9A-Fa-f:.%]+\])(?::[0-9]{1,5})?")
# Addresses that may be repeated to the operator because nothing in them can be a secret.
_HARMLESS = re.compile(r"[\w./:,-]{1,200}")
_WRITE = "write postgresql://HOST/DATABASE or lmdb:DIR"
_MALFORMED = (
    "the address is not of the form postgresql://USER:PASSWORD@HOST:PORT/DATABASE?NAME=VALUE; "
    "in a user or a password, write : @ / ? # [ ] and % as %3A %40 %2F %3F %23 %5B %5D and %25"
)


def check_address(url: str, directory: Path) -> str:
    """Return the address, or raise StartRefused; a directory in it is relative to `directory`."""
    if url.startswith(LMDB_PREFIX):
        path = url.removeprefix(LMDB_PREFIX)
        if not path:
            raise StartRefused("a store in a directory is written lmdb:DIR")
        return f"{LMDB_PREFIX}{(directory / path).resolve()}"
    if url.partition(":")[0] not in POSTGRES_SCHEMES:
        shown = without_password(url)
        raise StartRefused(f"{shown!r} is not a store address; {_WRITE}" if shown else f"not a store address; {_WRITE}")
    if not _is_well_formed(url):
        raise StartRefused(_MALFORMED)
    return url


def without_password(url: str) -> str:
    """Return the address as it may be shown; empty if it is unclear which part of it is the password."""
    if url.startswith(LMDB_PREFIX) or _HARMLESS.fullmatch(url):
        return url
    if not _is_well_formed(url):
        return ""
    parts = urlsplit(url)
    account, at, hosts = parts.netloc.rpartition("@")
    user = account.partition(":")[0]
    return f"{parts.scheme}://{f'{user}@' if at and user else ''}{hosts}{parts.path}"


def _is_well_formed(url: str) -> bool:
    try:
        parts = urlsplit(url)
        parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        return False
    account, _, hosts = parts.netloc.rpartition("@")
    if parts.fragment or "@" in account or account.count(":") > 1 or "@" in parts.path:
        return False
    return "://" in url and all(_HOST.fullmatch(host) for host in hosts.split(","))

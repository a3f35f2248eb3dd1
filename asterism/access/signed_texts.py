"""The texts that shared access signatures sign, by the kind of signature and the version (sv) that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

Fields = Mapping[str, str]
# The value of a header or of a parameter of the request, by its name.
Lookup = Callable[[str], str | None]

# Versions from which on a signed text has more lines.
_WITH_RESOURCE: Final = "2018-11-09"
_WITH_AGENTS: Final = "2020-02-10"
_WITH_ENCRYPTION_SCOPE: Final = "2020-12-06"
_WITH_DELEGATED_USER: Final = "2025-07-05"
_WITH_REQUEST_PARTS: Final = "2026-04-06"

_RESPONSE_HEADERS: Final = ("rscc", "rscd", "rsce", "rscl", "rsct")
_KEY: Final = ("skoid", "sktid", "skt", "ske", "sks", "skv")


def account_text(fields: Fields, account: str) -> str:
    names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]
    if fields.get("sv", "") >= _WITH_ENCRYPTION_SCOPE:
        names.append("ses")
    return "".join(f"{value}\n" for value in (account, *_values(fields, names)))


def table_text(fields: Fields, account: str, table: str) -> str:
    resource = f"/table/{account}/{table.lower()}"
    names = ("si", "sip", "spr", "sv", "spk", "srk", "epk", "erk")
    return "\n".join([*_values(fields, ("sp", "st", "se")), resource, *_values(fields, names)])


def queue_text(fields: Fields, account: str, queue: str) -> str:
    """Return the text of a queue's signature, or of one that is made with a key for user delegation."""
    issuer = ["si"]
    if "skoid" in fields:
        issuer = [*_KEY, "skdutid", "sduoid"] if fields.get("sv", "") >= _WITH_DELEGATED_USER else [*_KEY]
    lines = [*_values(fields, ("sp", "st", "se")), f"/queue/{account}/{queue}"]
    return "\n".join([*lines, *_values(fields, [*issuer, "sip", "spr", "sv"])])


def blob_text(fields: Fields, account: str, path: str, *, moment: str, header_of: Lookup, parameter_of: Lookup) -> str:
    """Return the text of a signature for the container or blob at a path.

    `moment`: the snapshot or version that the request names, if the signature is for one. `header_of` and
    `parameter_of` find the parts of the request that a signature with a key for user delegation may bind.
    """
    version = fields.get("sv", "")
    is_delegated = "skoid" in fields
    lines = [*_values(fields, ("sp", "st", "se")), f"/blob/{account}/{path}"]
    lines += _values(fields, _delegation(version) if is_delegated else ["si"])
    lines += _values(fields, ("sip", "spr", "sv"))
    if version >= _WITH_RESOURCE:
        lines += [fields.get("sr", ""), moment]
    if version >= _WITH_ENCRYPTION_SCOPE:
        lines.append(fields.get("ses", ""))
    if is_delegated and version >= _WITH_REQUEST_PARTS:
        bound_headers = "".join(f"{name}:{header_of(name) or ''}\n" for name in _names(fields, "srh"))
        bound_parameters = "".join(f"\n{name}:{parameter_of(name) or ''}" for name in _names(fields, "srq"))
        lines += [bound_headers, bound_parameters]
    return "\n".join([*lines, *_values(fields, _RESPONSE_HEADERS)])


def _delegation(version: str) -> list[str]:
    names = [*_KEY]
    if version >= _WITH_AGENTS:
        names += ["saoid", "suoid", "scid"]
    if version >= _WITH_DELEGATED_USER:
        names += ["skdutid", "sduoid"]
    return names


def _names(fields: Fields, field: str) -> list[str]:
    return [name for name in fields.get(field, "").split(",") if name]


def _values(fields: Fields, names: list[str] | tuple[str, ...]) -> list[str]:
    return [fields.get(name, "") for name in names]

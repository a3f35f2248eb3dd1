"""Shared access signatures: a URL that carries a permission, signed with the account's key.

One of an account grants kinds of operations on kinds of resources. One of a service grants operations on a table, a
queue, a container or a blob, maybe by a policy stored with it; of a table maybe only on a range of its keys. One of a
user is like that of a service, and signed with a key that was issued for user delegation.

Fields of the URL: sp permissions, st start, se expiry, sip client addresses, spr protocols, sv version, sig signature;
of an account ss services, srt resource types, ses encryption scope; of a service si policy; of a table tn name, spk and
srk the first partition and row key, epk and erk the last; of a blob sr kind of resource, sdd depth of a directory, rsc…
headers of the answer; of a user sk… the key, sduoid the user who must send it.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Protocol

from asterism.access.sas_grants import Policy, SasGrant
from asterism.access.shared_key import shared_key_signature
from asterism.access.signed_texts import Lookup, account_text, blob_text, queue_text, table_text
from asterism.access.user_delegation import fields_of_signature, user_delegation_key
from asterism.errors import Forbidden, Unauthorized

# The service -> its letter in signatures.
SERVICE_LETTERS: Final = {"blob": "b", "queue": "q", "table": "t"}
# The field of a signature -> the header of the answer that it sets.
_ANSWER_HEADERS: Final = {
    "rscc": "cache-control",
    "rscd": "content-disposition",
    "rsce": "content-encoding",
    "rscl": "content-language",
    "rsct": "content-type",
}
_DEPTH_DIGITS_MAX: Final = 3
# Before it, a signature does not cover the kind of its resource, and must not be read as one for a directory.
_VERSION_WITH_DIRECTORIES: Final = "2020-02-10"
_LISTING: Final = "list"
_QUEUE: Final = "q"
_CONTAINER, _BLOB, _SNAPSHOT, _VERSION, _DIRECTORY = "c", "b", "bs", "bv", "d"


class RequestParts(Protocol):
    """The parts of a request that signatures for blobs can be about."""

    def get(self, key: str, /) -> str | None: ...


def is_shared_access(parameters: Mapping[str, str]) -> bool:
    return "sig" in parameters and ("sv" in parameters or "se" in parameters or "si" in parameters)


def check_shared_access(
    keys: Sequence[bytes],
    parameters: Mapping[str, str],
    *,
    service: str,
    account: str,
    path: str = "",
    headers: RequestParts | None = None,
    policies: Mapping[str, Policy],
    scheme: str,
    client_address: str,
    now_wall_seconds: float,
) -> SasGrant:
    """Return the grant of a signature; Unauthorized if it is not the account's, has expired, or is not valid yet.

    `service` is table, queue or blob. `path` is the resource of the request: the name of a queue, that of a container,
    or that of a container, a slash and the name of a blob. A signature for a table names it itself.
    """
    fields = dict(parameters)
    grant, text = _read(fields, service, account, path, headers.get if headers is not None else _nothing)
    given = fields["sig"].replace(" ", "+").encode("utf-8", "replace")
    signing_keys = _signing_keys(keys, fields, grant)
    if not any(hmac.compare_digest(shared_key_signature(key, text).encode(), given) for key in signing_keys):
        raise Unauthorized(reason="Signature did not match.")
    if grant.is_of_account and SERVICE_LETTERS[service] not in fields.get("ss", ""):
        raise Forbidden(reason=f"The signature is not for {service}s.")
    if not grant.is_of_account and not grant.is_delegated:
        _add_policy(fields, policies)
    if grant.is_delegated:
        _check_delegation(fields, SERVICE_LETTERS[service], now_wall_seconds)
    _check_circumstances(fields, scheme=scheme, client_address=client_address, now_wall_seconds=now_wall_seconds)
    return replace(grant, permissions=fields.get("sp", ""))


def _nothing(_: str) -> None:
    return None


def _read(fields: Mapping[str, str], service: str, account: str, path: str, header_of: Lookup) -> tuple[SasGrant, str]:
    """Return the grant of a signature, as far as its fields tell it, and the text that it signs."""
    if service == "table" and "tn" in fields:
        return _table_grant(fields, fields["tn"]), table_text(fields, account, fields["tn"])
    if service == "table" or "srt" in fields:
        grant = SasGrant("", fields.get("srt", ""), encryption_scope=fields.get("ses", ""))
        return grant, account_text(fields, account)
    is_delegated = "skoid" in fields
    delegated_object_id = fields.get("sduoid", "") if is_delegated else ""
    if service == "queue":
        queue_grant = SasGrant(
            "", None, resource=_QUEUE, is_delegated=is_delegated, delegated_object_id=delegated_object_id
        )
        return queue_grant, queue_text(fields, account, path)
    kind, signed_path, moment = _blob_resource(fields, path)
    blob_grant = SasGrant(
        "",
        None,
        resource=kind,
        directory=signed_path.partition("/")[2] if kind == _DIRECTORY else "",
        response_headers=_response_headers(fields),
        encryption_scope=fields.get("ses", ""),
        is_delegated=is_delegated,
        delegated_object_id=delegated_object_id,
    )
    # The names of parameters are in lower case here, and in the signature as its maker wrote them.
    text = blob_text(
        fields,
        account,
        signed_path,
        moment=moment,
        header_of=header_of,
        parameter_of=lambda name: fields.get(name.lower()),
    )
    return blob_grant, text


def _response_headers(fields: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    given = [(header, fields[name]) for name, header in _ANSWER_HEADERS.items() if fields.get(name)]
    if not all(value.isprintable() for _, value in given):
        raise Unauthorized(reason="A header of the answer has characters that headers cannot have.")
    return tuple(given)


def _blob_resource(fields: Mapping[str, str], path: str) -> tuple[str, str, str]:
    """Return the kind of the resource, its path, and the snapshot or version, as the signature must be about them."""
    kind = fields.get("sr", "")
    container, _, name = path.partition("/")
    if kind == _CONTAINER:
        return kind, container, ""
    if kind == _BLOB and name:
        return kind, path, ""
    if kind == _SNAPSHOT and name:
        return kind, path, fields.get("snapshot", "")
    if kind == _VERSION and name:
        return kind, path, fields.get("versionid", "")
    depth = fields.get("sdd", "") if fields.get("sv", "") >= _VERSION_WITH_DIRECTORIES else ""
    if kind == _DIRECTORY and depth.isascii() and depth.isdigit() and len(depth) <= _DEPTH_DIGITS_MAX:
        # A listing is within the directory if the names that it asks for are.
        prefix = fields.get("prefix", "") if fields.get("comp", "").lower() == _LISTING else ""
        segments = (name or prefix).split("/")
        directory = segments[: int(depth)]
        if len(directory) == int(depth) and (name or len(segments) > int(depth)):
            return kind, f"{container}/{'/'.join(directory)}", ""
    raise Unauthorized(reason="The signature is not for this kind of resource.")


def _signing_keys(keys: Sequence[bytes], fields: Mapping[str, str], grant: SasGrant) -> Iterator[bytes]:
    if not grant.is_delegated:
        yield from keys
        return
    delegation = fields_of_signature(fields)
    for key in keys:
        yield user_delegation_key(key, delegation)


def _check_delegation(fields: Mapping[str, str], letter: str, now_wall_seconds: float) -> None:
    key = fields_of_signature(fields)
    if key.service != letter:
        raise Forbidden(reason="The key for user delegation is for another service.")
    if "si" in fields:
        raise Unauthorized(reason="A signature for user delegation cannot name a policy.")
    if not moment_of(key.start) <= now_wall_seconds < moment_of(key.expiry):
        raise Unauthorized(reason="The key for user delegation has expired, or is not valid yet.")


def _add_policy(fields: dict[str, str], policies: Mapping[str, Policy]) -> None:
    identifier = fields.get("si")
    if identifier is None:
        return
    policy = policies.get(identifier)
    if policy is None:
        raise Unauthorized(reason="The signature names a policy that is not stored.")
    for name, value in (("st", policy.start), ("se", policy.expiry), ("sp", policy.permissions)):
        if value and fields.get(name):
            raise Unauthorized(reason=f"The field {name} is in the signature and in its policy.")
        if value:
            fields[name] = value


def _check_circumstances(
    fields: Mapping[str, str], *, scheme: str, client_address: str, now_wall_seconds: float
) -> None:
    expiry = fields.get("se")
    if not expiry:
        raise Unauthorized(reason="The signature has no expiry time (se).")
    if now_wall_seconds >= moment_of(expiry):
        raise Unauthorized(reason=f"The signature expired at {expiry}.")
    if fields.get("st") and now_wall_seconds < moment_of(fields["st"]):
        raise Unauthorized(reason=f"The signature is not valid before {fields['st']}.")
    if fields.get("spr") and scheme not in fields["spr"].split(","):
        raise Forbidden(reason=f"The signature is for {fields['spr']} only.")
    if fields.get("sip") and not address_within(client_address, fields["sip"]):
        raise Forbidden(reason="The signature is not for this address.")


def _table_grant(fields: Mapping[str, str], table: str) -> SasGrant:
    for row_key, partition_key in (("srk", "spk"), ("erk", "epk")):
        if row_key in fields and partition_key not in fields:
            # Ignoring it would grant more than intended.
            raise Unauthorized(reason=f"The signature has {row_key} without {partition_key}.")
    first = (fields["spk"], fields.get("srk")) if "spk" in fields else None
    last = (fields["epk"], fields.get("erk")) if "epk" in fields else None
    return SasGrant("", None, table.lower(), first, last)


def moment_of(text: str) -> float:
    """Return the seconds since 1970 of a date or a time in UTC; Unauthorized for any other text."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Unauthorized(reason="A time in the signature is malformed.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def address_within(address: str, allowed: str) -> bool:
    """Return True if the address is the allowed one, or in the allowed range `first-last`."""
    first, _, last = allowed.partition("-")
    try:
        asked = ipaddress.ip_address(address)
        lowest, highest = ipaddress.ip_address(first.strip()), ipaddress.ip_address((last or first).strip())
    except ValueError:
        return False
    if asked.version != lowest.version or lowest.version != highest.version:
        return False
    return int(lowest) <= int(asked) <= int(highest)

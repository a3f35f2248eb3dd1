"""The account and the resource that the address of a request names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote

from asterism.apis.storage.refusals import invalid_uri

ServiceName = Literal["table", "queue", "blob"]
SECONDARY_SUFFIX: Final = "-secondary"
_WEB: Final = "web"
_HOST_STYLES: Final = {
    "table": re.compile(r"([a-z0-9-]+)\.(table)\.", re.IGNORECASE),
    "queue": re.compile(r"([a-z0-9-]+)\.(queue)\.", re.IGNORECASE),
    # Static web sites are blobs behind another name.
    "blob": re.compile(r"([a-z0-9-]+)\.(blob|web)\.", re.IGNORECASE),
}


def decode_path(raw_path: str) -> str:
    """Return a path percent-decoded; refuse one that is not UTF-8 then, since different paths would become one."""
    try:
        return unquote(raw_path, errors="strict")
    except UnicodeDecodeError:
        raise invalid_uri() from None


@dataclass(slots=True)
class Address:
    """The host and path of a request, parsed before anything is looked up."""

    account: str
    # The path after the account, percent-decoded, without its leading slash.
    resource: str
    is_secondary: bool
    # The decoded paths that the client may have signed, the likeliest first.
    signed_paths: tuple[str, ...]
    # The part of answers between scheme and host and the name of a table, queue or container.
    base_path: str
    # The host is that of the account's static web site.
    is_website: bool = False


def read_address(service: ServiceName, authority: str, path: str) -> Address:
    """Parse an address: path style (`/account/…`) unless the host names the account (`account.blob.…`).

    Clients mangle a path-style secondary of tables: they put `account-secondary` before the path that they have signed,
    and `account` before that when they return to the primary.
    """
    host = _HOST_STYLES[service].match(authority)
    if host is not None:
        name = host[1]
        account = name.removesuffix(SECONDARY_SUFFIX)
        resource = path.removeprefix("/")
        return Address(account, resource, account != name, (path,), "", is_website=host[2].lower() == _WEB)
    first, _, rest = path.removeprefix("/").partition("/")
    if not first.endswith(SECONDARY_SUFFIX):
        detour = f"{first}{SECONDARY_SUFFIX}/{first}/"
        if rest.startswith(detour):
            rest = rest.removeprefix(detour)
            return Address(first, rest, False, (f"/{first}/{rest}", path), f"/{first}")
        return Address(first, rest, False, (path,), f"/{first}")
    account = first.removesuffix(SECONDARY_SUFFIX)
    second, _, behind = rest.partition("/")
    # A container may have the name of the account; only the client for tables mangles its paths.
    if second == account and service == "table":
        return Address(account, behind, True, (f"/{rest}", path), f"/{account}")
    return Address(account, rest, True, (path, f"/{account}/{rest}"), f"/{account}")

"""Requests that a web page must not make: while a key is public, every page that a browser shows knows it.

A page of another origin can send simple requests without asking first, with a signature in the address; and a page
whose own host name is made to resolve to this server ("DNS rebinding") is of the same origin, for the browser.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from asterism.apis.transports.http import Headers

ANY_HOST = "*"
# Names that a stranger cannot register: they reach this machine, or a neighbor in a network of containers.
_LOCAL_SUFFIXES = (".localhost", ".internal", ".svc", ".cluster.local")
_REMEMBERED_HOSTS_MAX = 256
_SHOWN_CHARACTERS_MAX = 100


class BrowserGuard:
    """Refuses web pages and no other client: others send no `Origin`, and use a name of the server's own."""

    def __init__(self, allowed_hosts: Iterable[str] = ()) -> None:
        """`allowed_hosts`: names besides the local ones; `*.` before a name means all below it, `*` any."""
        hosts = [host.lower() for host in allowed_hosts]
        self._any_host = ANY_HOST in hosts
        self._hosts = frozenset(hosts)
        self._suffixes = (*_LOCAL_SUFFIXES, *(host[1:] for host in hosts if host.startswith("*.")))
        self._good_authorities: set[str] = set()

    def refusal(self, headers: Headers, authority: str) -> str | None:
        """Return the reason not to answer, or None. A door whose rules allow other origins checks the two apart."""
        if (
            authority in self._good_authorities
            and headers.get("origin") is None
            and headers.get("sec-fetch-site") != "cross-site"
        ):
            # Nearly every request, without the calls below.
            return None
        return self.host_refusal(authority) or self.origin_refusal(headers, authority)

    def host_refusal(self, authority: str) -> str | None:
        if authority in self._good_authorities or self._any_host:
            return None
        host = _host_of(authority)
        if not self._is_served(host):
            shown = host[:_SHOWN_CHARACTERS_MAX]
            return (
                f"The host name '{shown}' is not served while the key of the account is the public development key. "
                f"Start the server with --allowed-host {shown}, or with a key of your own."
            )
        if len(self._good_authorities) < _REMEMBERED_HOSTS_MAX:
            self._good_authorities.add(authority)
        return None

    def origin_refusal(self, headers: Headers, authority: str) -> str | None:
        origin = headers.get("origin")
        if origin is None:
            if headers.get("sec-fetch-site") != "cross-site":
                return None
            who = "Another web site"
        elif is_own_origin(origin, authority):
            return None
        else:
            who = f"A page of the origin '{origin[:_SHOWN_CHARACTERS_MAX]}'"
        return (
            f"{who} may not use an account whose key is the public development key. Start the server with a key of "
            "your own, or, for storage, allow the origin in the CORS rules of the account."
        )

    def _is_served(self, host: str) -> bool:
        # A client without a Host header is no browser.
        if not host or host in self._hosts or "." not in host.removesuffix("."):
            return True
        return host.removesuffix(".").endswith(self._suffixes) or _is_address(host)


def is_own_origin(origin: str, authority: str) -> bool:
    """Return whether a page came from this server. The scheme may differ: a proxy in front may use https."""
    _, separator, host = origin.partition("://")
    return bool(separator) and host.lower() == authority.lower()


def _host_of(authority: str) -> str:
    """The name in `name:port` or `[address]:port`, in lower case."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    return authority.rpartition("@")[2].partition(":")[0].lower()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

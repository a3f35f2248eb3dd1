"""Requests that no web page elsewhere may make: the portal acts with the rights of its visitor.

The host name must be one of the server's, so that a name made to resolve to this machine ("DNS rebinding") is refused;
what changes something must come from a page of the portal itself.
"""

from __future__ import annotations

from asterism.apis.browser_guard import BrowserGuard, is_own_origin
from asterism.apis.transports.http import Headers

SAFE_METHODS = frozenset({"GET", "HEAD"})
_OWN_SITES = frozenset({"same-origin", "none"})


def page_refusal(guard: BrowserGuard, *, method: str, headers: Headers, authority: str) -> str | None:
    """Return the reason not to answer, or None."""
    if guard.host_refusal(authority) is not None:
        return (
            f"The host name '{authority[:100]}' is not served. Open the portal by the address that the server prints, "
            "or start the server with --allowed-host."
        )
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if method in SAFE_METHODS:
        # A link from elsewhere may lead here; the cookie does not come along, because it is of this site only.
        is_link = headers.get("sec-fetch-mode") in (None, "navigate")
        if site is None or site in _OWN_SITES or (is_link and headers.get("sec-fetch-dest") in (None, "document")):
            return None
        return "Another web site may not read the portal."
    if origin is not None and not is_own_origin(origin, authority):
        return f"A page of the origin '{origin[:100]}' may not use the portal."
    if origin is None and site is not None and site not in _OWN_SITES:
        return "Another web site may not use the portal."
    return None

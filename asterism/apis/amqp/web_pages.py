"""Web pages, which must not use a namespace whose key is printed in documentation."""

from __future__ import annotations

from typing import Final

from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.transports.http import Headers

# The vendor owns this name, so that no stranger can make it resolve to this machine; clients insist on it.
_VENDOR_SUFFIX: Final = ".servicebus.windows.net"


def page_refusal(guard: BrowserGuard, headers: Headers, authority: str) -> str | None:
    """Return why a request by HTTP is not answered, or None."""
    if authority.partition(":")[0].lower().endswith(_VENDOR_SUFFIX):
        return guard.origin_refusal(headers, authority)
    return guard.refusal(headers, authority)

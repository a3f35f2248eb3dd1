"""The client's tests use the product's own addresses; here their requests reach the server under test.

https://ACCOUNT.queue.core.windows.net goes to the port for queues, https://ACCOUNT.table.cosmos.azure.com to the one
for Cosmos DB for Table, and so on. The Host stays as it was: the server finds the account in it.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import requests
from azure.core.pipeline.transport import AioHttpTransport, AsyncHttpTransport, HttpTransport, RequestsTransport

# Of the wait between two tries, as much as a local server deserves.
RETRY_SECONDS_MAX = 0.05

_BASES = {
    ".table.core.windows.net": os.environ.get("ASTERISM_TESTS_TABLE", ""),
    ".table.cosmos.azure.com": os.environ.get("ASTERISM_TESTS_COSMOS", ""),
    ".queue.core.windows.net": os.environ.get("ASTERISM_TESTS_QUEUE", ""),
    ".blob.core.windows.net": os.environ.get("ASTERISM_TESTS_BLOB", ""),
}


def redirected(url: str) -> tuple[str, str] | None:
    """The address at the server under test and the Host to send; None for any other address."""
    parts = urlsplit(url)
    for suffix, base in _BASES.items():
        if base and (parts.hostname or "").endswith(suffix):
            return base + url.partition(parts.netloc)[2], parts.netloc
    return None


def install() -> None:
    send, send_async = RequestsTransport.send, AioHttpTransport.send

    def send_here(self: Any, request: Any, **options: Any) -> Any:
        original = request.url
        target = redirected(original)
        if target is None:
            return send(self, request, **options)
        request.url, request.headers["Host"] = target
        try:
            # The certificate is the server's own, made a moment ago.
            return send(self, request, **{"connection_verify": False, **options})
        finally:
            request.url = original

    async def send_here_async(self: Any, request: Any, **options: Any) -> Any:
        original = request.url
        target = redirected(original)
        if target is None:
            return await send_async(self, request, **options)
        request.url, request.headers["Host"] = target
        try:
            return await send_async(self, request, **{"connection_verify": False, **options})
        finally:
            request.url = original

    replace(RequestsTransport, "send", send_here)
    replace(AioHttpTransport, "send", send_here_async)
    for transport in (HttpTransport, AsyncHttpTransport, RequestsTransport, AioHttpTransport):
        if "sleep" in vars(transport):
            replace(transport, "sleep", shorter(vars(transport)["sleep"]))


def install_for_plain_requests() -> None:
    """Some tests use an address with a signature in it without the client."""
    request, request_async = requests.Session.request, aiohttp.ClientSession._request

    def request_here(self: Any, method: str, url: Any, **options: Any) -> Any:
        target = redirected(str(url))
        if target is None:
            return request(self, method, url, **options)
        headers = {**(options.pop("headers", None) or {}), "Host": target[1]}
        return request(self, method, target[0], headers=headers, **{**options, "verify": False})

    async def request_here_async(self: Any, method: str, url: Any, **options: Any) -> Any:
        target = redirected(str(url))
        if target is None:
            return await request_async(self, method, url, **options)
        headers = {**(options.pop("headers", None) or {}), "Host": target[1]}
        return await request_async(self, method, target[0], headers=headers, **{**options, "ssl": False})

    replace(requests.Session, "request", request_here)
    replace(aiohttp.ClientSession, "_request", request_here_async)


def replace(owner: Any, name: str, value: Any) -> None:
    setattr(owner, name, value)


def shorter(sleep: Any) -> Any:
    return lambda self, seconds: sleep(self, min(seconds, RETRY_SECONDS_MAX))

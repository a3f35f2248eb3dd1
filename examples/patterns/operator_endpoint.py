"""Requests to the operator's endpoint of the server, which the clients of the cloud service do not know."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import time
import urllib.request
from email.utils import formatdate
from typing import Any
from urllib.parse import quote, urlencode

from azure.cosmos import ContainerProxy
from connection import ENDPOINT, KEY

WAIT_SECONDS_MAX = 60.0
POLL_SECONDS = 0.05


def partitions_of(container: ContainerProxy) -> list[dict[str, Any]]:
    """Describe the physical partitions: `asterism partitions DATABASE CONTAINER --format json` prints the same."""
    return list(_ask("GET", "partitions", {**_names(container), "details": "false"})["partitions"])


def split(container: ContainerProxy, partition_id: str) -> None:
    """Split a partition, as `asterism split` does, and wait until its halves serve."""
    _ask("POST", "split", body={**_names(container), "range": partition_id})
    give_up_at = time.monotonic() + WAIT_SECONDS_MAX
    while partition_id in [partition["id"] for partition in partitions_of(container)]:
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"the split of partition {partition_id} takes too long; see `asterism jobs`")
        time.sleep(POLL_SECONDS)


def _names(container: ContainerProxy) -> dict[str, str]:
    _, database, _, name = container.container_link.split("/")
    return {"database": database, "container": name}


def _ask(
    verb: str, name: str, parameters: dict[str, str] | None = None, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    link = f"_asterism/{name}"
    request = urllib.request.Request(
        f"{ENDPOINT.rstrip('/')}/{link}?{urlencode(parameters or {})}",
        data=None if body is None else json.dumps(body).encode(),
        method=verb,
        headers=_signature(verb, link),
    )
    # The server makes its own certificate if it runs with --https.
    context = ssl._create_unverified_context() if ENDPOINT.startswith("https:") else None
    with urllib.request.urlopen(request, context=context) as reply:
        return dict(json.load(reply))


def _signature(verb: str, link: str) -> dict[str, str]:
    """Sign a request as the clients sign theirs, with `asterism` in the place of a type of resource."""
    date = formatdate(usegmt=True)
    text = f"{verb.lower()}\nasterism\n{link}\n{date.lower()}\n\n"
    signed = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
    return {"authorization": quote(f"type=master&ver=1.0&sig={signed}", safe=""), "x-ms-date": date}

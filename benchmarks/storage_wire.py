"""Requests for queues and blobs as bytes, signed with the development account's key."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator, Mapping
from email.utils import formatdate
from urllib.parse import quote

from benchmarks.table_wire import ACCOUNT, KEY

# Old enough for every server.
VERSION = "2021-12-02"


def request(
    verb: str,
    path: str,
    *,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> bytes:
    return head(verb, path, query=query, headers=headers, body_length=len(body)) + body


def head(
    verb: str,
    path: str,
    *,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    body_length: int = 0,
) -> bytes:
    """Everything before the body. The signature covers the path, the query and the length, not the body.

    Names of `headers` are in lower case and begin with x-ms-.
    """
    resource = f"/{ACCOUNT}{path}"
    signed = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": VERSION, **(headers or {})}
    parameters = query or {}
    # Of the standard headers only the length is sent.
    length = str(body_length) if body_length else ""
    lines = [verb, "", "", length, *[""] * 8]
    lines += [f"{name}:{value}" for name, value in sorted(signed.items())]
    lines.append(f"/{ACCOUNT}{resource}")
    lines += [f"{name}:{value}" for name, value in sorted(parameters.items())]
    digest = base64.b64encode(hmac.digest(KEY, "\n".join(lines).encode(), hashlib.sha256)).decode()
    target = resource
    if parameters:
        target += "?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
    sent = [f"{verb} {target} HTTP/1.1", "host: 127.0.0.1", f"authorization: SharedKey {ACCOUNT}:{digest}"]
    sent += [f"{name}: {value}" for name, value in signed.items()]
    if verb in ("PUT", "POST"):
        sent.append(f"content-length: {body_length}")
    return ("\r\n".join(sent) + "\r\n\r\n").encode()


# --- queues -----------------------------------------------------------------------------------------------------------


def create_queue(queue: str) -> bytes:
    return request("PUT", f"/{queue}")


def put_message(queue: str, text: str) -> bytes:
    body = f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()
    return request("POST", f"/{queue}/messages", body=body)


def get_message(queue: str) -> bytes:
    return request("GET", f"/{queue}/messages", query={"numofmessages": "1", "visibilitytimeout": "300"})


def delete_message(queue: str, message_id: str, receipt: str) -> bytes:
    return request("DELETE", f"/{queue}/messages/{message_id}", query={"popreceipt": receipt})


def clear_messages(queue: str) -> bytes:
    return request("DELETE", f"/{queue}/messages")


# --- blobs ------------------------------------------------------------------------------------------------------------


def create_container(container: str) -> bytes:
    return request("PUT", f"/{container}", query={"restype": "container"})


def put_blob(container: str, name: str, content: bytes) -> bytes:
    return request("PUT", f"/{container}/{name}", headers={"x-ms-blob-type": "BlockBlob"}, body=content)


def put_blobs(
    container: str, prefix: str, content: bytes, *, first: int = 0, last: int | None = None
) -> Iterator[bytes]:
    """Blobs with names of seven digits after the prefix."""
    number = first
    while last is None or number < last:
        yield put_blob(container, f"{prefix}{number:07d}", content)
        number += 1


def get_blob(container: str, name: str) -> bytes:
    return request("GET", f"/{container}/{name}")


def block_id(number: int) -> str:
    return base64.b64encode(f"{number:06d}".encode()).decode()


def block_head(container: str, name: str, number: int, length: int) -> bytes:
    query = {"comp": "block", "blockid": block_id(number)}
    return head("PUT", f"/{container}/{name}", query=query, body_length=length)


def commit_blocks(container: str, name: str, count: int) -> bytes:
    listed = "".join(f"<Latest>{block_id(number)}</Latest>" for number in range(count))
    body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'.encode()
    return request("PUT", f"/{container}/{name}", query={"comp": "blocklist"}, body=body)


def list_blobs(container: str, prefix: str, limit: int) -> bytes:
    query = {"restype": "container", "comp": "list", "prefix": prefix, "maxresults": str(limit)}
    return request("GET", f"/{container}", query=query)

"""Requests of the table protocol as bytes, signed with the development account's key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from email.utils import formatdate
from urllib.parse import quote

ACCOUNT = "devstoreaccount1"
# The published key of the development account.
KEY = base64.b64decode("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")

JSON = "application/json"
BATCH = "multipart/mixed; boundary=batch_b"
_BATCH_HEAD = "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n"
_BATCH_END = "--changeset_c--\r\n--batch_b--\r\n"


def request(verb: str, path: str, *, query: str = "", content_type: str = "", body: bytes = b"") -> bytes:
    return _head(verb, path, query, content_type) % len(body) + body


def _head(verb: str, path: str, query: str = "", content_type: str = "") -> bytes:
    """Everything before the body, with a place for its length: the signature does not depend on the body."""
    date = formatdate(usegmt=True)
    resource = f"/{ACCOUNT}{path}"
    text = f"{verb}\n\n{content_type}\n{date}\n/{ACCOUNT}{resource}"
    signed = base64.b64encode(hmac.new(KEY, text.encode(), hashlib.sha256).digest()).decode()
    lines = [
        f"{verb} {resource}{query} HTTP/1.1",
        "host: 127.0.0.1",
        f"authorization: SharedKey {ACCOUNT}:{signed}",
        f"x-ms-date: {date}",
        "x-ms-version: 2019-02-02",
        "dataserviceversion: 3.0",
        "accept: application/json;odata=minimalmetadata",
        "prefer: return-no-content",
    ]
    if content_type:
        lines.append(f"content-type: {content_type}")
    return ("\r\n".join([*lines, "content-length: "]).replace("%", "%%") + "%d\r\n\r\n").encode()


def create_table(name: str) -> bytes:
    return request("POST", "/Tables", content_type=JSON, body=json.dumps({"TableName": name}).encode())


def entity(partition_key: str, row_key: str, text: str) -> bytes:
    """Ten properties; with a text of 700 characters about 1 KB."""
    properties: dict[str, object] = {"PartitionKey": partition_key, "RowKey": row_key, "Text": text}
    properties |= {f"Number{place}": place * 1001 for place in range(7)}
    properties |= {"Is": True, "Ratio": 0.25}
    return json.dumps(properties, separators=(",", ":")).encode()


def get(table: str, partition_key: str, row_key: str) -> bytes:
    return request("GET", f"/{table}(PartitionKey='{partition_key}',RowKey='{row_key}')")


def inserts(table: str, *, prefix: str, text: str) -> Iterator[bytes]:
    """Endless inserts, 100 to a partition."""
    head = _head("POST", f"/{table}", content_type=JSON)
    number = 0
    while True:
        body = entity(f"{prefix}{number // 100:06d}", f"{number % 100:03d}", text)
        yield head % len(body) + body
        number += 1


def batches(table: str, *, prefix: str, text: str, first: int = 0, last: int | None = None) -> Iterator[bytes]:
    """Upserts of whole partitions of 100 entities, one batch each."""
    head = _head("POST", "/$batch", content_type=BATCH)
    number = first
    while last is None or number < last:
        body = batch_body(table, f"{prefix}{number:06d}", text)
        yield head % len(body) + body
        number += 1


def batch_body(table: str, partition_key: str, text: str) -> bytes:
    parts = [_BATCH_HEAD]
    for row in range(100):
        row_key = f"{row:03d}"
        content = entity(partition_key, row_key, text).decode()
        url = f"http://127.0.0.1/{ACCOUNT}/{table}(PartitionKey='{partition_key}',RowKey='{row_key}')"
        parts.append(
            "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
            f"Content-ID: {row}\r\n\r\nPUT {url} HTTP/1.1\r\nContent-Type: application/json\r\n"
            f"Accept: application/json\r\nContent-Length: {len(content)}\r\n\r\n{content}\r\n"
        )
    parts.append(_BATCH_END)
    return "".join(parts).encode()


def range_query(table: str, partition_key: str) -> bytes:
    """One partition of 100 entities, by a range of rows."""
    condition = f"PartitionKey eq '{partition_key}' and RowKey ge '000' and RowKey lt '100'"
    return request("GET", f"/{table}()", query=f"?$filter={quote(condition)}")

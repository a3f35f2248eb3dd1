"""The containers that the scenarios need, created through the NoSQL door.

`/name` is a property that every vertex of the toy graphs has, so they need no other to be partitioned by. Vertices of
`empty` are what the scenarios make of them: it has no partition key (a fixed container, spec C12). `empty_by_pk` is its
partitioned twin, for the run `partitioned`. An RU/s of 18,000 makes three physical partitions (spec C11).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from email.utils import formatdate
from typing import Any

DATABASE = "tinkerpop"
GRAPHS = {"modern": "/name", "crew": "/name", "sink": "/name", "grateful": "/name", "empty": "", "empty_by_pk": "/pk"}
PARTITIONED_RU_PER_SECOND = 18_000


def create(url: str, key: str, *, kind: str, link: str, body: dict[str, Any], throughput: int = 0) -> int:
    date = formatdate(usegmt=True)
    text = f"post\n{kind}\n{link}\n{date.lower()}\n\n"
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    token = f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}"
    headers = {"authorization": urllib.parse.quote(token, safe=""), "x-ms-date": date, "x-ms-version": "2018-12-31"}
    if throughput:
        headers["x-ms-offer-throughput"] = str(throughput)
    path = f"{link}/{kind}" if link else kind
    request = urllib.request.Request(f"{url}/{path}", json.dumps(body).encode(), headers, method="POST")
    # A self-signed certificate is what a server on this machine has.
    context = ssl._create_unverified_context() if url.startswith("https") else None
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        if refusal.code != 409:
            raise SystemExit(f"{path}: {refusal.code} {refusal.read().decode()[:300]}") from refusal
        return refusal.code


def create_graphs(url: str, key: str) -> None:
    create(url, key, kind="dbs", link="", body={"id": DATABASE})
    for name, path in GRAPHS.items():
        definition = {"partitionKey": {"paths": [path], "kind": "Hash", "version": 2}} if path else {}
        throughput = PARTITIONED_RU_PER_SECOND if path else 0
        create(url, key, kind="colls", link=f"dbs/{DATABASE}", body={"id": name, **definition}, throughput=throughput)

"""Requests of a test suite to the operator's door of its server."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from asterism.access.master_key import signature
from asterism.testing.errors import RequestRefused

TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.01


class AdminRequests:
    def __init__(self, endpoint: str, key: str) -> None:
        self._url = urlsplit(endpoint)
        self._key_bytes = base64.b64decode(key)

    def get(self, name: str, **parameters: str) -> Any:
        return self._send("GET", name, f"?{urlencode(parameters)}" if parameters else "", None)

    def post(self, name: str, body: Mapping[str, object]) -> Any:
        return self._send("POST", name, "", json.dumps(body).encode())

    def wait_for_job(self, job: Mapping[str, Any], *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """Return when a split or a merge is over."""
        give_up_at = time.monotonic() + timeout_seconds
        while True:
            under_way = [other for other in self.get("jobs")["jobs"] if other["id"] == job["id"]]
            if not under_way:
                return
            if time.monotonic() > give_up_at:
                trouble = under_way[0].get("trouble") or f"it is at the step '{under_way[0]['step']}'"
                raise RequestRefused(f"the {job['kind']} is not over after {timeout_seconds:g} s: {trouble}")
            time.sleep(_POLL_SECONDS)

    def _send(self, verb: str, name: str, query: str, content: bytes | None) -> Any:
        path = f"_asterism/{name}"
        date = formatdate(usegmt=True)
        signed = signature(self._key_bytes, verb=verb, resource_type="asterism", link=path, date=date)
        headers = {"x-ms-date": date, "authorization": quote(f"type=master&ver=1.0&sig={signed}", safe="")}
        connection = self._connect()
        try:
            connection.request(verb, f"/{path}{query}", content, headers)
            response = connection.getresponse()
            answer = json.loads(response.read() or b"null")
        finally:
            connection.close()
        if response.status >= 400:
            raise RequestRefused(str(answer.get("message", f"the server answered {response.status}")))
        return answer

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        # The certificate of a throw-away server is its own.
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=unchecked)

"""A server as a process of its own, and a plain client for it."""

from __future__ import annotations

import base64
import http.client
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote

from azure.cosmos import CosmosClient

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.access.master_key import signature
from tests.support.stores import store_options

PROJECT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "asterism"]
WAIT_SECONDS_MAX = 60.0
# Options for every server that the tests start, for example ASTERISM_TEST_ARGS="--workers 2".
MORE_OPTIONS = shlex.split(os.environ.get("ASTERISM_TEST_ARGS", ""))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment() -> dict[str, str]:
    """Return this process's environment without the server's settings, apart from its protocols: tests run in parallel,
    and the tables' well-known ports exist only once."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASTERISM_")}
    return {**kept, "PYTHONPATH": str(PROJECT), "ASTERISM_APIS": "nosql"}


@dataclass(frozen=True)
class RunningServer:
    process: subprocess.Popen[str]
    port: int
    scheme: str
    greeting: str

    @property
    def endpoint(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/"

    def client(self, *, key: str = WELL_KNOWN_EMULATOR_KEY) -> CosmosClient:
        return CosmosClient(self.endpoint, key)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> tuple[int, str]:
        """Stop the server; return its exit status and its standard error."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=WAIT_SECONDS_MAX)
        return self.process.returncode, errors


def read_greeting(process: subprocess.Popen[str]) -> str:
    """Read the greeting that the server prints when it is ready; its last line explains how to stop it."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("  Stop "):
            return "".join(lines)
    raise AssertionError(f"the server ended: {process.communicate()[1]}")


@contextmanager
def running_server(
    data: Path,
    *options: str,
    port: int | None = None,
    more_environment: dict[str, str] | None = None,
    before_start: Callable[[], None] | None = None,
    alone: bool = False,
    embedded: bool = False,
) -> Iterator[RunningServer]:
    """Run a server. `alone`: one process, and `embedded`: the store in the data directory, whatever the options of the
    test run."""
    chosen = port or free_port()
    store = () if embedded or {"--store", "--fleet"} & set(options) else store_options(data)
    more = () if alone else MORE_OPTIONS
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--data", str(data), "--port", str(chosen), *options, *store, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment(), **(more_environment or {})},
        preexec_fn=before_start,
    )
    try:
        scheme = "https" if "--https" in options else "http"
        yield RunningServer(process, chosen, scheme, read_greeting(process))
    finally:
        process.kill()
        process.communicate()


def refused_start(data: Path, *options: str) -> str:
    """Return the error output of a server that cannot start."""
    finished = subprocess.run(
        [*PROGRAM, "serve", "--data", str(data), "--port", str(free_port()), *options],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    assert finished.returncode == 1
    assert "Traceback" not in finished.stderr
    return finished.stderr


class PlainClient:
    """Client that signs requests on one connection and never retries: the test sees every answer of the server."""

    def __init__(self, port: int, *, key: str = WELL_KNOWN_EMULATOR_KEY) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS_MAX)
        self._key_bytes = base64.b64decode(key)

    def send(
        self,
        verb: str,
        path: str,
        body: object = None,
        *,
        resource_type: str,
        link: str,
        headers: dict[str, str] | None = None,
        date_seconds: float | None = None,
    ) -> tuple[int, dict[str, str], object]:
        date = formatdate(time.time() if date_seconds is None else date_seconds, usegmt=True)
        signed = signature(self._key_bytes, verb=verb, resource_type=resource_type, link=link, date=date)
        sent = {
            "x-ms-date": date,
            "x-ms-version": "2020-07-15",
            "authorization": quote(f"type=master&ver=1.0&sig={signed}", safe=""),
            **(headers or {}),
        }
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        self._connection.request(verb, quote(path), content, sent)
        response = self._connection.getresponse()
        content_read = response.read()
        lowered = {name.lower(): value for name, value in response.getheaders()}
        return response.status, lowered, json.loads(content_read) if content_read else None

    def write_item(self, container: str, item: dict[str, object], *, key: str) -> tuple[int, dict[str, str], object]:
        """Upsert an item into `dbs/d/colls/<container>`."""
        link = f"dbs/d/colls/{container}"
        headers = {"x-ms-documentdb-partitionkey": json.dumps([key]), "x-ms-documentdb-is-upsert": "True"}
        return self.send("POST", f"/{link}/docs/", item, resource_type="docs", link=link, headers=headers)

    def close(self) -> None:
        self._connection.close()

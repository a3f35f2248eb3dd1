"""A server as a process of its own, and a plain client for it."""

from __future__ import annotations

import base64
import http.client
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple, TextIO
from urllib.parse import quote

from azure.cosmos import CosmosClient

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.access.master_key import signature
from asterism.server.doors import DOORS
from tests.support.ports import free_port, free_ports
from tests.support.stores import store_options

PROJECT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "asterism"]
# A busy machine has taken half a minute to start a server with all doors.
WAIT_SECONDS_MAX = 120.0
# Options for every server that the tests start, for example ASTERISM_TEST_ARGS="--workers 2".
MORE_OPTIONS = shlex.split(os.environ.get("ASTERISM_TEST_ARGS", ""))
ALL_DOORS = tuple(door.name for door in DOORS)


def environment() -> dict[str, str]:
    """Return this process's environment without the server's settings, apart from its protocols: tests run in parallel,
    and the well-known ports of the other doors exist only once."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASTERISM_")}
    return {**kept, "PYTHONPATH": str(PROJECT), "ASTERISM_APIS": "nosql"}


@dataclass(frozen=True)
class RunningServer:
    process: subprocess.Popen[str]
    # By the name of the port in its door's spec.
    ports: Mapping[str, int]
    scheme: str
    greeting: str
    # Its standard error: a file, because a pipe that no test reads would stop a server that logs much.
    log: TextIO

    @property
    def port(self) -> int:
        return self.ports["nosql"]

    @property
    def endpoint(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/"

    def client(self, *, key: str = WELL_KNOWN_EMULATOR_KEY) -> CosmosClient:
        return CosmosClient(self.endpoint, key)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> tuple[int, str]:
        """Stop the server; return its exit status and its standard error."""
        self.process.terminate()
        self.process.wait(WAIT_SECONDS_MAX)
        return self.process.returncode, _text_of(self.log)


def _text_of(log: TextIO) -> str:
    log.seek(0)
    return log.read()


class RunningProgram(NamedTuple):
    process: subprocess.Popen[str]
    greeting: str
    log: TextIO


@contextmanager
def running_program(
    command: Sequence[str], variables: Mapping[str, str], before_start: Callable[[], None] | None = None
) -> Iterator[RunningProgram]:
    """Run a program that greets like the server, from its greeting on; kill it at the end."""
    with TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=variables, preexec_fn=before_start
        )
        try:
            yield RunningProgram(process, _read_greeting(process, log), log)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _read_greeting(process: subprocess.Popen[str], log: TextIO) -> str:
    """Read the greeting that the server prints when it is ready; its last line explains how to stop it."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("  Stop "):
            return "".join(lines)
    process.wait()
    raise AssertionError(f"the server ended: {_text_of(log)}")


@contextmanager
def running_server(
    data: Path,
    *options: str,
    doors: Collection[str] = ("nosql",),
    port: int | None = None,
    more_environment: dict[str, str] | None = None,
    before_start: Callable[[], None] | None = None,
    alone: bool = False,
    embedded: bool = False,
) -> Iterator[RunningServer]:
    """Run a server with these doors, on free ports; `port` is that of the NoSQL door. `alone`: one process, and
    `embedded`: the store in the data directory, whatever the options of the test run."""
    served = [spec for door in DOORS if door.name in doors for spec in door.ports]
    ports = {spec.name: chosen for spec, chosen in zip(served, free_ports(len(served)), strict=True)}
    if port is not None:
        ports["nosql"] = port
    where = [text for spec in served for text in (spec.flag, str(ports[spec.name]))]
    store = () if embedded or {"--store", "--fleet"} & set(options) else store_options(data)
    more = () if alone else MORE_OPTIONS
    command = [*PROGRAM, "serve", "--data", str(data), "--apis", ",".join(doors), *where, *options, *store, *more]
    with running_program(command, {**environment(), **(more_environment or {})}, before_start) as program:
        scheme = "https" if "--https" in options else "http"
        yield RunningServer(program.process, ports, scheme, program.greeting, program.log)


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

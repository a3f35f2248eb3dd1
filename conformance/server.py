"""One Asterism process, by default over https, with an empty data directory, for as long as the tests run."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# The client's tests call themselves an emulator run only for exactly https://localhost:8081/.
EMULATOR_PORT = 8081
READY_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 15.0

START = [sys.executable, "-m", "asterism", "serve"]


class ServerNotReady(Exception):
    """The server ended, or did not answer in time; the message has the end of its log."""


def choose_port() -> int:
    """8081 if it is free, else any free port."""
    for port in (EMULATOR_PORT, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise ServerNotReady("no free port")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_server(
    *, port: int, key: str, log: Path, more_arguments: Sequence[str] = (), is_encrypted: bool = True
) -> Iterator[str]:
    """Start the server, wait until it is ready, yield its endpoint, and always stop it."""
    with tempfile.TemporaryDirectory(prefix="asterism-conformance-") as data, log.open("wb") as output:
        encryption = ["--https"] if is_encrypted else []
        arguments = ["--data", data, "--port", str(port), "--key", key, *encryption, "--apis", "nosql", *more_arguments]
        process = subprocess.Popen([*START, *arguments], stdout=output, stderr=subprocess.STDOUT)
        try:
            wait_until_ready(process, port=port, log=log, is_encrypted=is_encrypted)
            yield f"{'https' if is_encrypted else 'http'}://localhost:{port}/"
        finally:
            stop(process)


def wait_until_ready(process: subprocess.Popen[bytes], *, port: int, log: Path, is_encrypted: bool = True) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        if is_healthy(port, is_encrypted=is_encrypted):
            return
        time.sleep(0.05)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise ServerNotReady(f"the server is not ready on port {port} (exit status {process.poll()}):\n{tail}")


def is_healthy(port: int, *, is_encrypted: bool = True) -> bool:
    connection: http.client.HTTPConnection
    if is_encrypted:
        # The certificate is the server's own, made a moment ago.
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=2, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/_asterism/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

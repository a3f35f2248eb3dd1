"""Servers under measurement: one process each, on a core of its own, with a port and a folder of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.subject import PROJECT, Subject
from benchmarks.wire import ACCOUNT_KEY

# On the disk of the project: a folder in memory would make durable writes look cheap.
BUILD = PROJECT / "build" / "bench"

READY_SECONDS_MAX = 20.0
STOP_SECONDS_MAX = 15.0
HEALTH_REQUEST = b"GET /_asterism/health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


def python_module(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


class NotMeasured(Exception):
    """A case that cannot be measured here, and why."""


def server_core() -> int:
    return min(_CORES)


def output_on_server_core(
    command: Sequence[str],
    *,
    what: str,
    seconds_max: float,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
    on_all_cores: bool = False,
) -> bytes:
    """Return the output of a command that does its work without a server, in a process where a server would be."""
    cores = _CORES if on_all_cores else {server_core()}
    try:
        done = subprocess.run(
            command,
            check=True,
            capture_output=True,
            timeout=seconds_max,
            env=environment,
            cwd=folder,
            preexec_fn=_pin_to(cores),
        )
    except subprocess.CalledProcessError as problem:
        lines = problem.stderr.decode(errors="replace").splitlines() or [""]
        raise NotMeasured(f"{what}: {lines[-1]}") from problem
    except subprocess.TimeoutExpired as problem:
        raise NotMeasured(f"{what} took too long") from problem
    return done.stdout


def environment_with_benchmarks(subject: Subject, folder: Path) -> dict[str, str]:
    """Return an environment for a process that imports `benchmarks` from here and the package from the checkout.

    The `folder` must be fresh: a folder below it holds our modules and nothing else.
    """
    modules = folder / "modules"
    modules.mkdir()
    (modules / "benchmarks").symlink_to(PROJECT / "benchmarks", target_is_directory=True)
    environment = subject.environment
    return environment | {"PYTHONPATH": f"{modules}:{environment['PYTHONPATH']}"}


def load_core() -> int:
    return max(_CORES)


_CORES = os.sched_getaffinity(0)


@contextmanager
def on_all_cores() -> Iterator[None]:
    """Let this process, and those that it starts meanwhile, use all cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _CORES)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def fresh_folder() -> Iterator[Path]:
    BUILD.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=BUILD))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class RunningServer:
    port: int
    process: subprocess.Popen[bytes]
    # From the start of the process to its first answer.
    start_seconds: float

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        # The name in brackets may hold spaces; user and system time are the 12th and 13th fields after it.
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _is_http(received: bytes) -> bool:
    return received.startswith(b"HTTP/1.1")


@contextmanager
def running(
    command: Sequence[str],
    *,
    port: int,
    log_name: str,
    probe: bytes = HEALTH_REQUEST,
    folder: Path = PROJECT,
    environment: dict[str, str] | None = None,
    on_all_cores: bool = False,
    is_answer: Callable[[bytes], bool] = _is_http,
) -> Iterator[RunningServer]:
    """Start a server on its core, wait for its first answer to `probe`, and always stop it."""
    BUILD.mkdir(parents=True, exist_ok=True)
    log = BUILD / f"{log_name}.log"
    with log.open("wb") as output:
        started = time.perf_counter()
        # This process is on the load's core, where its children begin.
        pin = _pin_to(_CORES if on_all_cores else {server_core()})
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env=environment, preexec_fn=pin
        )
        try:
            wait_for_answer(process, port=port, probe=probe, log=log, is_answer=is_answer)
            yield RunningServer(port, process, time.perf_counter() - started)
        finally:
            stop(process)


def _pin_to(cores: set[int]) -> Callable[[], None]:
    return lambda: os.sched_setaffinity(0, cores)


@contextmanager
def running_asterism(
    subject: Subject,
    data: Path,
    *options: str,
    apis: str = "nosql",
    throttle: bool = False,
    on_all_cores: bool = False,
) -> Iterator[RunningServer]:
    """`on_all_cores`: for what more than one process of the server does."""
    port = free_port()
    arguments = ["--data", str(data), "--port", str(port), "--key", ACCOUNT_KEY, *options]
    arguments += subject.known(("--apis", apis))
    arguments += [] if throttle else subject.known(("--no-throttle", None))
    with running(
        [*subject.command, *arguments],
        port=port,
        log_name="asterism",
        environment=subject.environment,
        on_all_cores=on_all_cores,
    ) as server:
        yield server


def wait_for_answer(
    process: subprocess.Popen[bytes],
    *,
    port: int,
    probe: bytes,
    log: Path,
    is_answer: Callable[[bytes], bool] = _is_http,
) -> None:
    deadline = time.perf_counter() + READY_SECONDS_MAX
    while time.perf_counter() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(probe)
                if is_answer(connection.recv(64)):
                    return
        except OSError:
            time.sleep(0.002)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
    raise NotMeasured(f"the server did not answer (exit status {process.poll()}): {tail}")


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

"""The process of a host contains a script that has broken out of the engine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import cast

import pytest

from asterism.scripts.limits import DEFAULT_SCRIPT_LIMITS

# A real host, in which Python code of the test replaces the first message.
BROKEN_OUT = """
import ctypes, json, mmap, os, signal, socket, subprocess, sys, threading
from asterism.scripts import host

libc = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)

def main_of(host_itself):
    reads_from, writes_to = host_itself._reads_from, host_itself._writes_to
    attempts = {
        "open a file": lambda: open(FILE).read(),
        "make a file": lambda: open(FILE + ".new", "w"),
        "list a directory": lambda: os.listdir("/"),
        "look at a file": lambda: os.stat(FILE),
        "remove a file": lambda: os.unlink(FILE),
        "open a socket": lambda: socket.socket(),
        "open a local socket": lambda: socket.socketpair(),
        "start a program": lambda: subprocess.run(["/bin/true"]),
        "become a program": lambda: os.execv("/bin/true", ["true"]),
        "fork": lambda: os.fork(),
        "start a thread": lambda: threading.Thread(target=print).start(),
        "signal the server": lambda: os.kill(os.getppid(), 0),
        "look into the server": lambda: call("ptrace", 16, os.getppid(), 0, 0),
        "make a pipe": lambda: os.pipe(),
        "copy a descriptor": lambda: os.dup(writes_to),
        "read from elsewhere": lambda: os.read(0, 1),
        "write to standard output": lambda: os.write(1, b"x"),
        "map memory that can be executed": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC),
        "raise a limit": lambda: host.resource.setrlimit(host.resource.RLIMIT_NOFILE, (99, 99)),
        "become root": lambda: os.setuid(0),
        "use memory": lambda: bytes(8_000_000) and mmap.mmap(-1, 4096) and None,
        "tell the time": lambda: host.time.process_time() and host.time.time() and None,
        "set an alarm": lambda: signal.setitimer(signal.ITIMER_REAL, 60) and None,
    }
    outcomes = {}
    for name, attempt in attempts.items():
        try:
            attempt()
            outcomes[name] = "done"
        except Exception as error:
            outcomes[name] = type(error).__name__
    os.write(writes_to, json.dumps(outcomes).encode())

host.ScriptHost.serve = main_of
host.main()
"""
ALLOWED = {"use memory", "tell the time", "set an alarm"}

HAS_FILTER = sys.platform.startswith("linux") and platform.machine() in ("x86_64", "aarch64")


def run_host(code: str) -> tuple[bytes, str]:
    """Return the output of a host that runs this Python code: to the server, and to standard error."""
    server_reads, host_writes = os.pipe()
    host_reads, server_writes = os.pipe()
    finished = subprocess.run(
        [sys.executable, "-c", code, str(host_reads), str(host_writes), json.dumps(asdict(DEFAULT_SCRIPT_LIMITS))],
        pass_fds=(host_reads, host_writes),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    for descriptor in (host_reads, host_writes, server_writes):
        os.close(descriptor)
    with open(server_reads, "rb") as reader:
        return reader.read(), finished.stderr


@pytest.mark.skipif(not HAS_FILTER, reason="the filter of system calls is Linux's")
def test_a_host_can_reach_no_file_no_socket_and_no_process(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("everything")
    written, errors = run_host(f"FILE = {str(file)!r}\n{BROKEN_OUT}")
    assert errors == ""
    outcomes = cast("dict[str, str]", json.loads(written))
    assert {name for name, outcome in outcomes.items() if outcome == "done"} == ALLOWED
    refused = {outcome for name, outcome in outcomes.items() if name not in ALLOWED}
    assert refused <= {"PermissionError", "OSError", "RuntimeError", "ValueError"}
    assert outcomes["open a file"] == outcomes["open a socket"] == outcomes["fork"] == "PermissionError"
    assert file.read_text() == "everything"


WITHOUT_FILTER = """
from asterism.scripts import host, wall
wall._MACHINES.clear()
host.ScriptHost.serve = lambda host_itself: host.os.write(host_itself._writes_to, b"served")
host.main()
"""


def test_a_host_without_the_filter_says_so_in_one_line_and_serves() -> None:
    written, errors = run_host(WITHOUT_FILTER)
    assert written == b"served"
    assert errors.count("\n") == 1
    assert "scripts run without the filter of system calls" in errors

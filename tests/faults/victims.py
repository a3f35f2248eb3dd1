"""Processes that kill themselves at a given moment of their work, for tests of the restart after it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.support.server import PROJECT

_WAIT_SECONDS_MAX = 300.0


def run_victim(module: str, directory: Path, *arguments: str) -> list[str]:
    """Run a module of this package until it dies by SIGKILL; return the lines that it printed."""
    command = [sys.executable, "-m", f"tests.faults.{module}", str(directory), *arguments]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=_WAIT_SECONDS_MAX, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout[-200:] + done.stderr
    return done.stdout.splitlines()

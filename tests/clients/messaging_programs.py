"""Examples with hubs, queues and topics, run as their readers run them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.clients.messaging_server import MessagingServer
from tests.support.commands import run, run_well
from tests.support.server import PROJECT, WAIT_SECONDS_MAX, RunningServer, environment

EXAMPLES = PROJECT / "examples"
GUIDES = PROJECT / "docs" / "guides"


def run_example(server: RunningServer, path: Path, *arguments: str) -> str:
    """Run the commands that the text of an example says it needs, then the example; return its output."""
    for command in re.findall(r"^ {4}asterism (.+)$", path.read_text(encoding="utf-8").split('"""')[1], re.MULTILINE):
        run_well(server, *shlex.split(command))
    return run_program(str(path), *arguments)


def run_first_steps(messaging: MessagingServer, guide: Path) -> str:
    """Run the commands and the program of a guide's first steps; return the output of the program."""
    text = guide.read_text(encoding="utf-8").partition("## First steps")[2]
    for command in re.findall(r"^asterism ((?:bus|hubs) .+)$", _block(text, "sh"), re.MULTILINE):
        done = run(messaging.server, *shlex.split(command))
        assert done.returncode == 0, done.stderr
    program = _block(text, "python").replace("sb://localhost;", f"sb://localhost:{messaging.amqp_port};")
    return run_program("-c", program)


def _block(text: str, language: str) -> str:
    return text.partition(f"```{language}\n")[2].partition("```")[0]


def run_program(*arguments: str) -> str:
    """Run a program in Python; return its output."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=2 * WAIT_SECONDS_MAX,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

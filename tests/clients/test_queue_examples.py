"""The examples of docs/guides/queues.md, run with the official client."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.clients.queue_server import QueueServer
from tests.support.server import PROJECT, WAIT_SECONDS_MAX, environment

EXPECTED = {
    "resize_pictures": """\
done: 40
failed: ['broken.jpg']
""",
    "reminders": """\
visible: ['now']
all: 3
visible: ['now', 'tomorrow, early']
""",
}


@pytest.mark.parametrize("name", list(EXPECTED))
def test_an_example_does_what_it_says(name: str, queues: QueueServer) -> None:
    done = subprocess.run(
        [sys.executable, str(PROJECT / "examples" / "queues" / f"{name}.py"), queues.connection_string],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
        env=environment(),
    )
    assert (done.stdout, done.returncode) == (EXPECTED[name], 0), done.stderr

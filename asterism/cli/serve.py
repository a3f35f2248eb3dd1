"""`asterism serve`, with the options of the server and of every door."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from asterism.apis.door_spec import DoorSpec
from asterism.cli.declared_options import with_options
from asterism.cli.failure import CommandFailed
from asterism.server.config import StartRefused
from asterism.server.configure import configured, serve_options
from asterism.server.doors import DOORS

SERVE_EXAMPLES = """[bold]Examples[/bold]

On http://127.0.0.1:8081/ with the emulator's well-known key:\n
  asterism serve

Encrypted, with a self-signed certificate for localhost and db.test:\n
  asterism serve --https --tls-name db.test

With a key of your own, open to the network:\n
  ASTERISM_KEY=$(openssl rand -base64 48) asterism serve --host 0.0.0.0

Filled from a file at the first start, and never answering 429:\n
  asterism serve --seed shop.json --no-throttle

On a fleet of nodes, described in a file:\n
  asterism serve --fleet fleet.toml

Thrown away when it ends, with nothing on disk:\n
  asterism serve --data :memory:

To see partitions split within seconds:\n
  asterism serve --limit physical-partition-bytes=1MB
"""


def serve_command(doors: Sequence[DoorSpec[Any]]) -> Callable[..., None]:
    @with_options(serve_options(doors))
    def serve(**values: Any) -> None:
        """Start the server."""
        try:
            config = configured(values, doors)
            from asterism.server.run import run_server

            run_server(config, say=_say)
        except StartRefused as refusal:
            raise CommandFailed(str(refusal)) from None

    return serve


serve = serve_command(DOORS)


def _say(text: str) -> None:
    # At once, also into a pipe or a file: programs wait for this line. The reader may be gone, which is not a reason
    # to stop serving.
    with contextlib.suppress(OSError):
        print(text, flush=True)

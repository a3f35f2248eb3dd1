"""A replay that takes a minute, for tests that stop it in the middle."""

from __future__ import annotations

import signal
import sys

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.cli.advise_replay import replay_keys
from asterism.cli.scratch_containers import Server
from tests.support.replays import LONG_SECONDS, PRESENT, SETTINGS, items, requests

if __name__ == "__main__":
    # A shell has a process in the background ignore it, and so do all processes that are started by that one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    replay_keys(
        Server(sys.argv[1], WELL_KNOWN_EMULATOR_KEY),
        [PRESENT],
        present=PRESENT,
        items=items(),
        requests=requests(seconds=LONG_SECONDS),
        settings=SETTINGS,
    )

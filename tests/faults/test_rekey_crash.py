"""kill -9 in the middle of a copying to another partition key: after the restart it is resumed, and loses nothing."""

from __future__ import annotations

import subprocess
import time
from functools import partial
from pathlib import Path

from azure.cosmos import PartitionKey

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.cli.client import AdminClient
from tests.support.ports import free_port
from tests.support.rekey import Writer, contents, fill, run_well, until_true
from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, environment, running_server

# While the source is prepared, while items are copied, while changes are followed; after the job was there.
MOMENTS_SECONDS = (0.05, 0.8, 0.3)


def has_begun(admin: AdminClient) -> bool:
    return bool(admin.get("rekeys")["rekeys"])


def test_a_copying_is_resumed_after_kill_9_at_any_moment(tmp_path: Path) -> None:
    port = free_port()
    with running_server(tmp_path, "--no-throttle", port=port) as server:
        source = server.client().create_database("d").create_container("source", PartitionKey("/pk"))
        fill(source)
    begin = [*PROGRAM, "rekey", "d", "source", "--to", "by-day", "--path", "/day"]
    for moment_seconds in MOMENTS_SECONDS:
        with running_server(tmp_path, "--no-throttle", port=port) as server:
            source = server.client().get_database_client("d").get_container_client("source")
            given = {**environment(), "ASTERISM_ENDPOINT": server.endpoint}
            command = subprocess.Popen(begin, env=given, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            writer = Writer(source, f"w{moment_seconds}")
            writer.start()
            admin = AdminClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=False)
            until_true(partial(has_begun, admin))
            time.sleep(moment_seconds)
            writer.stopping.set()
            writer.join()
            server.kill()
            command.wait(WAIT_SECONDS_MAX)
    with running_server(tmp_path, "--no-throttle", port=port) as server:
        database = server.client().get_database_client("d")
        run_well(server, "d", "source", "--to", "by-day", "--switch")
        source, target = (database.get_container_client(name) for name in ("source", "by-day"))
        assert contents(target) == contents(source)

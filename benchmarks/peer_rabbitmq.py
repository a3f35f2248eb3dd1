"""The peer of the AMQP door: RabbitMQ as Debian packages it, with its plugin for AMQP 1.0.

It runs as a process of ours, in directories of ours, and listens on the loopback interface alone.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.amqp_servers import AmqpServer, running_amqp
from benchmarks.amqp_wire import Login
from benchmarks.processes import NotMeasured, free_port

FOLDER = Path("/usr/lib/rabbitmq")
SERVER = FOLDER / "bin" / "rabbitmq-server"
CONTROL = FOLDER / "bin" / "rabbitmqctl"
# The plugin's address of a queue, which it creates for the first link.
PEER_QUEUE = "/queue/{name}"
_STOP_SECONDS_MAX = 10.0
_CONTROL_SECONDS_MAX = 30.0
# In its counters of files.
_SYNCS = re.compile(r"\{\{io_sync,count\},(\d+)\}")


@dataclass(frozen=True)
class RabbitServer(AmqpServer):
    environment: dict[str, str]
    version: str

    def sync_count(self) -> int:
        """Return how often the server has made its files durable since it started."""
        done = subprocess.run(
            [str(CONTROL), "eval", "file_handle_cache_stats:get()."],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_CONTROL_SECONDS_MAX,
            check=False,
        )
        found = _SYNCS.search(done.stdout)
        if found is None:
            raise NotMeasured(f"RabbitMQ does not count what it synchronizes: {done.stderr[:200]}")
        return int(found[1])


def installed_version() -> str:
    """Return the version that is installed; NotMeasured without one."""
    found = sorted((FOLDER / "lib").glob("rabbitmq_server-*"))
    if not SERVER.is_file() or not found:
        raise NotMeasured("RabbitMQ is not installed; run: sudo apt-get install rabbitmq-server")
    return found[-1].name.removeprefix("rabbitmq_server-")


def environment_of(data: Path, *, port: int, node_port: int, names_port: int) -> dict[str, str]:
    return {
        **os.environ,
        # The file of its cookie lies there.
        "HOME": str(data),
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(node_port),
        # A daemon of names of its own, which ends with it.
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(names_port),
        "RABBITMQ_MNESIA_BASE": str(data / "database"),
        "RABBITMQ_LOG_BASE": str(data / "log"),
        "RABBITMQ_SCHEMA_DIR": str(data / "schema"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(data / "config"),
        "RABBITMQ_PID_FILE": str(data / "pid"),
        "RABBITMQ_CONFIG_FILE": str(data / "rabbitmq"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(data / "plugins"),
        # The script becomes the server, so that the process we start is the one to stop.
        "RABBITMQ_ALLOW_INPUT": "true",
        # One thread, as every server here has one core.
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 -noinput -kernel inet_dist_use_interface {127,0,0,1}",
    }


@contextmanager
def running_rabbitmq(data: Path) -> Iterator[RabbitServer]:
    version = installed_version()
    (data / "plugins").write_text("[rabbitmq_amqp1_0].\n")
    (data / "rabbitmq.conf").write_text("")
    port, names_port = free_port(), free_port()
    environment = environment_of(data, port=port, node_port=free_port(), names_port=names_port)
    try:
        with running_amqp(
            [str(SERVER)],
            port=port,
            log_name="rabbitmq",
            login=Login("guest", "guest"),
            folder=data,
            environment=environment,
        ) as server:
            yield RabbitServer(server.process, server.login, environment, version)
    finally:
        stop_name_server(environment)


def stop_name_server(environment: dict[str, str]) -> None:
    """Stop the daemon of names that the server has started, on a port of its own."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(["epmd", "-kill"], env=environment, capture_output=True, timeout=_STOP_SECONDS_MAX, check=False)

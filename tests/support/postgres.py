"""PostgreSQL servers of the tests' own: started on free ports in temporary directories, as an unprivileged user.

`shared_server()` is one server per test process; each test gets a database of its own there. `replicated_server()` is a
primary with a synchronous standby, for tests that break them.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path

import asyncpg

from tests.support.ports import free_port

WAIT_SECONDS_MAX = 120.0
# The engine must work without the rights of a superuser.
USER = "asterism"
SUPERUSER = "postgres"
SERVER_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "400",
    "shared_buffers": "64MB",
    "max_wal_senders": "4",
    "fsync": "on",
    "synchronous_commit": "on",
    "log_min_messages": "warning",
}
# True of a primary whose standby a commit waits for.
FOLLOWS = "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
END_OTHERS = """
SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
"""


@functools.cache
def binaries() -> Path:
    """Return the directory of initdb, pg_ctl and postgres: on the path, or Debian's."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    candidates = sorted(glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: int(path.split("/")[4]))
    assert candidates, "the tests need PostgreSQL: apt-get install postgresql"
    return Path(candidates[-1]).parent


@functools.cache
def unprivileged_user() -> str | None:
    """Return the user of the server processes if this is root: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def as_user(*, dies_with_us: bool = False) -> list[str]:
    """Return the prefix of a command that runs as that user."""
    death = ["--pdeathsig", "INT"] if dies_with_us else []
    user = unprivileged_user()
    if user is None:
        return ["setpriv", *death] if dies_with_us else []
    group = str(pwd.getpwnam(user).pw_gid)
    return ["setpriv", "--reuid", user, "--regid", group, "--clear-groups", *death]


def run(*command: str | Path, **options: str) -> str:
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", **options}
    ended = subprocess.run(
        [*as_user(), *map(str, command)], cwd="/", env=environment, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, f"{command[0]}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def make_directory() -> Path:
    """Make a directory that the user owns, outside the tests' directories, which only this process may enter."""
    directory = Path(tempfile.mkdtemp(prefix="asterism-postgres-"))
    user = unprivileged_user()
    if user is not None:
        entry = pwd.getpwnam(user)
        os.chown(directory, entry.pw_uid, entry.pw_gid)
    return directory


@functools.cache
def template() -> Path:
    """Return a data directory made by initdb: making it takes a second, copying it does not."""
    directory = make_directory()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    data = directory / "data"
    run(binaries() / "initdb", "-D", data, "-U", SUPERUSER, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
    return data


@dataclass(eq=False)
class PostgresServer:
    """A server in a directory that survives stopping, killing and restarting the server."""

    directory: Path
    port: int = field(default_factory=free_port)
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    _made: set[str] = field(default_factory=set)

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def start(self) -> None:
        settings = SERVER_SETTINGS | self.settings | {"unix_socket_directories": str(self.directory)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [*as_user(dies_with_us=True), str(binaries() / "postgres"), "-D", str(self.data)]
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*command, "-p", str(self.port), *options],
                cwd="/",
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.wait_until("SELECT true")

    def wait_until(self, condition: str) -> None:
        """Wait until the server answers and the condition is true."""
        ends_at = time.monotonic() + WAIT_SECONDS_MAX
        while time.monotonic() < ends_at:
            assert self.process is None or self.process.poll() is None, (self.directory / "log").read_text()
            with contextlib.suppress(AssertionError):
                if self.sql(condition).strip() == "t":
                    return
            time.sleep(0.05)
        raise AssertionError(f"not true after {WAIT_SECONDS_MAX} s: {condition}")

    def sql(self, text: str, database: str = "postgres") -> str:
        """Run statements as the superuser, over the local socket."""
        return run(
            binaries() / "psql",
            *("-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1"),
            *("-h", self.directory, "-p", str(self.port), "-U", SUPERUSER, "-d", database, "-c", text),
        )

    def dsn(self, database: str = "asterism", *, port: int | None = None) -> str:
        return f"postgresql://{USER}@127.0.0.1:{port or self.port}/{database}"

    def create_database(self, name: str = "asterism") -> str:
        """Create a database of the unprivileged role; return its connection string."""
        self.sql(f'CREATE DATABASE "{name}" OWNER {USER}')
        return self.dsn(name)

    async def empty_database(self, name: str) -> str:
        """Return an empty database; faster than `create_database`, because an existing one is emptied."""
        if name not in self._made:
            self._made.add(name)
            return self.create_database(name)
        connection = await asyncpg.connect(self.dsn(name))
        # A server that was killed may have left statements that are still carried out.
        await connection.execute(END_OTHERS)
        await connection.execute("SET lock_timeout = '60s'; DROP SCHEMA IF EXISTS asterism CASCADE")
        await connection.close()
        return self.dsn(name)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(WAIT_SECONDS_MAX)
        self.process = None

    def kill(self) -> None:
        """Kill every process of the server at once, like a power failure."""
        assert self.process is not None
        # A stopped process starts no more children.
        self.process.send_signal(signal.SIGSTOP)
        _wait_for_state(self.process.pid, "T")
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for process in (self.process.pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait(WAIT_SECONDS_MAX)
        for child in map(int, children):
            # Until then, a server that is started again finds its shared memory in use.
            _wait_for_state(child, "Z")
        self.process = None

    def promote(self) -> None:
        run(binaries() / "pg_ctl", "promote", "-D", self.data, "-w", "-t", "300")
        self.wait_until("SELECT NOT pg_is_in_recovery()")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


def _wait_for_state(process: int, state: str) -> None:
    """Wait until a process is in a state of /proc, or is gone."""
    ends_at = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < ends_at:
        try:
            # Behind the name, which may have any characters.
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == state:
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.002)
    raise AssertionError(f"process {process} is not in state {state} after {WAIT_SECONDS_MAX} s")


def new_server() -> PostgresServer:
    server = PostgresServer(make_directory())
    run("cp", "-a", template(), server.data)
    server.start()
    server.sql(f"CREATE ROLE {USER} LOGIN")
    return server


def new_standby(primary: PostgresServer, name: str = "standby") -> PostgresServer:
    """Make a standby with pg_basebackup; the primary then waits for it before it answers a commit."""
    standby = PostgresServer(make_directory(), settings={"cluster_name": name})
    run(
        binaries() / "pg_basebackup",
        *("-D", standby.data, "-R", "-X", "stream", "-c", "fast", "--no-sync"),
        *("-h", primary.directory, "-p", str(primary.port), "-U", SUPERUSER),
    )
    standby.start()
    primary.sql(f"ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 ({name})'")
    primary.sql("SELECT pg_reload_conf()")
    primary.wait_until(FOLLOWS)
    return standby


@functools.cache
def shared_server() -> PostgresServer:
    server = new_server()
    atexit.register(server.remove)
    return server


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    server = new_server()
    try:
        yield server
    finally:
        server.remove()


@contextmanager
def replicated_server() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """Run a primary and its synchronous standby."""
    with running_server() as primary:
        standby = new_standby(primary)
        try:
            yield primary, standby
        finally:
            standby.remove()


def both_hosts(primary: PostgresServer, standby: PostgresServer, database: str = "asterism") -> str:
    """Return the connection string of a node with a standby."""
    return f"postgresql://{USER}@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/{database}"

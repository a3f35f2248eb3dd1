"""A throw-away server in a process of its own, for the tests of programs that use the database."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from asterism.testing import launcher
from asterism.testing.admin import AdminRequests
from asterism.testing.errors import ClientNotInstalled, ServerNotStarted
from asterism.testing.option_lists import options_of_keywords

if TYPE_CHECKING:
    from azure.cosmos import CosmosClient
    from azure.cosmos.aio import CosmosClient as AsyncCosmosClient
    from azure.data.tables import TableServiceClient
    from azure.storage.blob import BlobServiceClient
    from azure.storage.queue import QueueServiceClient

# A start takes well below a second; a busy machine may take longer, and a test must not wait for ever.
START_SECONDS_MAX = 60.0
# Requests under way are answered first, for at most ten seconds.
STOP_SECONDS_MAX = 20.0
_LOG_BYTES_SHOWN = 8_000
_MEMORY = "memory"
# Names of what lies in an account of storage, without a database.
_IN_ACCOUNT = frozenset({"table", "blob", "queue"})
# As `asterism serve` and `forked_server` read them.
_DATA = {_MEMORY: ":memory:", "disk": ":temporary:"}


class Server:
    """A server on free ports of this machine, from `start` (or `with`) to `stop`.

    It ends with the process that started it, whatever happens to that, and leaves no files. `data` is `memory`, `disk`
    for a temporary directory, or the path of a directory that is kept. Options are those of `asterism serve`, as a
    list, `options=["--no-throttle"]`, or as keywords, `no_throttle=True`. Environment variables do not count.
    """

    def __init__(
        self,
        *,
        data: str | os.PathLike[str] = _MEMORY,
        options: Sequence[str] = (),
        portal: bool = False,
        **more_options: object,
    ) -> None:
        is_named = isinstance(data, str) and data in _DATA
        self._options = [
            f"--data={_DATA[str(data)] if is_named else os.fspath(data)}",
            *([] if portal else ["--no-portal"]),
            *options,
            *options_of_keywords(more_options),
        ]
        self._is_temporary = data == "disk"
        self._lifeline: socket.socket | None = None
        self._log: IO[bytes] | None = None
        self._report: Mapping[str, Any] = {}
        self._owner = 0

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        if self._lifeline is not None:
            raise ServerNotStarted("the server runs already; stop it first, or make another one")
        self._log = tempfile.TemporaryFile(prefix="asterism-")  # noqa: SIM115 - closed by `stop`
        try:
            self._lifeline = launcher.start_server(self._options, self._log)
            self._owner = os.getpid()
            self._report = self._read_report()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the server and wait until it has ended. A server that does not run is left alone."""
        lifeline, log, report = self._lifeline, self._log, self._report
        self._lifeline, self._log, self._report = None, None, {}
        # A process that was forked from the tests has copies of all this; the server is not its own to end.
        if lifeline is not None and self._owner == os.getpid():
            _end(lifeline, report.get("pid"))
            if self._is_temporary and report.get("data"):
                # The server removes it, unless it was killed.
                shutil.rmtree(os.path.dirname(report["data"]), ignore_errors=True)
        if lifeline is not None:
            lifeline.close()
        if log is not None:
            log.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __del__(self) -> None:
        if getattr(self, "_lifeline", None) is not None:
            self.stop()

    @property
    def log(self) -> str:
        """The end of the server's output: warnings and errors."""
        if self._log is None:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), _LOG_BYTES_SHOWN, max(0, size - _LOG_BYTES_SHOWN)).decode(errors="replace")

    # --- addresses and keys -----------------------------------------------------------------------------------------

    @property
    def cosmos_endpoint(self) -> str:
        return self._served("endpoints", "nosql")

    @property
    def key(self) -> str:
        return str(self._fact("key"))

    @property
    def readonly_key(self) -> str:
        return str(self._fact("readonly_key"))

    @property
    def cosmos_connection_string(self) -> str:
        return self._served("connection_strings", "nosql")

    @property
    def table_connection_string(self) -> str:
        return self._served("connection_strings", "table")

    @property
    def table_endpoint(self) -> str:
        """The address of the account for tables, as clients of Azure Table storage want it."""
        return _part("TableEndpoint", self.table_connection_string)

    @property
    def cosmos_table_endpoint(self) -> str:
        """The same tables as Cosmos DB for Table."""
        return _part("TableEndpoint", self.cosmos_table_connection_string)

    @property
    def cosmos_table_connection_string(self) -> str:
        return self._served("connection_strings", "cosmos-table")

    @property
    def blob_connection_string(self) -> str:
        return self._served("connection_strings", "blob")

    @property
    def queue_connection_string(self) -> str:
        return self._served("connection_strings", "queue")

    @property
    def portal_url(self) -> str:
        return self._served("endpoints", "portal")

    @property
    def ports(self) -> dict[str, int]:
        """The served ports, by name."""
        return dict(self._fact("ports"))

    @property
    def pid(self) -> int:
        return int(self._fact("pid"))

    @property
    def certificate(self) -> str | None:
        """The file of the server's own certificate, with `https=True`."""
        found = self._fact("certificate")
        return None if found is None else str(found)

    # --- clients ----------------------------------------------------------------------------------------------------

    def cosmos_client(self, **options: Any) -> CosmosClient:
        """Return a client of azure-cosmos; `options` are those of its constructor."""
        try:
            from azure.cosmos import CosmosClient
        except ImportError:
            raise ClientNotInstalled("cosmos_client() needs the official client: pip install azure-cosmos") from None
        return CosmosClient(self.cosmos_endpoint, self.key, **self._unverified(), **options)

    def async_cosmos_client(self, **options: Any) -> AsyncCosmosClient:
        try:
            import aiohttp  # noqa: F401 - the client loads it later, and its failure would not say what to install
            from azure.cosmos.aio import CosmosClient
        except ImportError:
            raise ClientNotInstalled(
                "async_cosmos_client() needs the official client: pip install azure-cosmos aiohttp"
            ) from None
        return CosmosClient(self.cosmos_endpoint, self.key, **self._unverified(), **options)

    def table_service_client(self, **options: Any) -> TableServiceClient:
        try:
            from azure.data.tables import TableServiceClient
        except ImportError:
            raise ClientNotInstalled(
                "table_service_client() needs the official client: pip install azure-data-tables"
            ) from None
        return TableServiceClient.from_connection_string(self.table_connection_string, **self._unverified(), **options)

    def blob_service_client(self, **options: Any) -> BlobServiceClient:
        try:
            from azure.storage.blob import BlobServiceClient
        except ImportError:
            raise ClientNotInstalled(
                "blob_service_client() needs the official client: pip install azure-storage-blob"
            ) from None
        return BlobServiceClient.from_connection_string(self.blob_connection_string, **self._unverified(), **options)

    def queue_service_client(self, **options: Any) -> QueueServiceClient:
        try:
            from azure.storage.queue import QueueServiceClient
        except ImportError:
            raise ClientNotInstalled(
                "queue_service_client() needs the official client: pip install azure-storage-queue"
            ) from None
        return QueueServiceClient.from_connection_string(self.queue_connection_string, **self._unverified(), **options)

    def _unverified(self) -> dict[str, Any]:
        return {} if self.certificate is None else {"connection_verify": False}

    # --- partitions -------------------------------------------------------------------------------------------------

    def partitions(self, database: str | None = None, container: str | None = None, **table: str) -> list[Any]:
        """Return the physical partitions of a container, or of `table=`, `blob=` or `queue=`, in their order."""
        names = _names(database, container, table)
        return list(self._admin().get("partitions", **names, details="false")["partitions"])

    def split(
        self,
        database: str | None = None,
        container: str | None = None,
        *,
        range: str | int | None = None,
        wait: bool = True,
        **table: str,
    ) -> list[Any]:
        """Split a partition, the largest unless `range` is its id, and return the partitions then."""
        names = _names(database, container, table)
        if range is None:
            range = max(self.partitions(**names), key=lambda partition: partition["bytes"] or 0)["id"]
        return self._reshape("split", names, {"range": str(range)}, wait=wait)

    def merge(
        self,
        database: str | None = None,
        container: str | None = None,
        *,
        ranges: Sequence[str | int] | None = None,
        wait: bool = True,
        **table: str,
    ) -> list[Any]:
        """Merge two neighbors, the smallest unless `ranges` are their ids, and return the partitions then."""
        names = _names(database, container, table)
        if ranges is None:
            found = self.partitions(**names)
            pairs = sorted(pairwise(found), key=lambda pair: sum(p["bytes"] or 0 for p in pair))
            ranges = [partition["id"] for partition in (pairs[0] if pairs else found)]
        return self._reshape("merge", names, {"ranges": [str(each) for each in ranges]}, wait=wait)

    def _reshape(self, kind: str, names: dict[str, str], more: dict[str, object], *, wait: bool) -> list[Any]:
        job = self._admin().post(kind, {**names, **more})["job"]
        if wait:
            self._admin().wait_for_job(job)
        return self.partitions(**names)

    # --- controls ---------------------------------------------------------------------------------------------------

    def fail_next(
        self,
        status: int,
        *,
        times: int = 1,
        operation: str | None = None,
        door: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        """Let the next requests fail with a status, in the words of their protocol, without doing anything.

        `operation`: only these, by their name in the metrics (`create_item`, `query_items`, `insert_entity`). `door`:
        only those at a port (`nosql`, `table`, `cosmos-table`).
        """
        wish: dict[str, object] = {"status": status, "times": times, "operation": operation, "door": door}
        if retry_after_seconds is not None:
            wish["retry_after_seconds"] = retry_after_seconds
        self._controls().post("testing/fail-next", wish)

    @property
    def pending_faults(self) -> list[Any]:
        """The faults that no request has met yet."""
        return list(self._controls().get("testing")["faults"])

    def set_clock_skew(self, seconds: float) -> None:
        """Shift the server's clock from the true time: items expire, and stored times are shifted."""
        self._controls().post("testing/clock-skew", {"seconds": seconds})

    def reset(self) -> None:
        """Delete all databases, tables and accounts that were made, and forget faults and the clock's skew."""
        self._controls().post("testing/reset", {})

    # --- the parts --------------------------------------------------------------------------------------------------

    def _controls(self) -> AdminRequests:
        if not self._fact("has_controls"):
            raise ServerNotStarted(
                "a server of several processes has no test controls; leave out --workers, --fleet and --store"
            )
        return self._admin()

    def _admin(self) -> AdminRequests:
        endpoints = self._fact("endpoints")
        return AdminRequests(next(iter(endpoints.values())), self.key)

    def _served(self, kind: str, port: str) -> str:
        found = self._fact(kind).get(port)
        if found is None:
            how = "portal=True" if port == "portal" else "--apis"
            raise ServerNotStarted(f"this server has no port '{port}'; start it with {how}")
        return str(found)

    def _fact(self, name: str) -> Any:
        if not self._report:
            raise ServerNotStarted("the server does not run; call start(), or use it in a `with` statement")
        return self._report[name]

    def _read_report(self) -> Mapping[str, Any]:
        assert self._lifeline is not None
        line = _read_line(self._lifeline, seconds_max=START_SECONDS_MAX)
        answer = json.loads(line) if line.endswith(b"\n") else {}
        if "ready" in answer:
            return dict(answer["ready"])
        reason = answer.get("refused") or "it ended, or did not get ready in time"
        log = self.log.strip() or launcher.failure().strip()
        raise ServerNotStarted(f"the server did not start: {reason}" + (f"\nIts log:\n{log}" if log else ""))


def _names(database: str | None, container: str | None, table: Mapping[str, str]) -> dict[str, str]:
    if _IN_ACCOUNT & table.keys():
        # The account that every server has.
        return {"account": "devstoreaccount1", **table}
    return {"database": database or "", "container": container or "", **table}


def _part(name: str, connection_string: str) -> str:
    parts = dict(part.partition("=")[::2] for part in connection_string.split(";"))
    return parts[name]


def _read_line(lifeline: socket.socket, *, seconds_max: float) -> bytes:
    """Read up to a line break, the end of the other side, or the end of the time."""
    line = b""
    give_up_at = time.monotonic() + seconds_max
    while not line.endswith(b"\n"):
        lifeline.settimeout(max(give_up_at - time.monotonic(), 0.001))
        try:
            more = lifeline.recv(65536)
        except OSError:
            break
        if not more:
            break
        line += more
    return line


def _end(lifeline: socket.socket, process: int | None) -> None:
    """Ask the server to stop, and wait for the end of its process, which holds the other side. Kill it if need be."""
    try:
        lifeline.shutdown(socket.SHUT_WR)
    except OSError:
        return
    lifeline.settimeout(STOP_SECONDS_MAX)
    try:
        while lifeline.recv(65536):
            pass
    except TimeoutError:
        # Its number is still its own: the other side is open.
        if process is not None:
            os.kill(process, signal.SIGKILL)
    except OSError:
        pass

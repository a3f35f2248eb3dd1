"""The port for queues of a server, with the official client for it."""

from __future__ import annotations

import http.client
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from azure.storage.queue import QueueClient, QueueServiceClient
from azure.storage.queue.aio import QueueServiceClient as AioQueueServiceClient

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, WELL_KNOWN_EMULATOR_KEY
from asterism.cli.client import AdminClient
from tests.support.server import RunningServer, running_server


def new_name(prefix: str = "queue") -> str:
    """Return a name for a queue or a storage account that no other test uses."""
    return f"{prefix}{uuid.uuid4().hex[:16]}"


class RawReply(NamedTuple):
    status: int
    body: bytes


@dataclass(frozen=True)
class QueueServer:
    running: RunningServer
    account: str = DEVELOPMENT_ACCOUNT
    key: str = DEVELOPMENT_KEY

    @property
    def port(self) -> int:
        return self.running.ports["queue"]

    @property
    def credential(self) -> dict[str, str]:
        return {"account_name": self.account, "account_key": self.key}

    @property
    def endpoint(self) -> str:
        return f"{self.running.scheme}://127.0.0.1:{self.port}/{self.account}"

    @property
    def secondary_endpoint(self) -> str:
        return f"{self.endpoint}-secondary"

    @property
    def connection_string(self) -> str:
        return (
            f"DefaultEndpointsProtocol={self.running.scheme};AccountName={self.account};AccountKey={self.key};"
            f"QueueEndpoint={self.endpoint};"
            # The client takes the place of the secondary without a scheme.
            f"QueueSecondaryEndpoint={self.secondary_endpoint.partition('//')[2]};"
        )

    def service(self) -> QueueServiceClient:
        return QueueServiceClient.from_connection_string(self.connection_string, retry_total=0)

    def aio_service(self) -> AioQueueServiceClient:
        return AioQueueServiceClient.from_connection_string(self.connection_string, retry_total=0)

    def new_queue(self) -> QueueClient:
        return self.service().create_queue(new_name())

    def raw(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> RawReply:
        """Send a request as it is, without a signature."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        return RawReply(reply.status, content)

    def of_new_account(self) -> QueueServer:
        """Return the same server for a new account, whose settings no other test sees."""
        name = new_name("account")
        admin = AdminClient(self.running.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=False)
        keys = admin.post("accounts", {"name": name, "kind": "storage", "quotas": {}})["keys"]
        return replace(self, account=name, key=keys["primary"])


@contextmanager
def running_queues(data: Path, *options: str) -> Iterator[QueueServer]:
    """Run a server of the caller's own, for tests about options, restarts and faults; the others use `queues`."""
    with running_server(data, *options, doors=("nosql", "queue")) as running:
        yield QueueServer(running)

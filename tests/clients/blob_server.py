"""The port for blobs of a server, with the official client for it."""

from __future__ import annotations

import http.client
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from azure.storage.blob import (
    BlobClient,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    generate_blob_sas,
)
from azure.storage.blob.aio import BlobServiceClient as AioBlobServiceClient

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, WELL_KNOWN_EMULATOR_KEY
from asterism.cli.client import AdminClient
from tests.support.server import WAIT_SECONDS_MAX, RunningServer, running_server

MIB = 1 << 20


def new_name(prefix: str = "box") -> str:
    """Return a name for a container or a storage account that no other test uses."""
    return f"{prefix}{uuid.uuid4().hex[:16]}"


class RawReply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class BlobServer:
    running: RunningServer
    account: str = DEVELOPMENT_ACCOUNT
    key: str = DEVELOPMENT_KEY

    @property
    def port(self) -> int:
        return self.running.ports["blob"]

    @property
    def endpoint(self) -> str:
        return f"{self.running.scheme}://127.0.0.1:{self.port}/{self.account}"

    @property
    def connection_string(self) -> str:
        return (
            f"DefaultEndpointsProtocol={self.running.scheme};AccountName={self.account};AccountKey={self.key};"
            f"BlobEndpoint={self.endpoint};BlobSecondaryEndpoint={self.endpoint}-secondary;"
        )

    def service(self) -> BlobServiceClient:
        """Return a client that divides uploads above one MiB into blocks."""
        return BlobServiceClient.from_connection_string(
            self.connection_string, retry_total=0, max_single_put_size=MIB, max_block_size=MIB
        )

    def aio_service(self) -> AioBlobServiceClient:
        return AioBlobServiceClient.from_connection_string(
            self.connection_string, retry_total=0, max_single_put_size=MIB, max_block_size=MIB
        )

    def new_container(self) -> ContainerClient:
        return self.service().create_container(new_name())

    def signed_url(self, blob: BlobClient, *, snapshot: str | None = None) -> str:
        """Return the URL of a blob with a signature that lets its holder read it for an hour."""
        signature = generate_blob_sas(
            self.account,
            blob.container_name,
            blob.blob_name,
            snapshot=snapshot,
            account_key=self.key,
            permission=BlobSasPermissions(read=True),
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        query = f"snapshot={snapshot}&{signature}" if snapshot else signature
        return f"{blob.url.partition('?')[0]}?{query}"

    def raw(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> RawReply:
        """Send a request as it is, without a signature."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        return RawReply(reply.status, {name.lower(): value for name, value in reply.getheaders()}, content)

    def of_new_account(self) -> BlobServer:
        """Return the same server for a new account, whose settings no other test sees."""
        name = new_name("account")
        admin = AdminClient(self.running.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=False)
        keys = admin.post("accounts", {"name": name, "kind": "storage", "quotas": {}})["keys"]
        return replace(self, account=name, key=keys["primary"])


def status_of_copy(blob: BlobClient) -> str:
    """Wait until a copy is over, and return its status."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while (status := str(blob.get_blob_properties().copy.status)) == "pending" and time.monotonic() < deadline:
        time.sleep(0.05)
    return status


@contextmanager
def running_blobs(data: Path, *options: str) -> Iterator[BlobServer]:
    """Run a server of the caller's own, for tests about options, restarts and faults; the others use `blobs`."""
    with running_server(data, *options, doors=("nosql", "blob")) as running:
        yield BlobServer(running)

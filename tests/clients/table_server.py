"""The ports for tables of a server, with the official client for them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, WELL_KNOWN_EMULATOR_KEY
from asterism.cli.client import AdminClient
from tests.support.server import RunningServer, running_server

CREDENTIAL = AzureNamedKeyCredential(DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY)


def new_name(prefix: str) -> str:
    """Return a name for a table or a storage account that no other test uses."""
    return f"{prefix}{uuid.uuid4().hex[:16]}"


@dataclass(frozen=True)
class TableServer:
    running: RunningServer
    account: str = DEVELOPMENT_ACCOUNT
    key: str = DEVELOPMENT_KEY

    @property
    def port(self) -> int:
        return self.running.ports["table"]

    @property
    def cosmos_port(self) -> int:
        return self.running.ports["cosmos-table"]

    @property
    def credential(self) -> AzureNamedKeyCredential:
        return AzureNamedKeyCredential(self.account, self.key)

    @property
    def endpoint(self) -> str:
        return f"{self.running.scheme}://127.0.0.1:{self.port}/{self.account}"

    @property
    def cosmos_endpoint(self) -> str:
        """By this name the client takes the server for Cosmos DB."""
        return f"{self.running.scheme}://localhost:{self.cosmos_port}/{self.account}"

    @property
    def connection_string(self) -> str:
        return (
            f"DefaultEndpointsProtocol={self.running.scheme};AccountName={self.account};"
            f"AccountKey={self.key};TableEndpoint={self.endpoint};"
        )

    def service(self) -> TableServiceClient:
        return TableServiceClient(self.endpoint, credential=self.credential, retry_total=0)

    def cosmos_service(self, *, retry_total: int = 0) -> TableServiceClient:
        return TableServiceClient(self.cosmos_endpoint, credential=self.credential, retry_total=retry_total)

    def of_new_account(self) -> TableServer:
        """Return the same server for a new account, whose settings no other test sees."""
        name = new_name("account")
        admin = AdminClient(self.running.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=False)
        keys = admin.post("accounts", {"name": name, "kind": "storage", "quotas": {}})["keys"]
        return replace(self, account=name, key=keys["primary"])


@contextmanager
def running_tables(data: Path, *options: str) -> Iterator[TableServer]:
    """Run a server of the caller's own, for tests about options, restarts and faults; the others use `tables`."""
    with running_server(data, *options, doors=("nosql", "table")) as running:
        yield TableServer(running)

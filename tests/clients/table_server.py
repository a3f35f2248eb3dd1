"""A server for tests with the official client for tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from tests.support.server import RunningServer, free_port, running_server

CREDENTIAL = AzureNamedKeyCredential(DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY)


@dataclass(frozen=True)
class TableServer:
    running: RunningServer
    port: int
    cosmos_port: int

    @property
    def endpoint(self) -> str:
        return f"{self.running.scheme}://127.0.0.1:{self.port}/{DEVELOPMENT_ACCOUNT}"

    @property
    def cosmos_endpoint(self) -> str:
        """By this name the client takes the server for Cosmos DB."""
        return f"{self.running.scheme}://localhost:{self.cosmos_port}/{DEVELOPMENT_ACCOUNT}"

    @property
    def connection_string(self) -> str:
        return (
            f"DefaultEndpointsProtocol={self.running.scheme};AccountName={DEVELOPMENT_ACCOUNT};"
            f"AccountKey={DEVELOPMENT_KEY};TableEndpoint={self.endpoint};"
        )

    def service(self) -> TableServiceClient:
        return TableServiceClient(self.endpoint, credential=CREDENTIAL, retry_total=0)

    def cosmos_service(self, *, retry_total: int = 0) -> TableServiceClient:
        return TableServiceClient(self.cosmos_endpoint, credential=CREDENTIAL, retry_total=retry_total)


@contextmanager
def running_tables(data: Path, *options: str) -> Iterator[TableServer]:
    port, cosmos_port = free_port(), free_port()
    ports = ("--table-port", str(port), "--cosmos-table-port", str(cosmos_port))
    with running_server(data, "--apis", "nosql,table", *ports, *options) as running:
        yield TableServer(running, port, cosmos_port)

"""Several accounts in one server, through the program's own commands and the official client (spec C17)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.cosmos import CosmosClient, PartitionKey, exceptions
from azure.data.tables import TableServiceClient

from tests.clients.table_server import TableServer, new_name
from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment, running_server


def accounts(server: RunningServer, *words: str) -> str:
    finished = subprocess.run(
        [*PROGRAM, "accounts", *words, "--endpoint", server.endpoint],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def created(server: RunningServer, name: str, *options: str) -> dict[str, str]:
    keys: dict[str, str] = json.loads(accounts(server, "create", name, "--format", "json", *options))
    return keys


def database_names(client: CosmosClient) -> list[str]:
    return [database["id"] for database in client.list_databases()]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_two_accounts_hold_the_same_names_apart(tmp_path: Path, workers: str) -> None:
    with running_server(tmp_path, "--workers", workers, alone=True) as server:
        keys = created(server, "blue")
        first, second = server.client(), server.client(key=keys["primary"])
        for client, color in ((first, "red"), (second, "blue")):
            container = client.create_database("shop").create_container("things", PartitionKey("/pk"))
            container.create_item({"id": "1", "pk": "a", "color": color})
        for client, color in ((first, "red"), (second, "blue")):
            container = client.get_database_client("shop").get_container_client("things")
            assert container.read_item("1", "a")["color"] == color
        second.create_database("only-blue")
        assert database_names(first) == ["shop"]
        assert database_names(second) == ["only-blue", "shop"]


def test_keys_quotas_and_deletion_take_effect_while_the_server_runs(server: RunningServer) -> None:
    name = new_name("blue")
    keys = created(server, name, "--quota", "containers=1")
    client = server.client(key=keys["primary"])
    database = client.create_database("shop")
    database.create_container("a", PartitionKey("/pk"))
    with pytest.raises(exceptions.CosmosHttpResponseError) as refused:
        database.create_container("b", PartitionKey("/pk"))
    assert refused.value.status_code == 403
    accounts(server, "set", name, "--quota", "containers=none")
    database.create_container("b", PartitionKey("/pk"))

    rotated = json.loads(accounts(server, "rotate", name, "--which", "primary", "--format", "json"))
    with pytest.raises(exceptions.CosmosHttpResponseError) as unknown:
        server.client(key=keys["primary"])
    assert unknown.value.status_code == 401
    assert database_names(server.client(key=rotated["primary"])) == ["shop"]
    assert name in accounts(server, "list")

    accounts(server, "delete", name, "--with-data")
    with pytest.raises(exceptions.CosmosHttpResponseError):
        server.client(key=rotated["primary"])
    assert name not in accounts(server, "list")


def test_accounts_are_there_after_a_crash(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        keys = created(server, "blue", "--consistency", "strong")
        server.client(key=keys["primary"]).create_database("shop")
        server.kill()
    with running_server(tmp_path) as server:
        client = server.client(key=keys["secondary"])
        assert database_names(client) == ["shop"]
        assert client.get_database_account().ConsistencyPolicy["defaultConsistencyLevel"] == "Strong"


def test_a_storage_account_has_tables_of_its_own(tables: TableServer) -> None:
    account, name = new_name("bluestore"), new_name("things")
    keys = created(tables.running, account, "--kind", "storage")
    endpoint = f"http://127.0.0.1:{tables.port}/{account}"
    blue = TableServiceClient(endpoint, credential=AzureNamedKeyCredential(account, keys["primary"]), retry_total=0)
    blue.create_table(name).create_entity({"PartitionKey": "a", "RowKey": "1", "color": "blue"})
    assert [table.name for table in blue.list_tables()] == [name]
    assert name not in [table.name for table in tables.service().list_tables()]
    assert [table.name for table in tables.of_new_account().service().list_tables()] == []
    assert blue.get_table_client(name).get_entity("a", "1")["color"] == "blue"
    accounts(tables.running, "rotate", account, "--which", "primary")
    with pytest.raises(HttpResponseError):
        list(blue.list_tables())
    accounts(tables.running, "delete", account, "--with-data")
    again = created(tables.running, account, "--kind", "storage")
    empty = TableServiceClient(endpoint, credential=AzureNamedKeyCredential(account, again["primary"]))
    assert [table.name for table in empty.list_tables()] == []

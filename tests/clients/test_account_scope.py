"""Operators' requests that name an account, on data that official clients of several accounts have written."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlencode

from azure.core.credentials import AzureNamedKeyCredential
from azure.cosmos import CosmosClient, PartitionKey
from azure.data.tables import TableServiceClient

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.cli.server_address import ServerAddress
from tests.clients.table_server import TableServer, new_name
from tests.clients.test_accounts import created
from tests.support.server import WAIT_SECONDS_MAX, RunningServer


def ask(server: RunningServer, name: str, *, scope: str | None = None, **parameters: str) -> tuple[int, Any]:
    """Send a GET of the operator, for a single account if `scope` names it; return the status and the JSON."""
    link = f"_asterism/{name}"
    address = ServerAddress.of(server.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=False)
    headers = address.signed_headers("GET", resource_type="asterism", link=link)
    headers |= {} if scope is None else {"x-asterism-account": scope}
    request = urllib.request.Request(f"{address.url}/{link}?{urlencode(parameters)}", headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=WAIT_SECONDS_MAX) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def fill(client: CosmosClient, database: str, container: str) -> None:
    made = client.create_database(database).create_container(container, PartitionKey("/pk"))
    for number in range(5):
        made.create_item({"id": str(number), "pk": str(number)})


def test_the_containers_of_an_account_are_seen_under_its_name_alone(server: RunningServer) -> None:
    blue, green = new_name("blue"), new_name("green")
    for account in (blue, green):
        fill(server.client(key=created(server, account)["primary"]), "shop", f"things-of-{account}")
    _, overview = ask(server, "overview", scope=blue)
    assert [(row["account"], row["name"], row["items"]) for row in overview["collections"]] == [
        (blue, f"things-of-{blue}", 5)
    ]
    _, everything = ask(server, "overview", search="things-of-")
    assert {row["account"] for row in everything["collections"]} >= {blue, green}
    names = {"database": "shop", "container": f"things-of-{blue}"}
    assert ask(server, "partitions", scope=blue, **names)[1]["totals"]["items"] == 5
    for account in (green, None):
        assert ask(server, "partitions", scope=account, **names)[0] == 404
        assert ask(server, "plan/delete", scope=account, **names)[0] == 404


def test_the_tables_of_an_account_are_seen_under_its_name_alone(tables: TableServer) -> None:
    account, name = new_name("bluestore"), new_name("things")
    key = created(tables.running, account, "--kind", "storage")["primary"]
    endpoint = f"http://127.0.0.1:{tables.port}/{account}"
    service = TableServiceClient(endpoint, credential=AzureNamedKeyCredential(account, key))
    service.create_table(name).create_entity({"PartitionKey": "a", "RowKey": "1"})
    _, overview = ask(tables.running, "overview", scope=account)
    assert [(row["kind"], row["name"], row["items"]) for row in overview["collections"]] == [("table", name, 1)]
    names = {"account": account, "table": name}
    assert ask(tables.running, "partitions", scope=account, **names)[1]["totals"]["items"] == 1
    assert ask(tables.running, "partitions", scope=tables.account, **names)[0] == 404
    assert ask(tables.running, "partitions", **names)[0] == 200

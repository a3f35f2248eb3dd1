"""`asterism.testing.Server`: its life, its members, and the controls that test suites have of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.cosmos import ContainerProxy, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError
from azure.data.tables import TableServiceClient

from asterism.testing import ClientNotInstalled, RequestRefused, Server, ServerNotStarted
from tests.support.server import PROJECT, WAIT_SECONDS_MAX


def wait_until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def clean(running: Server) -> Server:
    running.reset()
    return running


@pytest.fixture
def things(clean: Server) -> Iterator[ContainerProxy]:
    with clean.cosmos_client() as client:
        yield client.create_database("shop").create_container("things", PartitionKey("/pk"))


# --- life -----------------------------------------------------------------------------------------------------------


def test_a_server_has_addresses_keys_and_clients(running: Server) -> None:
    assert running.cosmos_endpoint == f"http://127.0.0.1:{running.ports['nosql']}/"
    assert running.table_endpoint == f"http://127.0.0.1:{running.ports['table']}/devstoreaccount1"
    assert running.cosmos_table_endpoint == f"http://127.0.0.1:{running.ports['cosmos-table']}/devstoreaccount1"
    assert running.cosmos_connection_string == f"AccountEndpoint={running.cosmos_endpoint};AccountKey={running.key};"
    assert running.readonly_key != running.key
    for name, client in (("blob", running.blob_service_client()), ("queue", running.queue_service_client())):
        assert client.url.rstrip("/") == f"http://127.0.0.1:{running.ports[name]}/devstoreaccount1"


def test_two_servers_do_not_share_data() -> None:
    with Server() as first, Server() as second, first.cosmos_client() as client, second.cosmos_client() as other:
        client.create_database("only-here")
        assert list(other.list_databases()) == []
        assert not set(first.ports.values()) & set(second.ports.values())


def test_a_stopped_server_says_that_it_does_not_run_and_can_start_again() -> None:
    server = Server().start()
    process = server.pid
    server.stop()
    server.stop()
    wait_until(lambda: not is_alive(process))
    with pytest.raises(ServerNotStarted, match="does not run"):
        server.cosmos_endpoint  # noqa: B018 - the property raises
    with server:
        assert server.pid != process


def test_a_server_on_disk_leaves_no_files() -> None:
    with Server(data="disk", no_throttle=True) as server:
        folder = Path(str(server._report["data"]))
        assert folder.is_dir()
    assert not folder.exists()
    assert not folder.parent.exists()


def test_a_data_directory_that_is_given_is_kept(tmp_path: Path) -> None:
    with Server(data=tmp_path / "data") as server, server.cosmos_client() as client:
        client.create_database("kept")
    with Server(data=tmp_path / "data") as server, server.cosmos_client() as client:
        assert [database["id"] for database in client.list_databases()] == ["kept"]


def test_options_are_given_as_a_list_or_as_keywords() -> None:
    key = "c2VjcmV0IG9mIGEgdGVzdA=="
    with Server(options=["--key", key]) as first, Server(key=key, limit=["item-bytes=1KB"], apis="nosql") as second:
        assert first.key == second.key == key
        assert list(second.ports) == ["nosql"]
        with pytest.raises(ServerNotStarted, match="no port 'table'"):
            second.table_endpoint  # noqa: B018 - the property raises


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ServerNotStarted, match="unrecognized arguments: --shape=round"):
        Server(shape="round").start()
    with pytest.raises(ServerNotStarted, match="must be at least 1"):
        Server(workers=0).start()
    with Server(data=tmp_path / "data"), pytest.raises(ServerNotStarted, match="another server"):
        Server(data=tmp_path / "data").start()


def test_settings_of_the_shell_do_not_reach_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASTERISM_KEY", "c2VjcmV0IG9mIHRoZSBzaGVsbA==")
    with Server() as server:
        assert server.key != "c2VjcmV0IG9mIHRoZSBzaGVsbA=="


def test_an_encrypted_server_has_clients_that_accept_its_certificate() -> None:
    with Server(https=True) as server, server.cosmos_client() as client:
        assert server.cosmos_endpoint.startswith("https://")
        assert list(client.list_databases()) == []
        server.reset()
        certificate = Path(str(server.certificate))
        assert certificate.is_file()
    assert not certificate.exists()


def test_several_processes_have_no_test_controls(tmp_path: Path) -> None:
    with Server(data="disk", workers=2) as server, server.cosmos_client() as client:
        client.create_database("served")
        process = server.pid
        with pytest.raises(ServerNotStarted, match="several processes"):
            server.reset()
    wait_until(lambda: not is_alive(process))


def test_a_client_that_is_not_installed_is_named(running: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.cosmos", None)
    monkeypatch.setitem(sys.modules, "azure.data.tables", None)
    with pytest.raises(ClientNotInstalled, match=r"pip install azure-cosmos$"):
        running.cosmos_client()
    monkeypatch.setitem(sys.modules, "azure.storage.blob", None)
    monkeypatch.setitem(sys.modules, "azure.storage.queue", None)
    with pytest.raises(ClientNotInstalled, match="pip install azure-data-tables"):
        running.table_service_client()
    with pytest.raises(ClientNotInstalled, match="pip install azure-storage-blob"):
        running.blob_service_client()
    with pytest.raises(ClientNotInstalled, match="pip install azure-storage-queue"):
        running.queue_service_client()


async def test_the_asynchronous_client_works(clean: Server) -> None:
    async with clean.async_cosmos_client() as client:
        await client.create_database("awaited")
        assert [database["id"] async for database in client.list_databases()] == ["awaited"]


PARENT = """
import time
from asterism.testing import Server
servers = [Server().start(), Server(data="disk").start(), Server(data="disk", workers=2).start()]
print(*(server.pid for server in servers), *(server._report["data"] for server in servers[1:]), flush=True)
time.sleep(600)
"""


def test_servers_end_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    ) as parent:
        assert parent.stdout is not None
        *processes, folder, other_folder = parent.stdout.readline().split()
        assert len(processes) == 3
        assert all(is_alive(int(process)) for process in processes)
        parent.send_signal(signal.SIGKILL)
        for process in processes:
            wait_until(lambda process=process: not is_alive(int(process)))
        wait_until(lambda: not Path(folder).exists() and not Path(other_folder).exists())


def test_a_forked_child_of_the_tests_does_not_end_the_server(running: Server) -> None:
    child = os.fork()
    if child == 0:
        running.stop()
        os._exit(0)
    os.waitpid(child, 0)
    assert is_alive(running.pid)
    assert running.pending_faults == []


# --- faults ---------------------------------------------------------------------------------------------------------


def test_the_official_client_retries_a_throttled_write_until_it_succeeds(clean: Server, things: ContainerProxy) -> None:
    clean.fail_next(429, times=3, operation="create_item")
    things.create_item({"id": "a", "pk": "x"})
    assert clean.pending_faults == []
    assert things.read_item("a", "x")["id"] == "a"


def test_a_fault_that_lasts_reaches_the_caller_and_nothing_is_written(clean: Server, things: ContainerProxy) -> None:
    clean.fail_next(429, times=1000, operation="create_item")
    with pytest.raises(CosmosHttpResponseError) as refused:
        things.create_item({"id": "a", "pk": "x"})
    assert refused.value.status_code == 429
    assert int(refused.value.headers["x-ms-retry-after-ms"]) >= 1
    clean.reset()
    assert clean.pending_faults == []


@pytest.mark.parametrize("status", [400, 403, 404, 409, 412, 413])
def test_a_fault_has_the_status_that_was_asked_for(clean: Server, things: ContainerProxy, status: int) -> None:
    clean.fail_next(status, operation="read_item", door="nosql")
    with pytest.raises(CosmosHttpResponseError) as refused:
        things.read_item("absent", "x")
    assert refused.value.status_code == status
    assert clean.pending_faults == []


def test_the_official_client_reads_again_after_the_service_was_unavailable(
    clean: Server, things: ContainerProxy
) -> None:
    things.create_item({"id": "a", "pk": "x"})
    clean.fail_next(503, operation="read_item")
    assert things.read_item("a", "x")["id"] == "a"
    assert clean.pending_faults == []


def test_operations_that_share_an_address_fail_apart(clean: Server, things: ContainerProxy) -> None:
    clean.fail_next(400, operation="query_items")
    clean.fail_next(403, operation="upsert_item")
    things.create_item({"id": "a", "pk": "x"})
    with pytest.raises(CosmosHttpResponseError, match="test suite"):
        list(things.query_items("SELECT * FROM c", partition_key="x"))
    with pytest.raises(CosmosHttpResponseError, match="test suite"):
        things.upsert_item({"id": "a", "pk": "x"})
    assert clean.pending_faults == []
    assert len(list(things.query_items("SELECT * FROM c", partition_key="x"))) == 1


def test_a_fault_for_tables_leaves_items_alone(clean: Server, things: ContainerProxy) -> None:
    clean.fail_next(403, door="table")
    things.create_item({"id": "a", "pk": "x"})
    with clean.table_service_client() as tables:
        with pytest.raises(HttpResponseError) as refused:
            tables.create_table("orders")
        assert refused.value.status_code == 403
        tables.create_table("orders")


def test_the_official_client_for_tables_retries_while_the_service_is_busy(clean: Server) -> None:
    clean.fail_next(503, times=2, operation="create_table")
    with TableServiceClient.from_connection_string(clean.table_connection_string, retry_backoff_factor=0) as tables:
        tables.create_table("orders")
        assert [table.name for table in tables.list_tables()] == ["orders"]
    assert clean.pending_faults == []


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ({"status": 418}, "No request can be made to fail with 418. Choose one of 400, 401"),
        ({"status": 429, "times": 0}, "'times' must be between 1 and"),
        ({"status": 429, "door": "cosmos"}, "There is no door 'cosmos'. Choose one of nosql, table, cosmos-table"),
        ({"status": 429, "operation": "CreateItem"}, "There is no operation 'CreateItem'. Choose one of .*create_item"),
        ({"status": 429, "operation": "create_item", "door": "table"}, "There is no operation 'create_item'"),
    ],
)
def test_a_fault_that_could_not_happen_is_refused(clean: Server, wish: dict[str, object], reason: str) -> None:
    with pytest.raises(RequestRefused, match=reason):
        clean.fail_next(**wish)  # type: ignore[arg-type]  # wrong on purpose


# --- clock ----------------------------------------------------------------------------------------------------------


def test_an_item_expires_when_the_clock_is_set_ahead(clean: Server) -> None:
    with clean.cosmos_client() as client:
        things = client.create_database("shop").create_container("short", PartitionKey("/pk"), default_ttl=3600)
        before = things.create_item({"id": "a", "pk": "x"})
        clean.set_clock_skew(3700)
        with pytest.raises(CosmosResourceNotFoundError):
            things.read_item("a", "x")
        assert list(things.query_items("SELECT * FROM c", enable_cross_partition_query=True)) == []
        after = things.create_item({"id": "b", "pk": "x"})
        assert after["_ts"] - before["_ts"] >= 3700


def test_a_clock_that_is_hours_behind_still_takes_signed_requests(clean: Server) -> None:
    clean.set_clock_skew(-10 * 3600)
    with clean.cosmos_client() as client, clean.table_service_client() as tables:
        client.create_database("early")
        tables.create_table("early")
        entity = {"PartitionKey": "x", "RowKey": "a"}
        assert tables.get_table_client("early").create_entity(entity)["etag"]
    clean.reset()


def test_a_resource_token_expires_when_the_clock_is_set_ahead(clean: Server, things: ContainerProxy) -> None:
    things.create_item({"id": "a", "pk": "x"})
    with clean.cosmos_client() as client:
        user = client.get_database_client("shop").create_user({"id": "reader"})
        granted = {"id": "reads", "permissionMode": "Read", "resource": "dbs/shop/colls/things"}
        token = user.create_permission(granted).properties["_token"]
    with clean.cosmos_client() as _, _client_of_token(clean, token) as reader:
        things_as_reader = reader.get_database_client("shop").get_container_client("things")
        assert things_as_reader.read_item("a", "x")["id"] == "a"
        clean.set_clock_skew(2 * 3600)
        with pytest.raises(CosmosHttpResponseError) as refused:
            things_as_reader.read_item("a", "x")
    assert refused.value.status_code in (401, 403)


def _client_of_token(server: Server, token: str):  # type: ignore[no-untyped-def]  # the client has no types
    from azure.cosmos import CosmosClient

    return CosmosClient(server.cosmos_endpoint, {"dbs/shop/colls/things": token})


# --- partitions and reset -------------------------------------------------------------------------------------------


def test_a_split_and_a_merge_change_the_partitions(clean: Server, things: ContainerProxy) -> None:
    for number in range(50):
        things.create_item({"id": str(number), "pk": str(number)})
    assert len(clean.partitions("shop", "things")) == 1
    assert len(clean.split("shop", "things")) == 2
    assert len(clean.split("shop", "things", range=clean.partitions("shop", "things")[0]["id"])) == 3
    assert len(clean.merge("shop", "things")) == 2
    assert len(list(things.read_all_items())) == 50


def test_an_empty_container_can_be_split(clean: Server, things: ContainerProxy) -> None:
    assert len(clean.split("shop", "things")) == 2


def test_a_table_can_be_split(clean: Server) -> None:
    with clean.table_service_client() as tables:
        orders = tables.create_table("orders")
        for number in range(50):
            orders.create_entity({"PartitionKey": f"{number:02}", "RowKey": "a"})
    assert len(clean.split(table="orders")) == 2


def test_a_split_of_what_does_not_exist_says_so(clean: Server) -> None:
    with pytest.raises(RequestRefused, match="There is no database 'nothing'"):
        clean.split("nothing", "here")


def test_a_reset_leaves_nothing(clean: Server, things: ContainerProxy) -> None:
    with clean.cosmos_client() as client, clean.table_service_client() as tables:
        tables.create_table("orders")
        clean._admin().post("accounts", {"name": "blue"})
        clean.fail_next(500, operation="delete_item")
        clean.set_clock_skew(60)
        clean.reset()
        assert list(client.list_databases()) == []
        assert list(tables.list_tables()) == []
        assert clean.pending_faults == []
        assert clean._admin().get("testing")["clock_skew_seconds"] == 0
        assert "blue" not in str(clean._admin().get("accounts"))
        client.create_database("shop").create_container("things", PartitionKey("/pk")).create_item(
            {"id": "a", "pk": "x"}
        )
        tables.create_table("orders").create_entity({"PartitionKey": "x", "RowKey": "a"})

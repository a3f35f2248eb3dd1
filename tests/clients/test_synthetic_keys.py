"""Containers with a synthetic partition key, as the official client uses them: plain items, and names of keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey, exceptions
from azure.cosmos.partition_key import NonePartitionKeyValue
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.cli.client import AdminClient
from tests.support.server import RunningServer

CHARGE = "x-ms-request-charge"
CONCATENATED = {"parts": ["/deviceId", "/date"]}
HASHED = {"parts": ["/date"], "suffix": {"kind": "hash", "path": "/vin", "count": 50}}
RANDOM = {"parts": ["/date"], "suffix": {"kind": "random", "count": 40}}
BY_DAY = {"parts": [{"path": "/at", "bucket": "day"}]}


def synthetic(rule: Mapping[str, Any], path: str = "/pk") -> PartitionKey:
    key = PartitionKey(path)
    key["synthetic"] = {path: rule}
    return key


def make(database: DatabaseProxy, name: str, rule: Mapping[str, Any]) -> ContainerProxy:
    # Four physical partitions.
    return database.create_container(name, synthetic(rule), offer_throughput=24_000)


@pytest.fixture(scope="module")
def devices(client: CosmosClient) -> Iterator[ContainerProxy]:
    database = client.create_database("synthetic-devices")
    yield make(database, "devices", CONCATENATED)
    client.delete_database(database)


def charge_of(container: ContainerProxy) -> float:
    return float(container.client_connection.last_response_headers[CHARGE])


def logical_partitions(server: RunningServer, container: ContainerProxy, text: str) -> int | None:
    """Return how many logical partitions a query reads; None for all."""
    _, database, _, name = container.container_link.split("/")
    client = AdminClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=False)
    answer = client.post("query", {"database": database, "container": name, "query": text, "explain": True})
    number: int | None = answer["explanation"]["logical_partitions"]
    return number


def test_a_plain_item_gets_the_key_that_its_properties_give(devices: ContainerProxy) -> None:
    made = devices.create_item({"id": "1", "deviceId": "abc-123", "date": 2018, "n": 1})
    assert made["pk"] == "abc-123-2018"
    assert devices.read_item("1", "abc-123-2018")["n"] == 1
    assert devices.read_item("1", ["abc-123", 2018])["n"] == 1
    assert charge_of(devices) == 1.0
    assert devices.upsert_item({"id": "1", "deviceId": "abc-123", "date": 2018, "n": 2})["n"] == 2
    assert devices.replace_item("1", {"id": "1", "deviceId": "abc-123", "date": 2018, "n": 3})["pk"] == "abc-123-2018"
    with pytest.raises(exceptions.CosmosResourceExistsError):
        devices.create_item({"id": "1", "deviceId": "abc-123", "date": 2018})
    devices.delete_item("1", ["abc-123", 2018])
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        devices.read_item("1", "abc-123-2018")


def test_an_item_read_and_changed_keeps_its_key_or_is_refused(devices: ContainerProxy) -> None:
    made = devices.create_item({"id": "moved", "deviceId": "d", "date": "2026"})
    assert devices.replace_item(made, {**made, "n": 5})["n"] == 5
    with pytest.raises(exceptions.CosmosHttpResponseError) as refusal:
        devices.replace_item(made, {**made, "date": "2027"})
    assert refusal.value.status_code == 400
    with pytest.raises(exceptions.CosmosHttpResponseError) as refusal:
        devices.patch_item("moved", "d-2026", [{"op": "set", "path": "/date", "value": "2027"}])
    assert refusal.value.status_code == 400
    with pytest.raises(exceptions.CosmosHttpResponseError) as refusal:
        devices.create_item({"id": "forged", "deviceId": "d", "date": "2026", "pk": "another"})
    assert refusal.value.status_code == 400
    patched = devices.patch_item("moved", ["d", "2026"], [{"op": "set", "path": "/n", "value": 6}])
    assert (patched["n"], patched["pk"]) == (6, "d-2026")


def test_an_item_without_a_source_is_refused_or_counts_as_one_without_a_key(
    database: DatabaseProxy, devices: ContainerProxy
) -> None:
    for item in ({"id": "1", "date": "2026"}, {"id": "1", "deviceId": None, "date": "2026"}):
        with pytest.raises(exceptions.CosmosHttpResponseError) as refusal:
            devices.create_item(item)
        assert refusal.value.status_code == 400
        assert "/deviceId" in refusal.value.message
    with pytest.raises(exceptions.CosmosHttpResponseError) as refusal:
        devices.create_item({"id": "1", "deviceId": {"a": 1}, "date": "2026"})
    assert refusal.value.status_code == 400
    lenient = make(database, "lenient", {**CONCATENATED, "missing": "absent"})
    assert "pk" not in lenient.create_item({"id": "1", "date": "2026"})
    assert lenient.read_item("1", NonePartitionKeyValue)["date"] == "2026"


def test_a_hashed_suffix_is_one_partition_for_a_reader_that_knows_its_source(database: DatabaseProxy) -> None:
    container = make(database, "cars", HASHED)
    for number in range(60):
        container.create_item({"id": str(number), "date": "2026-01-01", "vin": f"vin-{number}"})
    assert container.read_item("7", ["2026-01-01", "vin-7"])["vin"] == "vin-7"
    assert charge_of(container) == 1.0
    assert container.read_item("7", "2026-01-01")["vin"] == "vin-7"
    assert charge_of(container) == 50.0
    with pytest.raises(exceptions.CosmosResourceNotFoundError) as missing:
        container.read_item("nowhere", "2026-01-01")
    assert missing.value.headers[CHARGE] == "50.0"


def test_writes_under_a_random_suffix_spread_and_are_found_by_their_source(database: DatabaseProxy) -> None:
    container = make(database, "days", RANDOM)
    for number in range(80):
        container.create_item({"id": str(number), "date": "d", "n": number})
    keys = {item["pk"] for item in container.read_all_items()}
    assert len(keys) > 20
    assert container.read_item("7", "d")["n"] == 7
    assert charge_of(container) == 40.0
    changed = container.upsert_item({"id": "7", "date": "d", "n": 70})
    assert changed["pk"] in keys
    assert container.replace_item("7", {"id": "7", "date": "d", "n": 71})["pk"] == changed["pk"]
    assert container.patch_item("7", "d", [{"op": "incr", "path": "/n", "value": 1}])["n"] == 72
    assert container.read_item("7", changed["pk"])["n"] == 72
    assert charge_of(container) == 1.0
    with pytest.raises(exceptions.CosmosResourceExistsError):
        container.create_item({"id": "7", "date": "d"})
    container.delete_item("7", "d")
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        container.read_item("7", "d")


def test_a_query_that_fixes_the_sources_reads_their_partitions_alone(
    server: RunningServer, database: DatabaseProxy
) -> None:
    container = make(database, "queried", HASHED)
    for number in range(60):
        container.create_item({"id": str(number), "date": f"day-{number % 2}", "vin": f"vin-{number}"})
    fixed = "SELECT * FROM c WHERE c.date = 'day-1' AND c.vin = 'vin-7'"
    # Without the permission to cross partitions: a filter that fixes the key needs none.
    assert [item["id"] for item in container.query_items(fixed)] == ["7"]
    assert logical_partitions(server, container, fixed) == 1
    of_day = "SELECT VALUE c.id FROM c WHERE c.date = 'day-1'"
    assert sorted(container.query_items(of_day)) == sorted(str(number) for number in range(1, 60, 2))
    assert logical_partitions(server, container, of_day) == 50
    ordered = "SELECT VALUE c.vin FROM c WHERE c.date = 'day-0' ORDER BY c.vin"
    found = list(container.query_items(ordered, enable_cross_partition_query=True))
    assert found == sorted(f"vin-{number}" for number in range(0, 60, 2))
    counted = "SELECT VALUE COUNT(1) FROM c WHERE c.date = 'day-0'"
    assert list(container.query_items(counted, enable_cross_partition_query=True)) == [30]
    assert list(container.query_items(counted, partition_key="day-0")) == [30]
    assert list(container.query_items(counted, partition_key=["day-0", "vin-8"])) == [1]


def test_a_time_stamp_is_rolled_up(database: DatabaseProxy) -> None:
    container = make(database, "rolled", BY_DAY)
    made = container.create_item({"id": "1", "at": "2026-01-31T23:30:00-05:00"})
    assert made["pk"] == "2026-02-01"
    assert container.read_item("1", "2026-02-01T12:00:00Z")["id"] == "1"
    assert container.read_item("1", "2026-02-01")["id"] == "1"
    assert [item["id"] for item in container.query_items("SELECT * FROM c WHERE c.at = '2026-01-31T23:30:00-05:00'")]
    with pytest.raises(exceptions.CosmosHttpResponseError) as refusal:
        container.create_item({"id": "2", "at": "yesterday"})
    assert refusal.value.status_code == 400


def test_batches_scripts_and_bulk_fill_the_key_too(database: DatabaseProxy) -> None:
    container = make(database, "batched", HASHED)
    items = [{"id": str(number), "date": "d", "vin": "v"} for number in range(3)]
    done = container.execute_item_batch([("create", (item,)) for item in items], partition_key=["d", "v"])
    own = done[0]["resourceBody"]["pk"]
    assert {result["resourceBody"]["pk"] for result in done} == {own}
    with pytest.raises(exceptions.CosmosHttpResponseError):
        container.execute_item_batch([("create", ({"id": "9", "date": "d", "vin": "other"},))], partition_key=own)
    found = container.execute_item_batch([("read", ("1",)), ("delete", ("2",))], partition_key="d")
    assert found[0]["resourceBody"]["pk"] == own
    container.scripts.create_stored_procedure(
        {"id": "add", "body": "function add(item) { getContext().getCollection().createDocument("
         "getContext().getCollection().getSelfLink(), item, (error, made) => { if (error) throw error; "
         "getContext().getResponse().setBody(made.pk); }); }"}
    )  # fmt: skip
    run = container.scripts.execute_stored_procedure
    assert run("add", partition_key=["d", "v"], params=[{"id": "by-script", "date": "d", "vin": "v"}]) == own
    with pytest.raises(exceptions.CosmosHttpResponseError):
        run("add", partition_key=own, params=[{"id": "x", "date": "another", "vin": "v"}])
    with pytest.raises(exceptions.CosmosHttpResponseError) as refusal:
        run("add", partition_key="d", params=[{"id": "x", "date": "d", "vin": "v"}])
    assert "50" in refusal.value.message


def test_the_count_of_suffixes_is_raised_and_not_lowered(database: DatabaseProxy) -> None:
    container = make(database, "raised", HASHED)
    for number in range(40):
        container.create_item({"id": str(number), "date": "d", "vin": f"vin-{number}"})
    wider = synthetic({**HASHED, "suffix": {**HASHED["suffix"], "count": 80}})
    database.replace_container(container, wider)
    rule = container.read()["partitionKey"]["synthetic"]["/pk"]
    assert (rule["suffix"]["count"], rule["suffix"]["earlierCounts"]) == (80, [50])
    for number in range(40):
        assert container.read_item(str(number), ["d", f"vin-{number}"])["id"] == str(number)
        with pytest.raises(exceptions.CosmosResourceExistsError):
            container.create_item({"id": str(number), "date": "d", "vin": f"vin-{number}"})
    assert container.upsert_item({"id": "3", "date": "d", "vin": "vin-3", "n": 1})["n"] == 1
    for number in range(40, 80):
        container.create_item({"id": str(number), "date": "d", "vin": f"vin-{number}"})
    counted = "SELECT VALUE COUNT(1) FROM c WHERE c.date = 'd'"
    assert list(container.query_items(counted, enable_cross_partition_query=True)) == [80]
    # A client that does not know the rule leaves it as it is.
    database.replace_container(container, PartitionKey("/pk"), default_ttl=1000)
    assert container.read()["partitionKey"]["synthetic"]["/pk"]["suffix"]["count"] == 80
    for rule in (HASHED, {**HASHED, "suffix": {**HASHED["suffix"], "count": 90, "path": "/other"}}, CONCATENATED):
        with pytest.raises(exceptions.CosmosHttpResponseError) as refusal:
            database.replace_container(container, synthetic(rule))
        assert refusal.value.status_code == 400


def test_rules_that_cannot_be_are_refused(database: DatabaseProxy) -> None:
    two = PartitionKey(["/a", "/b"])
    two["synthetic"] = {"/a": {"parts": ["/b"]}, "/b": {"parts": ["/a"]}}
    refused = [
        two,
        synthetic({"parts": ["/pk"]}),
        synthetic({"parts": []}),
        synthetic({"parts": ["no-slash"]}),
        synthetic({"parts": ["/_ts"]}),
        synthetic({"parts": ["/a", "/a"]}),
        synthetic({"parts": ["/a"], "unknown": 1}),
        synthetic({"parts": [{"path": "/a", "bucket": "fortnight"}]}),
        *(synthetic({"parts": ["/a"], "suffix": {"kind": "random", "count": count}}) for count in (0, 1_000_000, "5")),
    ]
    elsewhere = PartitionKey("/pk")
    elsewhere["synthetic"] = {"/other": CONCATENATED}
    for number, key in enumerate([*refused, elsewhere]):
        with pytest.raises(exceptions.CosmosHttpResponseError) as refusal:
            database.create_container(f"refused-{number}", key)
        assert refusal.value.status_code == 400, key


def test_a_level_of_a_hierarchical_key_can_be_synthetic(database: DatabaseProxy) -> None:
    key = PartitionKey(["/tenant", "/day"])
    key["synthetic"] = {"/day": {"parts": [{"path": "/at", "bucket": "day"}]}}
    container = database.create_container("tenants", key, offer_throughput=24_000)
    made = container.create_item({"id": "1", "tenant": "t", "at": "2026-01-05T10:00:00Z"})
    assert made["day"] == "2026-01-05"
    assert container.read_item("1", ["t", "2026-01-05"])["tenant"] == "t"
    assert container.read_item("1", ["t", "2026-01-05T22:00:00Z"])["tenant"] == "t"
    query = "SELECT VALUE c.id FROM c WHERE c.tenant = 't' AND c.at = '2026-01-05T10:00:00Z'"
    assert list(container.query_items(query)) == ["1"]
    assert list(container.query_items("SELECT VALUE c.id FROM c", partition_key=["t"])) == ["1"]


def test_a_range_of_time_stamps_reads_their_buckets_alone(server: RunningServer, database: DatabaseProxy) -> None:
    container = make(database, "ranged", BY_DAY)
    for day in range(1, 29):
        container.create_item({"id": str(day), "at": f"2026-01-{day:02}T12:00:00Z"})
    text = "SELECT VALUE c.id FROM c WHERE c.at >= '2026-01-10' AND c.at < '2026-01-13'"
    assert sorted(container.query_items(text)) == ["10", "11", "12"]
    ordered = f"{text} ORDER BY c.at DESC"
    assert list(container.query_items(ordered, enable_cross_partition_query=True)) == ["12", "11", "10"]
    # A day more before and two behind: texts compare by their own dates, and buckets are in UTC.
    assert logical_partitions(server, container, text) == 6


def test_a_graph_cannot_have_a_synthetic_key(server: RunningServer, database: DatabaseProxy) -> None:
    make(database, "no-graph", CONCATENATED)
    connection = DriverRemoteConnection(
        f"ws://127.0.0.1:{server.ports['gremlin']}/",
        "g",
        username=f"/dbs/{database.id}/colls/no-graph",
        password=WELL_KNOWN_EMULATOR_KEY,
    )
    try:
        with pytest.raises(GremlinServerError, match="synthetic partition key"):
            traversal().with_remote(connection).V().to_list()
    finally:
        connection.close()

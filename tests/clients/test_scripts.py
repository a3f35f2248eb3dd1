"""Scripts as users of the official client write and run them, against a server process."""

from __future__ import annotations

import asyncio
from urllib.parse import unquote

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncCosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceExistsError, CosmosResourceNotFoundError

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.support.headers import always_sent
from tests.support.server import RunningServer

# The shape of the service's own sample: a bulk import that stops where it is no longer accepted.
IMPORT = """function bulkImport(items) {
    var collection = getContext().getCollection(), link = collection.getSelfLink(), count = 0;
    if (items.length === 0) { getContext().getResponse().setBody(0); return; }
    tryCreate();
    function tryCreate() {
        if (!collection.createDocument(link, items[count], callback)) getContext().getResponse().setBody(count);
    }
    function callback(error) {
        if (error) throw error;
        count += 1;
        if (count >= items.length) getContext().getResponse().setBody(count);
        else tryCreate();
    }
}"""
STAMP = """function () {
    var request = getContext().getRequest(), item = request.getBody();
    item.stamp = "stamped";
    request.setBody(item);
}"""
TOTAL = """function () {
    var collection = getContext().getCollection(), item = getContext().getResponse().getBody();
    var query = { query: "SELECT * FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: "total" }] };
    collection.queryDocuments(collection.getSelfLink(), query, {}, function (error, found) {
        if (error) throw error;
        var total = found.length ? found[0] : { id: "total", pk: item.pk, sum: 0 };
        total.sum += item.amount;
        if (total.sum > 100) throw new Error("too much");
        collection.upsertDocument(collection.getSelfLink(), total, function (error) { if (error) throw error; });
    });
}"""


def items(count: int, *, pk: str = "a") -> list[dict[str, object]]:
    return [{"id": f"item-{number}", "pk": pk, "n": number} for number in range(count)]


def ids(container: ContainerProxy) -> list[str]:
    return sorted(item["id"] for item in container.read_all_items())


def test_scripts_are_created_listed_queried_replaced_and_deleted(container: ContainerProxy) -> None:
    scripts = container.scripts
    scripts.create_stored_procedure({"id": "p", "body": "function () {}"})
    scripts.create_trigger({"id": "t", "serverScript": STAMP, "triggerType": "Pre", "triggerOperation": "Create"})
    scripts.create_user_defined_function({"id": "f", "body": "function () {}"})
    with pytest.raises(CosmosResourceExistsError):
        scripts.create_stored_procedure({"id": "p", "body": ""})
    assert [trigger["id"] for trigger in scripts.list_triggers()] == ["t"]
    asked = "SELECT * FROM r WHERE r.id = 'f'"
    assert [function["id"] for function in scripts.query_user_defined_functions(asked)] == ["f"]
    replaced = scripts.replace_stored_procedure("p", {"id": "p", "body": "function changed() {}"})
    assert scripts.get_stored_procedure("p")["body"] == replaced["body"] == "function changed() {}"
    scripts.delete_trigger("t")
    with pytest.raises(CosmosResourceNotFoundError):
        scripts.get_trigger("t")


def test_a_procedure_imports_many_items_at_once(container: ContainerProxy) -> None:
    container.scripts.create_stored_procedure({"id": "import", "body": IMPORT})
    made = container.scripts.execute_stored_procedure("import", partition_key="a", params=[items(100)])
    assert made == 100
    assert len(ids(container)) == 100


def test_an_exception_takes_back_everything(container: ContainerProxy) -> None:
    container.create_item({"id": "item-7", "pk": "a"})
    container.scripts.create_stored_procedure({"id": "import", "body": IMPORT})
    with pytest.raises(CosmosHttpResponseError) as refused:
        container.scripts.execute_stored_procedure("import", partition_key="a", params=[items(10)])
    assert refused.value.status_code == 400
    assert ids(container) == ["item-7"]


def test_an_endless_script_is_stopped_and_others_go_on(container: ContainerProxy) -> None:
    body = """function () {
        var collection = getContext().getCollection();
        collection.createDocument(collection.getSelfLink(), { id: "x", pk: "a" }, function () { while (true) {} });
    }"""
    container.scripts.create_stored_procedure({"id": "loop", "body": body})
    with pytest.raises(CosmosHttpResponseError) as refused:
        container.scripts.execute_stored_procedure("loop", partition_key="a", retry_total=0)
    assert refused.value.status_code in (400, 408)
    assert ids(container) == []


def test_the_log_of_a_script(container: ContainerProxy) -> None:
    container.scripts.create_stored_procedure({"id": "say", "body": "function () { console.log('hello, %s', 'ü'); }"})
    container.scripts.execute_stored_procedure("say", partition_key="a", enable_script_logging=True)
    headers = container.scripts.client_connection.last_response_headers
    assert "hello, ü" in unquote(headers["x-ms-documentdb-script-log-results"])


def test_triggers_change_items_and_write_with_them(container: ContainerProxy) -> None:
    container.scripts.create_trigger({"id": "stamp", "body": STAMP, "triggerType": "Pre", "triggerOperation": "Create"})
    container.scripts.create_trigger({"id": "total", "body": TOTAL, "triggerType": "Post", "triggerOperation": "All"})
    for number, amount in enumerate((40, 50)):
        made = container.create_item(
            {"id": f"paid-{number}", "pk": "a", "amount": amount},
            pre_trigger_include="stamp",
            post_trigger_include="total",
        )
        assert made["stamp"] == "stamped"
    assert container.read_item("total", "a")["sum"] == 90
    with pytest.raises(CosmosHttpResponseError, match="too much"):
        container.create_item({"id": "more", "pk": "a", "amount": 20}, post_trigger_include="total")
    assert ids(container) == ["paid-0", "paid-1", "total"]
    with pytest.raises(CosmosHttpResponseError):
        container.replace_item("paid-0", {"id": "paid-0", "pk": "a"}, pre_trigger_include="stamp")


def test_a_patch_goes_through_triggers_like_a_replacement(container: ContainerProxy) -> None:
    container.scripts.create_trigger(
        {"id": "stamp", "body": STAMP, "triggerType": "Pre", "triggerOperation": "Replace"}
    )
    container.scripts.create_trigger({"id": "total", "body": TOTAL, "triggerType": "Post", "triggerOperation": "All"})
    container.scripts.create_trigger({"id": "make", "body": STAMP, "triggerType": "Pre", "triggerOperation": "Create"})
    container.create_item({"id": "paid", "pk": "a", "amount": 1})
    more = [{"op": "incr", "path": "/amount", "value": 39}]
    patched = container.patch_item("paid", "a", more, pre_trigger_include="stamp", post_trigger_include="total")
    assert (patched["amount"], patched["stamp"]) == (40, "stamped")
    assert container.read_item("total", "a")["sum"] == 40
    too_much = [{"op": "set", "path": "/amount", "value": 90}]
    with pytest.raises(CosmosHttpResponseError, match="too much"):
        container.patch_item("paid", "a", too_much, post_trigger_include="total")
    assert container.read_item("paid", "a") == patched
    with pytest.raises(CosmosHttpResponseError, match="for the operation Create"):
        container.patch_item("paid", "a", more, pre_trigger_include="make")
    with pytest.raises(CosmosHttpResponseError) as unmet:
        container.patch_item(
            "paid", "a", more, filter_predicate="from c where c.amount > 90", pre_trigger_include="stamp"
        )
    assert unmet.value.status_code == 412


def test_triggers_of_writes_that_succeed_are_heard(container: ContainerProxy) -> None:
    for kind in ("Pre", "Post"):
        say = f"function () {{ console.log('{kind} %s;', getContext().getRequest().getOperationType()); }}"
        container.scripts.create_trigger({"id": kind, "body": say, "triggerType": kind, "triggerOperation": "All"})
    both = {"pre_trigger_include": "Pre", "post_trigger_include": "Post"}

    def heard() -> str:
        headers = container.client_connection.last_response_headers
        return unquote(headers.get("x-ms-documentdb-script-log-results", "nothing"))

    item = {"id": "x", "pk": "a"}
    with always_sent(container, "x-ms-documentdb-script-enable-logging", "True"):
        container.create_item(item, **both)
        assert heard() == "Pre Create;Post Create;"
        container.upsert_item(item, **both)
        assert heard() == "Pre Upsert;Post Upsert;"
        container.replace_item("x", item, **both)
        assert heard() == "Pre Replace;Post Replace;"
        container.patch_item("x", "a", [{"op": "set", "path": "/n", "value": 1}], **both)
        assert heard() == "Pre Replace;Post Replace;"
        container.delete_item("x", "a", **both)
        assert heard() == "Pre Delete;Post Delete;"
    container.create_item(item, **both)
    assert heard() == "nothing"


def test_the_quotas_tell_what_the_container_holds(container: ContainerProxy) -> None:
    ask = """function () {
        var told = getContext().getResponse();
        told.setBody([told.getResourceQuotaCurrentUsage(), told.getMaxResourceQuota()]);
    }"""
    container.scripts.create_stored_procedure({"id": "ask", "body": ask})
    container.scripts.create_trigger({"id": "t", "body": STAMP, "triggerType": "Pre", "triggerOperation": "All"})
    for number in range(26):
        container.scripts.create_user_defined_function({"id": f"f{number}", "body": "function () {}"})
    for item in items(3):
        container.create_item({**item, "text": "x" * 4096})
    container.read(populate_quota_info=True)
    headers = container.client_connection.last_response_headers
    usage = dict(entry.split("=") for entry in headers["x-ms-resource-usage"].strip(";").split(";"))
    assert {name: int(usage[name]) for name in ("functions", "storedProcedures", "triggers", "documentsCount")} == {
        "functions": 26,
        "storedProcedures": 1,
        "triggers": 1,
        "documentsCount": 3,
    }
    assert 12 <= int(usage["documentsSize"]) <= 16
    in_a_script = container.scripts.execute_stored_procedure("ask", partition_key="a")
    assert in_a_script == [headers["x-ms-resource-usage"], headers["x-ms-resource-quota"]]


def test_queries_of_scripts_know_computed_properties_and_their_own_writes(database: DatabaseProxy) -> None:
    computed = [{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}]
    container = database.create_container("computed", PartitionKey("/pk"), computed_properties=computed)
    for number, name in enumerate(("Ada", "BOB", "Cid")):
        container.create_item({"id": str(number), "pk": "a", "name": name, "n": number})
    container.create_item({"id": "x", "pk": "elsewhere", "name": "Bob", "n": 1})
    body = """function (query) {
        var collection = getContext().getCollection(), link = collection.getSelfLink();
        collection.deleteDocument(collection.getAltLink() + "/docs/0", function (error) {
            if (error) throw error;
            collection.createDocument(link, { id: "9", pk: "a", name: "bOb", n: 9 }, function (error) {
                if (error) throw error;
                collection.queryDocuments(link, query, function (error, found) {
                    if (error) throw error;
                    throw new Error(JSON.stringify(found));
                });
            });
        });
    }"""
    container.scripts.create_stored_procedure({"id": "ask", "body": body})
    asked = {
        "SELECT VALUE c.n FROM c WHERE c.lower = 'bob'": "[1,9]",
        "SELECT VALUE c.lower FROM c WHERE c.id = '9'": '["bob"]',
        "SELECT VALUE c.id FROM c WHERE c.n > 1 ORDER BY c.n DESC": '["9","2"]',
        "SELECT VALUE COUNT(1) FROM c": "[3]",
        "SELECT DISTINCT VALUE c.lower FROM c ORDER BY c.lower": '["bob","cid"]',
    }
    for query, message in asked.items():
        with pytest.raises(CosmosHttpResponseError) as refused:
            container.scripts.execute_stored_procedure("ask", partition_key="a", params=[query])
        assert message in refused.value.message.replace('\\"', '"')
    assert len(list(container.read_all_items())) == 4


def test_a_batch_runs_no_triggers(container: ContainerProxy) -> None:
    container.scripts.create_trigger({"id": "stamp", "body": STAMP, "triggerType": "Pre", "triggerOperation": "All"})
    with always_sent(container, "x-ms-documentdb-pre-trigger-include", "stamp"):
        container.execute_item_batch([("create", ({"id": "x", "pk": "a"},))], "a")
    assert "stamp" not in container.read_item("x", "a")


def test_a_function_in_a_filter(container: ContainerProxy) -> None:
    container.scripts.create_user_defined_function({"id": "isOdd", "body": "function (n) { return n % 2 === 1; }"})
    for item in items(6):
        container.create_item(item)
    query = "SELECT VALUE c.n FROM c WHERE udf.isOdd(c.n)"
    assert sorted(container.query_items(query, enable_cross_partition_query=True)) == [1, 3, 5]
    assert sorted(container.query_items(query, partition_key="a")) == [1, 3, 5]


def test_the_asynchronous_client_runs_scripts_too(server: RunningServer, container: ContainerProxy) -> None:
    async def run() -> object:
        async with AsyncCosmosClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY) as client:
            database = container.container_link.split("/")[1]
            scripts = client.get_database_client(database).get_container_client(container.id).scripts
            await scripts.create_stored_procedure({"id": "import", "body": IMPORT})
            return await scripts.execute_stored_procedure("import", partition_key="a", parameters=[items(3)])

    assert asyncio.run(run()) == 3
    assert ids(container) == ["item-0", "item-1", "item-2"]

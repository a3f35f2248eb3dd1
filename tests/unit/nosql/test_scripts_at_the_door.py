"""Stored procedures, triggers and user-defined functions at the door: their records, their runs, their undoing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import unquote

import pytest

from asterism.apis.nosql.scripts import operations as script_operations
from asterism.apis.nosql.scripts.resources import FUNCTIONS, PROCEDURES, TRIGGERS
from asterism.storage.contract import ExpectationFailed
from asterism.values.resource_ids import ChildKind, child_kind, from_text
from tests.support.world import ACCOUNT
from tests.unit.nosql.door_at_hand import CROSSING, ITEMS, KEYS, Answer, DoorAtHand, door_at_hand, key

CONTAINER = "dbs/d/colls/c"
QUERY = {"x-ms-documentdb-isquery": "True"}
PRE, POST = "x-ms-documentdb-pre-trigger-include", "x-ms-documentdb-post-trigger-include"
EXTRAS = {"sprocs": {}, "udfs": {}, "triggers": {"triggerType": "Pre", "triggerOperation": "All"}}
SEGMENTS = pytest.mark.parametrize("segment", ["sprocs", "triggers", "udfs"])


def script(segment: str, name: str = "s", body: str = "function () {}") -> dict[str, object]:
    return {"id": name, "body": body, **EXTRAS[segment]}


async def ran(door: DoorAtHand, body: str, *parameters: object, pk: object = "a", **headers: str) -> Answer:
    """The answer of a new procedure with this body."""
    saved = await door.send(
        "POST", f"{CONTAINER}/sprocs", script("sprocs", body=body), headers={"x-ms-documentdb-is-upsert": "True"}
    )
    assert saved.status in (200, 201)
    return await door.send("POST", f"{CONTAINER}/sprocs/s", list(parameters), headers={**key(pk), **headers})


async def put_trigger(door: DoorAtHand, name: str, body: str, *, kind: str = "Pre", operation: str = "All") -> None:
    trigger = {"id": name, "body": body, "triggerType": kind, "triggerOperation": operation}
    assert (await door.send("POST", f"{CONTAINER}/triggers", trigger)).status == 201


async def ids(door: DoorAtHand) -> list[str]:
    feed = await door.send("GET", ITEMS)
    return sorted(item["id"] for item in feed.body["Documents"])


# --- records --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feed", "kind"),
    [
        (PROCEDURES, ChildKind.STORED_PROCEDURE),
        (TRIGGERS, ChildKind.TRIGGER),
        (FUNCTIONS, ChildKind.USER_DEFINED_FUNCTION),
    ],
)
async def test_a_script_is_created_read_replaced_and_deleted(tmp_path: Path, feed: object, kind: ChildKind) -> None:
    segment, envelope = feed.segment, feed.envelope  # type: ignore[attr-defined]
    async with door_at_hand(tmp_path) as door:
        path = f"{CONTAINER}/{segment}"
        made = await door.send("POST", path, script(segment))
        assert made.status == 201
        rid = from_text(made.body["_rid"])
        assert rid is not None
        assert child_kind(rid) is kind
        assert made.body["_self"].endswith(f"/{segment}/{made.body['_rid']}/")
        assert (await door.send("POST", path, script(segment))).status == 409
        assert (await door.send("GET", f"{path}/s")).body == made.body
        listed = await door.send("GET", path)
        assert listed.body[envelope] == [made.body]
        changed = await door.send("PUT", f"{path}/s", script(segment, body="function () { return 1; }"))
        assert changed.status == 200
        assert changed.body["_etag"] != made.body["_etag"]
        assert changed.body["_rid"] == made.body["_rid"]
        assert (await door.send("DELETE", f"{path}/s")).status == 204
        assert (await door.send("GET", f"{path}/s")).status == 404


@SEGMENTS
async def test_scripts_are_queried(tmp_path: Path, segment: str) -> None:
    async with door_at_hand(tmp_path) as door:
        path = f"{CONTAINER}/{segment}"
        await door.send("POST", path, script(segment, "one"))
        await door.send("POST", path, script(segment, "two"))
        asked = {"query": "SELECT * FROM r WHERE r.id = @id", "parameters": [{"name": "@id", "value": "two"}]}
        found = await door.send("POST", path, asked, headers=QUERY)
        assert found.status == 200
        assert found.body["_count"] == 1


@SEGMENTS
@pytest.mark.parametrize(
    "properties", [{"body": "function () {}"}, {"id": "x"}, {"id": "x", "body": 3}, {"id": "a/b", "body": ""}]
)
async def test_a_script_without_a_name_or_a_body_is_refused(
    tmp_path: Path, segment: str, properties: dict[str, object]
) -> None:
    async with door_at_hand(tmp_path) as door:
        answer = await door.send("POST", f"{CONTAINER}/{segment}", {**EXTRAS[segment], **properties})
        assert answer.status == 400


@pytest.mark.parametrize("properties", [{"triggerType": "During"}, {"triggerOperation": "Read"}, {"triggerType": None}])
async def test_a_trigger_of_an_unknown_kind_is_refused(tmp_path: Path, properties: dict[str, object]) -> None:
    async with door_at_hand(tmp_path) as door:
        assert (await door.send("POST", f"{CONTAINER}/triggers", {**script("triggers"), **properties})).status == 400


async def test_a_read_only_key_may_query_scripts_but_neither_create_nor_run_them(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        path, reader = f"{CONTAINER}/sprocs", KEYS.primary_readonly
        await door.send("POST", path, script("sprocs"))
        asked = {"query": "SELECT * FROM r"}
        assert (await door.send("POST", path, asked, headers=QUERY, signing_key=reader)).status == 200
        assert (await door.send("POST", path, script("sprocs", "t"), signing_key=reader)).status == 403
        run = await door.send("POST", f"{path}/s", [], headers={**key("a"), **QUERY}, signing_key=reader)
        assert run.status == 403


async def test_scripts_go_with_their_container(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.send("POST", f"{CONTAINER}/udfs", script("udfs"))
        await door.send("DELETE", CONTAINER)
        assert await door.world.catalog.store.scan(b"f") == []
        again = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}}
        assert (await door.send("POST", "dbs/d/colls", again)).status == 201
        assert (await door.send("GET", f"{CONTAINER}/udfs")).body["_count"] == 0


# --- runs -----------------------------------------------------------------------------------------------------------

CREATE_TWO = """function (first, second) {
    var collection = getContext().getCollection();
    [first, second].forEach(function (id) {
        var ok = collection.createDocument(collection.getSelfLink(), { id: id, pk: "a" }, function (error) {
            if (error) throw error;
        });
        if (!ok) throw new Error("not accepted");
    });
    getContext().getResponse().setBody({ made: [first, second] });
}"""


async def test_a_procedure_writes_all_in_one_batch(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        before = int((await door.send("POST", ITEMS, {"id": "z", "pk": "a"}, headers=key("a"))).headers["lsn"])
        answer = await ran(door, CREATE_TWO, "one", "two")
        assert answer.status == 200
        assert answer.body == {"made": ["one", "two"]}
        assert int(answer.headers["lsn"]) == before + 1
        assert float(answer.headers["x-ms-request-charge"]) > 10
        assert await ids(door) == ["one", "two", "z"]


async def test_a_procedure_that_fails_leaves_nothing(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("two")
        answer = await ran(door, CREATE_TWO, "one", "two")
        assert answer.status == 400
        assert answer.headers["x-ms-substatus"] == "409"
        assert await ids(door) == ["two"]


async def test_a_procedure_cannot_write_to_another_partition_key(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        answer = await ran(door, CREATE_TWO, "one", "two", pk="b")
        assert answer.status == 400
        assert "Partition key provided" in answer.body["message"]
        assert await ids(door) == []


async def test_a_procedure_needs_a_partition_key_and_must_exist(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.send("POST", f"{CONTAINER}/sprocs", script("sprocs"))
        assert (await door.send("POST", f"{CONTAINER}/sprocs/s", [])).status == 400
        assert (await door.send("POST", f"{CONTAINER}/sprocs/none", [], headers=key("a"))).status == 404


SEES_ITSELF = """function () {
    var collection = getContext().getCollection(), link = collection.getSelfLink();
    function ids(documents) { return documents.map(function (one) { return one.id; }); }
    collection.createDocument(link, { id: "new", pk: "a", n: 5 }, function (error, made) {
        if (error) throw error;
        collection.deleteDocument(collection.getAltLink() + "/docs/old", {}, function (error) {
            if (error) throw error;
            collection.queryDocuments(link, "SELECT * FROM c WHERE c.n > 1", {}, function (error, found) {
                if (error) throw error;
                collection.queryDocuments(link, "SELECT VALUE COUNT(1) FROM c", {}, function (error, counted) {
                    if (error) throw error;
                    collection.queryDocuments(link, 'SELECT * FROM c WHERE c.id = "old"', {}, function (error, gone) {
                        if (error) throw error;
                        collection.readDocuments(link, {}, function (error, all) {
                            if (error) throw error;
                            getContext().getResponse().setBody([ids(found), counted, ids(gone), ids(all)]);
                        });
                    });
                });
            });
        });
    });
}"""


async def test_a_procedure_sees_what_it_has_done_itself(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("old", n=7)
        await door.create("kept", n=3)
        await door.create("elsewhere", pk="b", n=9)
        answer = await ran(door, SEES_ITSELF)
        assert answer.body == [["kept", "new"], [2], [], ["kept", "new"]]
        assert await ids(door) == ["elsewhere", "kept", "new"]


IN_PAGES = """function (query) {
    var collection = getContext().getCollection(), pages = [];
    function next(continuation) {
        var options = { pageSize: 2, continuation: continuation };
        collection.queryDocuments(collection.getSelfLink(), query, options, function (error, found, told) {
            if (error) throw error;
            pages.push(found);
            if (told.continuation) next(told.continuation);
            else getContext().getResponse().setBody(pages);
        });
    }
    next();
}"""


@pytest.mark.parametrize(
    ("query", "pages"),
    [
        ("SELECT VALUE c.n FROM c", [[0, 1], [2, 3], [4]]),
        ("SELECT VALUE c.n FROM c ORDER BY c.n DESC", [[4, 3], [2, 1], [0]]),
        ("SELECT TOP 3 VALUE c.n FROM c", [[0, 1], [2]]),
        ("SELECT VALUE 1", [[1]]),
    ],
)
async def test_a_query_in_a_procedure_comes_in_pages(tmp_path: Path, query: str, pages: object) -> None:
    async with door_at_hand(tmp_path) as door:
        for number in range(5):
            await door.create(f"item-{number}", n=number)
        assert (await ran(door, IN_PAGES, query)).body == pages


async def test_a_query_of_a_script_has_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_operations, "_QUERY_SECONDS_MAX", 0.0)
    endless = """function () {
        __.queryDocuments(__.getSelfLink(), "SELECT VALUE SUM(c.n) FROM c", function (error) {
            __.response.setBody(error.number);
        });
    }"""
    async with door_at_hand(tmp_path) as door:
        await door.create("item", n=1)
        assert (await ran(door, endless)).body == 408


BY_SELF_LINK = """function (link) {
    var collection = getContext().getCollection();
    collection.readDocument(link, {}, function (error, found) {
        if (error) throw error;
        found.seen = true;
        collection.replaceDocument(found._self, found, { etag: found._etag }, function (error, replaced) {
            if (error) throw error;
            getContext().getResponse().setBody(replaced.seen);
        });
    });
}"""


async def test_a_procedure_reaches_items_by_their_self_links(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        made = await door.create("one")
        assert (await ran(door, BY_SELF_LINK, made["_self"])).body is True
        assert (await door.send("GET", f"{ITEMS}/one", headers=key("a"))).body["seen"] is True


async def test_a_procedure_that_handles_an_error_succeeds(tmp_path: Path) -> None:
    body = """function () {
        var collection = getContext().getCollection();
        collection.readDocument(collection.getAltLink() + "/docs/none", {}, function (error) {
            getContext().getResponse().setBody(error.number);
        });
    }"""
    async with door_at_hand(tmp_path) as door:
        assert (await ran(door, body)).body == 404


async def test_the_log_comes_back_when_it_is_asked_for(tmp_path: Path) -> None:
    body = 'function () { console.log("a line with %s", "ü & more"); }'
    async with door_at_hand(tmp_path) as door:
        logged = await ran(door, body, **{"x-ms-documentdb-script-enable-logging": "True"})
        assert "a line with ü & more" in unquote(logged.headers["x-ms-documentdb-script-log-results"])
        assert "x-ms-documentdb-script-log-results" not in (await ran(door, body)).headers


async def test_a_single_value_and_an_empty_body_are_parameters_too(tmp_path: Path) -> None:
    body = "function (one) { getContext().getResponse().setBody(typeof one); }"
    async with door_at_hand(tmp_path) as door:
        await ran(door, body)
        run = f"{CONTAINER}/sprocs/s"
        assert (await door.send("POST", run, {"x": 1}, headers=key("a"))).body == "object"
        assert (await door.send("POST", run, b"", headers=key("a"))).body == "undefined"


COUNT_UP = """function () {
    var collection = getContext().getCollection();
    collection.readDocument(collection.getAltLink() + "/docs/counter", {}, function (error, counter) {
        if (error) throw error;
        counter.n += 1;
        collection.replaceDocument(counter._self, counter, {}, function (error) { if (error) throw error; });
    });
}"""


async def test_procedures_that_overtake_each_other_lose_no_update(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("counter", n=0)
        await ran(door, COUNT_UP)
        run = f"{CONTAINER}/sprocs/s"
        answers = await asyncio.gather(*(door.send("POST", run, [], headers=key("a")) for _ in range(40)))
        assert [answer.status for answer in answers] == [200] * 40
        assert (await door.send("GET", f"{ITEMS}/counter", headers=key("a"))).body["n"] == 41


async def test_a_procedure_that_is_always_overtaken_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with door_at_hand(tmp_path) as door:
        container = door.world.store.container_for_items(ACCOUNT, "d", "c")

        async def overtaken(*_: object) -> None:
            raise ExpectationFailed(b"")

        monkeypatch.setattr(type(container), "commit", overtaken)
        assert (await ran(door, "function () {}")).status == 449


# --- triggers -------------------------------------------------------------------------------------------------------

SHOUT = """function () {
    var request = getContext().getRequest(), item = request.getBody();
    item.id = item.id.toUpperCase();
    item.heard = request.getOperationType();
    request.setBody(item);
}"""
COUNT_WRITES = """function () {
    var collection = getContext().getCollection(), written = getContext().getResponse().getBody();
    var note = { id: "note", pk: "a", of: written === null ? "delete" : written.id };
    collection.upsertDocument(collection.getSelfLink(), note, function (error) { if (error) throw error; });
}"""


async def test_a_pre_trigger_changes_the_item(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await put_trigger(door, "shout", SHOUT)
        made = await door.send("POST", ITEMS, {"id": "one", "pk": "a"}, headers={**key("a"), PRE: "shout"})
        assert made.status == 201
        assert (made.body["id"], made.body["heard"]) == ("ONE", "Create")
        assert await ids(door) == ["ONE"]


async def test_a_trigger_runs_only_when_it_is_named(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await put_trigger(door, "shout", SHOUT)
        await door.create("one")
        assert await ids(door) == ["one"]


async def test_a_post_trigger_writes_in_the_same_batch(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await put_trigger(door, "note", COUNT_WRITES, kind="Post")
        headers = {**key("a"), POST: "note"}
        made = await door.send("POST", ITEMS, {"id": "one", "pk": "a"}, headers=headers)
        note = await door.send("GET", f"{ITEMS}/note", headers=key("a"))
        assert note.body["of"] == "one"
        replaced = await door.send("PUT", f"{ITEMS}/one", {"id": "one", "pk": "a", "n": 1}, headers=headers)
        assert int(replaced.headers["lsn"]) == int(made.headers["lsn"]) + 1
        gone = await door.send("DELETE", f"{ITEMS}/one", headers=headers)
        assert gone.status == 204
        assert (await door.send("GET", f"{ITEMS}/note", headers=key("a"))).body["of"] == "delete"
        assert await ids(door) == ["note"]


@pytest.mark.parametrize("kind", ["Pre", "Post"])
async def test_a_trigger_that_throws_undoes_the_write(tmp_path: Path, kind: str) -> None:
    async with door_at_hand(tmp_path) as door:
        await put_trigger(door, "no", 'function () { throw new Error("not today"); }', kind=kind)
        headers = {**key("a"), PRE if kind == "Pre" else POST: "no"}
        refused = await door.send("POST", ITEMS, {"id": "one", "pk": "a"}, headers=headers)
        assert refused.status == 400
        assert "not today" in refused.body["message"]
        assert await ids(door) == []


@pytest.mark.parametrize(
    "headers", [{PRE: "for-deletes"}, {PRE: "none"}, {POST: "for-deletes"}, {PRE: "for-creates,for-deletes"}]
)
async def test_a_trigger_that_is_not_for_the_write_is_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    async with door_at_hand(tmp_path) as door:
        await put_trigger(door, "for-deletes", "function () {}", operation="Delete")
        await put_trigger(door, "for-creates", "function () {}", operation="Create")
        refused = await door.send("POST", ITEMS, {"id": "one", "pk": "a"}, headers={**key("a"), **headers})
        assert refused.status == 400
        assert await ids(door) == []


async def test_conditions_and_conflicts_hold_with_triggers(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await put_trigger(door, "quiet", "function () {}")
        await door.create("one")
        headers = {**key("a"), PRE: "quiet"}
        item = {"id": "one", "pk": "a"}
        assert (await door.send("POST", ITEMS, item, headers=headers)).status == 409
        stale = {**headers, "if-match": '"stale"'}
        assert (await door.send("PUT", f"{ITEMS}/one", item, headers=stale)).status == 412
        assert (await door.send("DELETE", f"{ITEMS}/two", headers=headers)).status == 404
        upserted = await door.send("POST", ITEMS, item, headers={**headers, "x-ms-documentdb-is-upsert": "True"})
        assert upserted.status == 200


# --- functions ------------------------------------------------------------------------------------------------------


async def test_a_function_filters_and_makes_results(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        body = "function (n) { return n === undefined ? undefined : n * 2; }"
        await door.send("POST", f"{CONTAINER}/udfs", script("udfs", "twice", body))
        await door.create("one", n=1)
        await door.create("two", pk="b", n=2)
        await door.create("none")
        found = await door.query("SELECT VALUE udf.twice(c.n) FROM c WHERE udf.twice(c.n) > 2", headers=CROSSING)
        assert found.body["Documents"] == [4]
        replaced = script("udfs", "twice", "function (n) { return n * 10; }")
        await door.send("PUT", f"{CONTAINER}/udfs/twice", replaced)
        found = await door.query("SELECT VALUE udf.twice(c.n) FROM c WHERE c.n = 2", headers=CROSSING)
        assert found.body["Documents"] == [20]


@pytest.mark.parametrize("query", ["SELECT VALUE udf.none(c.n) FROM c", "SELECT VALUE udf.bad(c.n) FROM c"])
async def test_a_function_that_is_not_there_or_fails_is_the_querys_error(tmp_path: Path, query: str) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.send("POST", f"{CONTAINER}/udfs", script("udfs", "bad", "function () { throw 'no'; }"))
        await door.create("one", n=1)
        assert (await door.query(query, headers=CROSSING)).status == 400


async def test_of_creates_that_a_script_queued_together_each_is_told_its_own_outcome(tmp_path: Path) -> None:
    body = """function (ids) {
        var collection = getContext().getCollection(), told = [];
        ids.forEach(function (id, place) {
            collection.createDocument(collection.getSelfLink(), {id: id, pk: "a"}, function (error, made) {
                told.push([place, error ? error.number : made.id]);
                getContext().getResponse().setBody(told);
            });
        });
    }"""
    async with door_at_hand(tmp_path) as door:
        whole = await ran(door, body, ["i1", "i2", "i3"])
        mixed = await ran(door, body, ["i4", "i1", "i5", "i5"])
        assert whole.body == [[0, "i1"], [1, "i2"], [2, "i3"]]
        assert mixed.body == [[0, "i4"], [1, 409], [2, "i5"], [3, 409]]
        assert await ids(door) == ["i1", "i2", "i3", "i4", "i5"]


async def test_a_procedure_reads_its_parameters_as_its_request_whatever_it_did_to_them(tmp_path: Path) -> None:
    body = """function (list) {
        list.push("more");
        getContext().getResponse().setBody(getContext().getRequest().getBody());
    }"""
    async with door_at_hand(tmp_path) as door:
        assert (await ran(door, body, ["one"], 2)).body == [["one"], 2]


@pytest.mark.parametrize(
    ("callback", "seen"),
    [
        ("function (error, made) { say(made.id); }", "i"),
        ("function (error) { say(arguments[1].id); }", "i"),
        ("function (error, made = null) { say(made.id); }", "i"),
        ("function (...told) { say(told[1].id); }", "i"),
        ("(function (error, made) { say(made.id); }).bind(null)", "i"),
        ("(error, made) => say(made.id)", "i"),
        ("function (error) { say(eval('argu' + 'ments')[1].id); }", "i"),
        ("function (error) { say(typeof error); }", "undefined"),
        ("error => say(typeof error)", "undefined"),
        ("() => say('called')", "called"),
    ],
)
async def test_a_callback_sees_the_document_however_it_asks_for_it(tmp_path: Path, callback: str, seen: str) -> None:
    body = f"""function () {{
        function say(what) {{ getContext().getResponse().setBody(what); }}
        var collection = getContext().getCollection();
        collection.createDocument(collection.getSelfLink(), {{id: "i", pk: "a"}}, {callback});
    }}"""
    async with door_at_hand(tmp_path) as door:
        assert (await ran(door, body)).body == seen

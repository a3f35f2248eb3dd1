"""Users, permissions and the tokens they hand out, in the protocol's words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest

from asterism.access.keys import AccountKeys
from asterism.access.resource_token import ResourceGrant, make_resource_token
from asterism.clock import SYSTEM_CLOCK
from tests.unit.nosql.door_at_hand import CROSSING, ITEMS, KEYS, Answer, DoorAtHand, door_at_hand, key

USERS = "dbs/d/users"
GRANTS = "dbs/d/users/u/permissions"
CONTAINER = "dbs/d/colls/c"
QUERY = {"x-ms-documentdb-isquery": "True"}
UPSERT = {"x-ms-documentdb-is-upsert": "True"}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as opened:
        assert (await opened.send("POST", USERS, {"id": "u"})).status == 201
        yield opened


async def grant(door: DoorAtHand, resource: str = CONTAINER, mode: str = "All", **more: object) -> dict[str, Any]:
    body = {
        "id": f"{mode} {resource.strip('/').replace('/', ' ')}",
        "permissionMode": mode,
        "resource": resource,
        **more,
    }
    answer = await door.send("POST", GRANTS, body)
    assert answer.status == 201
    return cast("dict[str, Any]", answer.body)


async def ask(
    door: DoorAtHand, token: str, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> Answer:
    sent = {**(headers or {}), "authorization": quote(token, safe="")}
    return await door.send(method, path, body, headers=sent)


async def test_a_user_is_created_read_renamed_listed_queried_and_deleted(door: DoorAtHand) -> None:
    made = await door.send("POST", USERS, {"id": "new user"})
    assert (made.body["id"], made.body["_permissions"]) == ("new user", "permissions/")
    assert (await door.send("POST", USERS, {"id": "new user"})).status == 409
    read = await door.send("GET", f"{USERS}/new user")
    assert read.body == made.body
    by_rid = await door.send("GET", made.body["_self"].strip("/"))
    assert by_rid.body == made.body
    renamed = await door.send("PUT", f"{USERS}/new user", {"id": "renamed"})
    assert (renamed.status, renamed.body["_rid"]) == (200, made.body["_rid"])
    assert (await door.send("GET", f"{USERS}/new user")).status == 404
    listed = await door.send("GET", USERS)
    assert [user["id"] for user in listed.body["Users"]] == ["renamed", "u"]
    question = {"query": "SELECT * FROM root r WHERE r.id = @id", "parameters": [{"name": "@id", "value": "u"}]}
    found = await door.send("POST", USERS, question, headers=QUERY)
    assert [user["id"] for user in found.body["Users"]] == ["u"]
    assert (await door.send("DELETE", f"{USERS}/renamed")).status == 204
    assert (await door.send("DELETE", f"{USERS}/renamed")).status == 404


async def test_an_upsert_creates_or_replaces(door: DoorAtHand) -> None:
    assert (await door.send("POST", USERS, {"id": "w"}, headers=UPSERT)).status == 201
    assert (await door.send("POST", USERS, {"id": "w"}, headers=UPSERT)).status == 200
    permission = {"id": "p", "permissionMode": "Read", "resource": CONTAINER}
    assert (await door.send("POST", GRANTS, permission, headers=UPSERT)).status == 201
    again = await door.send("POST", GRANTS, {**permission, "permissionMode": "all"}, headers=UPSERT)
    assert (again.status, again.body["permissionMode"]) == (200, "all")
    assert (await door.send("GET", GRANTS)).body["_count"] == 1


async def test_two_users_cannot_have_one_name(door: DoorAtHand) -> None:
    await door.send("POST", USERS, {"id": "w"})
    assert (await door.send("PUT", f"{USERS}/w", {"id": "u"})).status == 409


async def test_an_etag_guards_users_and_permissions(door: DoorAtHand) -> None:
    await grant(door)
    for path in (f"{USERS}/u", f"{GRANTS}/All dbs d colls c"):
        etag = (await door.send("GET", path)).headers["etag"]
        assert (await door.send("GET", path, headers={"if-none-match": etag})).status == 304
        assert (await door.send("DELETE", path, headers={"if-match": '"x"'})).status == 412


async def test_a_permission_is_created_read_replaced_and_deleted(door: DoorAtHand) -> None:
    made = await grant(door, resourcePartitionKey=["a"])
    assert (made["resource"], made["resourcePartitionKey"]) == (CONTAINER, ["a"])
    assert made["_token"].startswith("type=resource&ver=1.0&sig=")
    path = f"{GRANTS}/{made['id']}"
    assert (await door.send("GET", path)).body["_rid"] == made["_rid"]
    assert (await door.send("GET", made["_self"].strip("/"))).body["id"] == made["id"]
    replaced = await door.send("PUT", path, {"id": "p", "permissionMode": "Read", "resource": CONTAINER})
    assert (replaced.status, replaced.body["permissionMode"]) == (200, "Read")
    assert (await door.send("DELETE", f"{GRANTS}/p")).status == 204
    assert (await door.send("GET", f"{GRANTS}/p")).status == 404


async def test_permissions_go_with_their_user_and_users_with_their_database(door: DoorAtHand) -> None:
    await grant(door)
    await door.send("DELETE", f"{USERS}/u")
    assert (await door.send("GET", GRANTS)).status == 404
    await door.send("POST", USERS, {"id": "u"})
    assert (await door.send("GET", GRANTS)).body["Permissions"] == []
    await grant(door)
    await door.send("DELETE", "dbs/d")
    await door.send("POST", "dbs", {"id": "d"})
    assert (await door.send("GET", USERS)).body["Users"] == []


@pytest.mark.parametrize(
    "change",
    [
        {"permissionMode": "Write"},
        {"permissionMode": None},
        {"resource": None},
        {"resource": "dbs/d"},
        {"resource": "colls/c"},
        {"resourcePartitionKey": "a"},
        {"resourcePartitionKey": []},
        {"id": ""},
    ],
)
async def test_a_malformed_permission_is_refused(door: DoorAtHand, change: dict[str, object]) -> None:
    body = {"id": "p", "permissionMode": "All", "resource": CONTAINER, **change}
    assert (await door.send("POST", GRANTS, body)).status == 400


@pytest.mark.parametrize(("seconds", "status"), [("10", 201), ("18000", 201), ("9", 400), ("18001", 400), ("x", 400)])
async def test_a_token_lives_ten_seconds_to_five_hours(door: DoorAtHand, seconds: str, status: int) -> None:
    body = {"id": "p", "permissionMode": "All", "resource": CONTAINER}
    headers = {"x-ms-documentdb-expiry-seconds": seconds}
    assert (await door.send("POST", GRANTS, body, headers=headers)).status == status


async def test_a_token_for_a_container_reaches_all_in_it(door: DoorAtHand) -> None:
    token = (await grant(door))["_token"]
    assert (await ask(door, token, "POST", ITEMS, {"id": "a", "pk": "x"}, key("x"))).status == 201
    assert (await ask(door, token, "GET", f"{ITEMS}/a", headers=key("x"))).status == 200
    assert (await ask(door, token, "GET", ITEMS)).status == 200
    assert (await ask(door, token, "GET", ITEMS, headers={"a-im": "Incremental Feed"})).status == 200
    question = await ask(door, token, "POST", ITEMS, {"query": "SELECT * FROM c"}, {**QUERY, **CROSSING})
    assert question.status == 200
    assert (await ask(door, token, "GET", f"{CONTAINER}/pkranges")).status == 200
    assert (await ask(door, token, "DELETE", f"{ITEMS}/a", headers=key("x"))).status == 204


async def test_a_token_by_resource_ids_is_good_for_names_and_the_other_way_round(door: DoorAtHand) -> None:
    container = (await door.send("GET", CONTAINER)).body
    by_rid = (await grant(door, container["_self"]))["_token"]
    by_name = (await grant(door))["_token"]
    assert (await ask(door, by_rid, "GET", ITEMS)).status == 200
    assert (await ask(door, by_name, "GET", f"{container['_self']}docs")).status == 200


async def test_any_token_reads_the_account(door: DoorAtHand) -> None:
    token = (await grant(door, f"{CONTAINER}/docs/a", "Read"))["_token"]
    assert (await door.send_as_it_is("GET", "/", {"authorization": quote(token, safe="")})).status == 200


async def test_a_token_for_reading_writes_nothing(door: DoorAtHand) -> None:
    await door.create("a", "x")
    token = (await grant(door, mode="Read"))["_token"]
    assert (await ask(door, token, "GET", f"{ITEMS}/a", headers=key("x"))).status == 200
    for method, path, body in (
        ("POST", ITEMS, {"id": "b", "pk": "x"}),
        ("PUT", f"{ITEMS}/a", {"id": "a", "pk": "x"}),
        ("DELETE", f"{ITEMS}/a", None),
        ("PUT", CONTAINER, {"id": "c"}),
        ("DELETE", CONTAINER, None),
    ):
        assert (await ask(door, token, method, path, body, key("x"))).status == 403


@pytest.mark.parametrize("header", ["x-ms-documentdb-isquery", "x-ms-cosmos-is-query-plan-request"])
async def test_a_write_that_calls_itself_a_query_is_still_a_write(door: DoorAtHand, header: str) -> None:
    await door.create("a", "x")
    token = (await grant(door, mode="Read"))["_token"]
    headers = {**key("x"), header: "True"}
    assert (await ask(door, token, "DELETE", f"{ITEMS}/a", headers=headers)).status == 403
    by_key = await door.send("DELETE", f"{ITEMS}/a", headers=headers, signing_key=KEYS.primary_readonly)
    assert by_key.status == 403


async def test_a_token_for_an_item_reaches_that_item_and_the_way_to_it(door: DoorAtHand) -> None:
    await door.create("a", "x")
    await door.create("b", "x")
    token = (await grant(door, f"{ITEMS}/a"))["_token"]
    assert (await ask(door, token, "GET", CONTAINER)).status == 200
    assert (await ask(door, token, "GET", f"{CONTAINER}/pkranges")).status == 200
    assert (await ask(door, token, "GET", f"{ITEMS}/b", headers=key("x"))).status == 403
    assert (await ask(door, token, "GET", ITEMS)).status == 403
    assert (await ask(door, token, "DELETE", CONTAINER)).status == 403
    assert (await ask(door, token, "DELETE", f"{ITEMS}/a", headers=key("x"))).status == 204


async def test_a_token_bound_to_a_partition_key_reaches_only_that_key(door: DoorAtHand) -> None:
    await door.create("a", "x")
    await door.create("a", "y")
    token = (await grant(door, resourcePartitionKey=["x"]))["_token"]
    assert (await ask(door, token, "GET", CONTAINER)).status == 200
    assert (await ask(door, token, "GET", f"{ITEMS}/a", headers=key("x"))).status == 200
    assert (await ask(door, token, "GET", f"{ITEMS}/a", headers=key("y"))).status == 403
    assert (await ask(door, token, "POST", ITEMS, {"id": "b", "pk": "y"}, key("y"))).status == 403
    assert (await ask(door, token, "POST", ITEMS, {"id": "b", "pk": "x"})).status == 403
    assert (await ask(door, token, "POST", ITEMS, {"id": "b", "pk": "y"}, key("x"))).status == 400
    assert (await ask(door, token, "GET", ITEMS)).status == 403
    assert (await ask(door, token, "DELETE", CONTAINER)).status == 403


async def test_a_bulk_request_cannot_slip_another_key_past_a_token(door: DoorAtHand) -> None:
    token = (await grant(door, resourcePartitionKey=["x"]))["_token"]
    other = {"operationType": "Create", "partitionKey": '["y"]', "resourceBody": {"id": "b", "pk": "y"}}
    headers = {**key("x"), "x-ms-cosmos-is-batch-request": "True"}
    assert (await ask(door, token, "POST", ITEMS, [other], headers)).status == 403
    atomic = {**headers, "x-ms-cosmos-batch-atomic": "True"}
    same = {"operationType": "Create", "resourceBody": {"id": "b", "pk": "x"}}
    assert (await ask(door, token, "POST", ITEMS, [same], atomic)).status == 200
    await ask(door, token, "POST", ITEMS, [other], atomic)
    assert (await door.send("GET", f"{ITEMS}/b", headers=key("y"))).status == 404


async def test_a_token_reaches_only_its_own_resource(door: DoorAtHand) -> None:
    await door.send("POST", "dbs/d/colls", {"id": "other", "partitionKey": {"paths": ["/pk"]}})
    token = (await grant(door))["_token"]
    for path in ("dbs", "dbs/d", "dbs/d/colls", "dbs/d/colls/other", "dbs/d/colls/other/docs", USERS, GRANTS, "offers"):
        assert (await ask(door, token, "GET", path)).status == 403


async def test_a_token_that_is_expired_or_foreign_is_refused(door: DoorAtHand) -> None:
    now = int(SYSTEM_CLOCK.wall_seconds())
    over = make_resource_token(KEYS, ResourceGrant(CONTAINER, False, None, now - 1))
    foreign = make_resource_token(
        AccountKeys.complete(primary="b3RoZXIga2V5"), ResourceGrant(CONTAINER, False, None, now + 100)
    )
    assert (await ask(door, over, "GET", ITEMS)).status == 403
    assert (await ask(door, foreign, "GET", ITEMS)).status == 401
    assert (await ask(door, "type=resource&ver=1.0&sig=x", "GET", ITEMS)).status == 401


async def test_a_read_only_key_cannot_read_permissions(door: DoorAtHand) -> None:
    made = await grant(door)
    question = {"query": "SELECT * FROM c"}
    for method, path, body, headers in (
        ("GET", GRANTS, None, {}),
        ("POST", GRANTS, question, QUERY),
        ("GET", f"{GRANTS}/{made['id']}", None, {}),
        ("GET", made["_self"].strip("/"), None, {}),
        ("DELETE", f"{GRANTS}/{made['id']}", None, {}),
    ):
        for readonly in (KEYS.primary_readonly, KEYS.secondary_readonly):
            refused = await door.send(method, path, body, headers=headers, signing_key=readonly)
            assert (refused.status, refused.body["code"]) == (403, "Forbidden")
            assert "_token" not in str(refused.body)
    assert (await door.send("GET", USERS, signing_key=KEYS.primary_readonly)).status == 200


async def test_a_read_only_key_can_ask_for_plans_and_cannot_run_procedures(door: DoorAtHand) -> None:
    procedures = f"{CONTAINER}/sprocs"
    await door.send("POST", procedures, {"id": "s", "body": "function () {}"})
    readonly = KEYS.primary_readonly
    question = {"query": "SELECT * FROM c ORDER BY c.n"}
    plan = {"x-ms-cosmos-is-query-plan-request": "True"}
    for headers in (plan, {**plan, **QUERY}, {**plan, "x-ms-cosmos-is-batch-request": "True"}):
        answer = await door.send("POST", ITEMS, question, headers=headers, signing_key=readonly)
        assert (answer.status, "queryInfo" in answer.body) == (200, True)
    for headers in ({}, QUERY, plan):
        run = await door.send("POST", f"{procedures}/s", [], headers={**key("a"), **headers}, signing_key=readonly)
        assert run.status == 403


async def test_a_token_ends_with_its_permission_or_its_user(door: DoorAtHand) -> None:
    made = await grant(door)
    assert (await ask(door, made["_token"], "GET", ITEMS)).status == 200
    await door.send("DELETE", f"{GRANTS}/{made['id']}")
    assert (await ask(door, made["_token"], "GET", ITEMS)).status == 403
    again = await grant(door)
    assert (await ask(door, made["_token"], "GET", ITEMS)).status == 403
    await door.send("DELETE", f"{USERS}/u")
    assert (await ask(door, again["_token"], "GET", ITEMS)).status == 403


@pytest.mark.parametrize(
    ("change", "reads", "writes"),
    [
        ({}, 200, 201),
        ({"id": "renamed"}, 200, 201),
        ({"permissionMode": "Read"}, 403, 403),
        ({"resource": "dbs/d/colls/other"}, 403, 403),
        ({"resourcePartitionKey": ["x"]}, 403, 403),
    ],
)
async def test_a_token_grants_only_what_its_permission_still_does(
    door: DoorAtHand, change: dict[str, object], reads: int, writes: int
) -> None:
    made = await grant(door)
    body = {"id": made["id"], "permissionMode": "all", "resource": CONTAINER, **change}
    assert (await door.send("PUT", f"{GRANTS}/{made['id']}", body)).status == 200
    assert (await ask(door, made["_token"], "GET", ITEMS)).status == reads
    assert (await ask(door, made["_token"], "POST", ITEMS, {"id": "a", "pk": "x"}, key("x"))).status == writes


async def test_a_token_for_reading_stays_good_when_its_permission_grants_more(door: DoorAtHand) -> None:
    made = await grant(door, mode="Read")
    body = {"id": made["id"], "permissionMode": "All", "resource": CONTAINER}
    await door.send("PUT", f"{GRANTS}/{made['id']}", body)
    assert (await ask(door, made["_token"], "GET", ITEMS)).status == 200
    assert (await ask(door, made["_token"], "POST", ITEMS, {"id": "a", "pk": "x"}, key("x"))).status == 403


@pytest.mark.parametrize("path", [CONTAINER, f"{ITEMS}/a"])
async def test_a_token_is_not_good_for_another_container_of_the_same_name(door: DoorAtHand, path: str) -> None:
    token = (await grant(door, path))["_token"]
    early = (await grant(door, path.replace("colls/c", "colls/later")))["_token"]
    await door.send("DELETE", CONTAINER)
    assert (await ask(door, token, "GET", CONTAINER)).status == 404
    for name in ("c", "later"):
        settings = {"id": name, "partitionKey": {"paths": ["/pk"]}}
        assert (await door.send("POST", "dbs/d/colls", settings)).status == 201
    await door.create("a", "x")
    for method, asked in (("GET", CONTAINER), ("GET", f"{ITEMS}/a"), ("GET", f"{CONTAINER}/pkranges")):
        assert (await ask(door, token, method, asked, headers=key("x"))).status == 403
    assert (await ask(door, early, "GET", "dbs/d/colls/later")).status == 403
    (fresh,) = [
        permission
        for permission in (await door.send("GET", GRANTS)).body["Permissions"]
        if permission["resource"] == path
    ]
    assert (await ask(door, fresh["_token"], "GET", f"{ITEMS}/a", headers=key("x"))).status == 200


async def test_a_token_for_an_item_by_resource_id_is_good_for_its_name_and_the_other_way_round(
    door: DoorAtHand,
) -> None:
    item, other = await door.create("a", "x"), await door.create("b", "x")
    by_rid = (await grant(door, item["_self"]))["_token"]
    by_name = (await grant(door, f"{ITEMS}/a"))["_token"]
    own_links = (f"{ITEMS}/a", item["_self"].strip("/"))
    for token in (by_rid, by_name):
        for link in own_links:
            read = await ask(door, token, "GET", link, headers=key("x"))
            assert (read.status, read.body["id"]) == (200, "a")
        for link in (f"{ITEMS}/b", other["_self"].strip("/"), f"{ITEMS}/none", f"{item['_self'].strip('/')[:-3]}AA="):
            assert (await ask(door, token, "GET", link, headers=key("x"))).status == 403
        assert (await ask(door, token, "GET", f"{ITEMS}/a", headers=key("y"))).status != 200
    assert (await ask(door, by_rid, "PUT", f"{ITEMS}/a", {"id": "a", "pk": "x", "n": 1}, key("x"))).status == 200
    assert (await ask(door, by_name, "DELETE", item["_self"].strip("/"), headers=key("x"))).status == 204
    assert (await ask(door, by_rid, "GET", f"{ITEMS}/a", headers=key("x"))).status == 403


async def test_a_token_for_a_script_is_good_for_its_name_and_its_resource_id(door: DoorAtHand) -> None:
    for name in ("s", "other"):
        made = await door.send("POST", f"{CONTAINER}/sprocs", {"id": name, "body": "function () {}"})
        assert made.status == 201
    script = (await door.send("GET", f"{CONTAINER}/sprocs/s")).body
    for resource in (f"{CONTAINER}/sprocs/s", script["_self"]):
        token = (await grant(door, resource))["_token"]
        for link in (f"{CONTAINER}/sprocs/s", script["_self"].strip("/")):
            assert (await ask(door, token, "GET", link)).status == 200
        assert (await ask(door, token, "GET", f"{CONTAINER}/sprocs/other")).status == 403
        assert (await ask(door, token, "GET", f"{CONTAINER}/sprocs/none")).status == 403


async def test_a_token_for_all_of_a_container_deletes_the_container(door: DoorAtHand) -> None:
    """The service's .NET client asserts so (ContainerResourcePermissionTest): All is read, write and delete."""
    token = (await grant(door))["_token"]
    assert (await ask(door, token, "DELETE", CONTAINER)).status == 204


async def test_a_permission_may_name_a_container_that_is_not_there(door: DoorAtHand) -> None:
    token = (await grant(door, "dbs/d/colls/gone"))["_token"]
    assert (await ask(door, token, "GET", "dbs/d/colls/gone")).status == 404
    assert (await ask(door, token, "GET", ITEMS)).status == 403

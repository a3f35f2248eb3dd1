"""Tables and entities, as requests and answers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.table.table_door_at_hand import DoorAtHand, entity_path, open_door, rows


@pytest.fixture
async def door() -> AsyncIterator[DoorAtHand]:
    async with open_door() as at_hand:
        await at_hand.create()
        yield at_hand


async def test_tables_are_created_listed_and_deleted_in_any_case(door: DoorAtHand) -> None:
    await door.create("Customers")
    assert (await door.send("POST", "Tables", {"TableName": "customers"})).code == "TableAlreadyExists"
    listed = await door.send("GET", "Tables")
    assert [row["TableName"] for row in listed.json["value"]] == ["Customers", "orders"]
    assert (await door.send("DELETE", "Tables('CUSTOMERS')")).status == 204
    assert (await door.send("DELETE", "Tables('customers')")).code == "ResourceNotFound"


async def test_tables_are_listed_in_pages_and_through_a_filter(door: DoorAtHand) -> None:
    for name in ("aaa", "bbb", "ccc"):
        await door.create(name)
    page = await door.send("GET", "Tables", query="$top=3")
    assert [row["TableName"] for row in page.json["value"]] == ["aaa", "bbb", "ccc"]
    token = page.headers["x-ms-continuation-NextTableName"]
    rest = await door.send("GET", "Tables", query=f"NextTableName={token}")
    assert [row["TableName"] for row in rest.json["value"]] == ["orders"]
    found = await door.send("GET", "Tables", query="$filter=TableName%20gt%20'b'%20and%20TableName%20lt%20'o'")
    assert [row["TableName"] for row in found.json["value"]] == ["bbb", "ccc"]


async def test_a_filter_over_many_tables_walks_them_once(door: DoorAtHand, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    every = [f"many{number:05}" for number in range(3500)]

    async def list_tables(_: str, after: str | None, limit: int) -> list[str]:
        asked.append(after)
        return [name for name in every if after is None or name > after][:limit]

    monkeypatch.setattr(door.store, "list_tables", list_tables)
    found = await door.send("GET", "Tables", query="$filter=TableName%20eq%20'many03400'")
    assert [row["TableName"] for row in found.json["value"]] == ["many03400"]
    assert asked == [None]
    page = await door.send("GET", "Tables")
    assert (len(page.json["value"]), len(asked)) == (1000, 2)


async def test_a_create_answers_the_table_or_nothing_as_preferred(door: DoorAtHand) -> None:
    plain = await door.send("POST", "Tables", {"TableName": "one"})
    assert "preference-applied" not in plain.headers
    assert plain.json["TableName"] == "one"
    quiet = await door.send("POST", "Tables", {"TableName": "two"}, headers={"prefer": "return-no-content"})
    assert (quiet.status, quiet.body, quiet.headers["preference-applied"]) == (204, b"", "return-no-content")


async def test_an_insert_answers_the_entity_with_its_etag(door: DoorAtHand) -> None:
    answer = await door.insert(a=1)
    assert answer.status == 201
    assert answer.json["odata.etag"] == answer.headers["etag"]
    assert answer.json["odata.metadata"].endswith("/$metadata#orders/@Element")
    assert answer.json["a"] == 1
    assert (await door.insert()).code == "EntityAlreadyExists"


async def test_an_update_needs_the_entity_and_an_upsert_does_not(door: DoorAtHand) -> None:
    missing = await door.send("PUT", entity_path(), {"a": 1}, headers={"if-match": "*"})
    assert missing.code == "ResourceNotFound"
    assert (await door.send("PUT", entity_path(), {"a": 1, "b": 2})).status == 204
    assert (await door.send("PATCH", entity_path(), {"a": 3})).status == 204
    assert {name: (await door.get())[name] for name in "ab"} == {"a": 3, "b": 2}
    assert (await door.send("MERGE", entity_path(), {"c": 4}, headers={"if-match": "*"})).status == 204
    assert (await door.send("PUT", entity_path(), {"a": 5})).status == 204
    assert "b" not in await door.get()


async def test_a_post_may_stand_for_a_merge(door: DoorAtHand) -> None:
    await door.insert(a=1)
    answer = await door.send("POST", entity_path(), {"b": 2}, headers={"x-http-method": "MERGE"})
    assert answer.status == 204
    assert (await door.get())["b"] == 2
    wrong = await door.send("POST", entity_path(), {"b": 2}, headers={"x-http-method": "TRACE"})
    assert wrong.code == "XMethodIncorrectValue"


async def test_conditions_compare_etags(door: DoorAtHand) -> None:
    etag = (await door.insert()).headers["etag"]
    changed = await door.send("PUT", entity_path(), {}, headers={"if-match": etag})
    assert changed.status == 204
    assert changed.headers["etag"] > etag
    for method in ("PUT", "PATCH", "DELETE"):
        stale = await door.send(method, entity_path(), {} if method != "DELETE" else None, headers={"if-match": etag})
        assert (stale.status, stale.code) == (412, "UpdateConditionNotSatisfied")
    malformed = await door.send("PUT", entity_path(), {}, headers={"if-match": "nonsense"})
    assert malformed.code == "InvalidInput"
    assert (await door.send("DELETE", entity_path())).code == "MissingRequiredHeader"
    assert (await door.send("DELETE", entity_path(), headers={"if-match": changed.headers["etag"]})).status == 204
    assert await door.get() is None


async def test_the_keys_of_the_url_win_over_those_of_the_body(door: DoorAtHand) -> None:
    entity = {"PartitionKey": 5, "RowKey": "other", "RowKey@odata.type": "Edm.Int64", "a": 1}
    assert (await door.send("PUT", entity_path(), entity)).status == 204
    assert (await door.get())["RowKey"] == "r"


async def test_an_insert_needs_both_keys_as_texts(door: DoorAtHand) -> None:
    assert (await door.send("POST", "orders", {"PartitionKey": "p"})).code == "PropertiesNeedValue"
    assert (await door.send("POST", "orders", {"PartitionKey": "p", "RowKey": 5})).code == "InvalidInput"
    typed = {"PartitionKey": "p", "RowKey": "5", "RowKey@odata.type": "Edm.Int64"}
    assert (await door.send("POST", "orders", typed)).code == "InvalidInput"
    assert (await door.send("POST", "orders", {"PartitionKey": "", "RowKey": ""})).status == 201


@pytest.mark.parametrize("key", ["a/b", "a\\b", "a#b", "a?b", "a\nb", "a\x80b"])
async def test_keys_with_forbidden_characters_are_refused_and_nothing_is_written(door: DoorAtHand, key: str) -> None:
    assert (await door.insert(key)).code == "OutOfRangeInput"
    in_url = await door.send("PUT", entity_path(key), {})
    assert in_url.code == ("InvalidInput" if key in ("a/b", "a\\b") else "OutOfRangeInput")
    assert rows(await door.query()) == []


@pytest.mark.parametrize("key", ["it's", "50%", "a+b", 'say "hi"', "é\U0001f600", "(x=1,y)", " "])
async def test_any_other_character_is_fine_in_a_key(door: DoorAtHand, key: str) -> None:
    assert (await door.insert(key, key)).status == 201
    quoted = key.replace("'", "''")
    answer = await door.send("GET", entity_path(quoted, quoted))
    assert (answer.json["PartitionKey"], answer.json["RowKey"]) == (key, key)


async def test_metadata_levels_are_asked_for_by_accept_or_format(door: DoorAtHand) -> None:
    await door.insert()
    bare = await door.send("GET", entity_path(), headers={"accept": "application/json;odata=nometadata"})
    assert "odata.etag" not in bare.json
    full = await door.send("GET", entity_path(), query="$format=application/json;odata=fullmetadata")
    assert "odata.editLink" in full.json
    assert full.headers["content-type"].startswith("application/json;odata=fullmetadata")
    atom = await door.send("GET", entity_path(), headers={"accept": "application/atom+xml"})
    assert (atom.status, atom.code) == (415, "AtomFormatNotSupported")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "nothing()"),
        ("POST", "nothing"),
        ("GET", entity_path(table="nothing")),
        ("PUT", entity_path(table="nothing")),
        ("POST", "nothing/Tables"),
    ],
)
async def test_a_missing_table_is_told_so(door: DoorAtHand, method: str, path: str) -> None:
    answer = await door.send(method, path, {"PartitionKey": "p", "RowKey": "r"})
    assert (answer.status, answer.code) == (404, "TableNotFound")


@pytest.mark.parametrize(
    ("method", "path", "query", "status", "code"),
    [
        ("POST", "orders/Tables", "", 400, "PropertiesNeedValue"),
        ("DELETE", "orders/Tables('orders')", "", 400, "InvalidInput"),
        ("GET", "orders/", "restype=service&comp=properties", 400, "InvalidQueryParameterValue"),
        ("POST", "orders/$batch", "", 415, "MediaTypeNotSupported"),
        ("PUT", "Tables", "", 405, "MethodNotAllowed"),
        ("PATCH", "orders", "", 405, "MethodNotAllowed"),
        ("GET", "orders", "comp=nonsense", 400, "InvalidQueryParameterValue"),
        ("GET", "a_b()", "", 400, "InvalidResourceName"),
        ("GET", "ab()", "", 400, "OutOfRangeInput"),
        ("GET", "orders(x)", "", 400, "InvalidInput"),
    ],
)
async def test_an_address_that_means_nothing_is_refused_with_the_services_code(
    door: DoorAtHand, method: str, path: str, query: str, status: int, code: str
) -> None:
    answer = await door.send(method, path, {}, query=query)
    assert (answer.status, answer.code) == (status, code)


async def test_a_body_beyond_4_mebibytes_is_refused(door: DoorAtHand) -> None:
    answer = await door.send("POST", "orders", b"x" * (4 * 1024 * 1024 + 1))
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")


async def test_every_answer_echoes_the_version_and_the_clients_request_id(door: DoorAtHand) -> None:
    headers_sent = {"x-ms-version": "2099-01-01", "x-ms-client-request-id": "mine"}
    for path in ("Tables", "missing()"):
        answer = await door.send("GET", path, headers=headers_sent)
        assert (answer.headers["x-ms-version"], answer.headers["x-ms-client-request-id"]) == ("2099-01-01", "mine")
        assert answer.headers["x-ms-request-id"]


async def test_a_form_that_cannot_be_answered_in_is_refused_before_anything_is_made(door: DoorAtHand) -> None:
    atom = {"accept": "application/atom+xml"}
    entity = {"PartitionKey": "p", "RowKey": "r"}
    assert (await door.send("POST", "orders", entity, headers=atom)).code == "AtomFormatNotSupported"
    assert rows(await door.query()) == []
    assert (await door.send("POST", "Tables", {"TableName": "another"}, headers=atom)).code == "AtomFormatNotSupported"
    assert (await door.send("GET", "Tables('another')")).code == "ResourceNotFound"

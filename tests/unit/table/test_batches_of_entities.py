"""Entity group transactions at the door."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from asterism.errors import TooMuchContention
from asterism.models.tables.table import Table
from tests.unit.table.table_door_at_hand import (
    ACCOUNT,
    HOST,
    Answer,
    DoorAtHand,
    change_set,
    entity_path,
    insertion,
    open_door,
    rows,
    upsert,
)


@pytest.fixture
async def door() -> AsyncIterator[DoorAtHand]:
    async with open_door() as at_hand:
        await at_hand.create()
        await at_hand.insert("p", "there", a=1)
        yield at_hand


async def send(door: DoorAtHand, *operations: str) -> Answer:
    body, headers = change_set(*operations)
    return await door.send("POST", "$batch", body, headers=headers)


def failure(answer: Answer) -> tuple[int, str, str]:
    """Status, code and index of the one part of a batch that failed."""
    assert answer.status == 202
    assert answer.body.count(b"HTTP/1.1 ") == 1
    _, _, part = answer.body.partition(b"HTTP/1.1 ")
    code = part.partition(b'"code":"')[2].partition(b'"')[0].decode()
    index = part.partition(b'"value":"')[2].partition(b":")[0].decode()
    return int(part[:3]), code, index


async def test_every_kind_of_write_goes_together(door: DoorAtHand) -> None:
    await door.insert("p", "doomed")
    answer = await send(
        door,
        insertion("p", "new"),
        upsert("p", "put", '{"x":1}'),
        f"PATCH http://{HOST}/{entity_path('p', 'there')} HTTP/1.1\r\nIf-Match: *\r\n\r\n" + '{"b":2}',
        f"DELETE http://{HOST}/{entity_path('p', 'doomed')} HTTP/1.1\r\nIf-Match: *\r\n\r\n",
        f"POST http://{HOST}/{entity_path('p', 'merged')} HTTP/1.1\r\nX-HTTP-Method: MERGE\r\n\r\n" + '{"c":3}',
    )
    assert answer.status == 202
    assert answer.headers["content-type"].startswith("multipart/mixed; boundary=batchresponse_")
    statuses = [part[:3] for part in answer.body.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"201", b"204", b"204", b"204", b"204"]
    assert rows(await door.query()) == [("p", "merged"), ("p", "new"), ("p", "put"), ("p", "there")]
    assert (await door.get("p", "there"))["b"] == 2


@pytest.mark.parametrize(
    ("operations", "status", "code", "index"),
    [
        ([upsert("p", "x"), insertion("p", "there")], 409, "EntityAlreadyExists", "1"),
        ([upsert("p", "x"), upsert("p", "y"), upsert("q", "z")], 400, "CommandsInBatchActOnDifferentPartitions", "2"),
        ([upsert("p", "x"), upsert("p", "x")], 400, "InvalidDuplicateRow", "1"),
        ([upsert("p", "x"), upsert("p", "y", '{"1a":1}')], 400, "PropertyNameInvalid", "1"),
        ([upsert("p", "x"), upsert("p", "y", "{")], 400, "InvalidInput", "1"),
        ([upsert("p", "x"), upsert("p", "a#b")], 400, "OutOfRangeInput", "1"),
        ([upsert("p", str(number)) for number in range(101)], 400, "InvalidInput", "0"),
        ([upsert("p", "x"), f"GET http://{HOST}/{entity_path()} HTTP/1.1\r\n\r\n"], 400, "InvalidInput", "1"),
        (
            [upsert("p", "x"), f"PUT http://{HOST}/{entity_path('p', 'y')} HTTP/1.1\r\nIf-Match: *\r\n\r\n{{}}"],
            404,
            "ResourceNotFound",
            "1",
        ),
        ([f"PUT http://{HOST}/{entity_path(table='nothing')} HTTP/1.1\r\n\r\n{{}}"], 404, "TableNotFound", "0"),
    ],
)
async def test_a_failure_tells_its_index_and_leaves_nothing_behind(
    door: DoorAtHand, operations: list[str], status: int, code: str, index: str
) -> None:
    assert failure(await send(door, *operations)) == (status, code, index)
    assert rows(await door.query()) == [("p", "there")]


async def test_an_empty_change_set_is_refused_as_a_whole(door: DoorAtHand) -> None:
    answer = await send(door)
    assert (answer.status, answer.code) == (400, "InvalidInput")


async def test_a_batch_beyond_4_mebibytes_is_refused_as_a_whole(door: DoorAtHand) -> None:
    large = '{"a":"' + "x" * 30000 + '"}'
    operations = [upsert("p", str(number), large[:-2] + '","b":"' + "y" * 30000 + '"}') for number in range(80)]
    answer = await send(door, *operations)
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")


async def test_a_batch_that_is_cut_is_refused_and_leaves_nothing_behind(door: DoorAtHand) -> None:
    body, headers = change_set(upsert("p", "x"), upsert("p", "y"))
    for length in range(0, len(body) - 20, 40):
        answer = await door.send("POST", "$batch", body[:length], headers=headers)
        assert (answer.status, answer.code) == (400, "InvalidInput")
    assert rows(await door.query()) == [("p", "there")]


async def test_an_insert_answers_as_its_part_prefers(door: DoorAtHand) -> None:
    quiet = insertion("p", "quiet").replace("\r\n\r\n", "\r\nPrefer: return-no-content\r\n\r\n", 1)
    answer = await send(door, quiet, insertion("p", "told"))
    first, second = answer.body.split(b"HTTP/1.1 ")[1:]
    assert first.startswith(b"204")
    assert b"preference-applied: return-no-content" in first.lower()
    assert second.startswith(b"201")
    assert b'"RowKey":"told"' in second


async def test_a_batch_may_hold_one_read(door: DoorAtHand) -> None:
    request = f"GET http://{HOST}/{ACCOUNT}/{entity_path('p', 'there')} HTTP/1.1\r\n\r\n"
    body = f"--batch_1\r\nContent-Type: application/http\r\n\r\n{request}\r\n--batch_1--\r\n"
    answer = await door.send(
        "POST", "$batch", body.encode(), headers={"content-type": "multipart/mixed; boundary=batch_1"}
    )
    assert b"HTTP/1.1 200 OK" in answer.body
    assert b'"RowKey":"there"' in answer.body


async def test_operations_may_name_their_table_in_any_case(door: DoorAtHand) -> None:
    answer = await send(door, insertion("p", "a"), insertion("p", "b").replace("/orders", "/ORDERS"))
    assert answer.body.count(b"HTTP/1.1 201") == 2
    assert rows(await door.query()) == [("p", "a"), ("p", "b"), ("p", "there")]


async def test_a_form_that_cannot_be_answered_in_is_refused_before_anything_is_written(door: DoorAtHand) -> None:
    atom = insertion("p", "b").replace("Content-Type:", "Accept: application/atom+xml\r\nContent-Type:")
    assert failure(await send(door, insertion("p", "a"), atom)) == (415, "AtomFormatNotSupported", "1")
    assert rows(await door.query()) == [("p", "there")]


async def test_a_server_that_cannot_says_so_in_the_answer_itself(
    door: DoorAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise TooMuchContention

    monkeypatch.setattr(Table, "apply", refuse)
    answer = await send(door, insertion("p", "a"))
    assert (answer.status, answer.code) == (503, "ServerBusy")

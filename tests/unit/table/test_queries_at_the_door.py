"""Queries: pages, filters, tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from asterism.models.tables.table import Table
from tests.unit.table.table_door_at_hand import Answer, DoorAtHand, open_door, rows


@pytest.fixture
async def door() -> AsyncIterator[DoorAtHand]:
    async with open_door() as at_hand:
        await at_hand.create()
        for partition_key in "abc":
            for row_key in "123":
                await at_hand.insert(partition_key, row_key, n=int(row_key), s=partition_key)
        yield at_hand


ALL = [(partition_key, row_key) for partition_key in "abc" for row_key in "123"]


def token_of(answer: Answer) -> str:
    names = ("NextPartitionKey", "NextRowKey")
    return "&".join(f"{name}={answer.headers[f'x-ms-continuation-{name}']}" for name in names)


async def everything(door: DoorAtHand, query: str) -> tuple[list[tuple[str, str]], int]:
    """All rows of a query, and in how many pages they came."""
    found, pages, token = [], 0, ""
    while True:
        answer = await door.send("GET", "orders()", query=f"{query}&{token}")
        assert answer.status == 200
        found += rows(answer)
        pages += 1
        if "x-ms-continuation-NextPartitionKey" not in answer.headers:
            return found, pages
        token = token_of(answer)


async def test_a_query_answers_in_the_order_of_keys(door: DoorAtHand) -> None:
    assert rows(await door.query()) == ALL
    assert (await door.query()).json["odata.metadata"].endswith("/$metadata#orders")


@pytest.mark.parametrize(("top", "pages"), [(1, 9), (2, 5), (3, 3), (8, 2), (9, 1), (1000, 1)])
async def test_pages_have_at_most_top_rows_and_end_without_a_token(door: DoorAtHand, top: int, pages: int) -> None:
    assert await everything(door, f"$top={top}") == (ALL, pages)


async def test_a_top_may_have_zeros_in_front(door: DoorAtHand) -> None:
    assert await everything(door, "$top=0000000000002") == (ALL, 5)


@pytest.mark.parametrize("top", ["0", "-1", "1001", "x", "", "00000000019999", "9" * 5000])
async def test_a_top_that_is_no_size_of_a_page_is_refused(door: DoorAtHand, top: str) -> None:
    assert (await door.send("GET", "orders()", query=f"$top={top}")).code == "InvalidInput"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PartitionKey eq 'b'", [("b", row) for row in "123"]),
        ("PartitionKey eq 'b' and RowKey ge '2'", [("b", "2"), ("b", "3")]),
        ("PartitionKey gt 'a' and PartitionKey le 'c' and n eq 1", [("b", "1"), ("c", "1")]),
        (
            "(PartitionKey eq 'c' and RowKey eq '3') or (PartitionKey eq 'a' and RowKey eq '1')",
            [("a", "1"), ("c", "3")],
        ),
        ("n gt 2 or s eq 'c'", [("a", "3"), ("b", "3"), ("c", "1"), ("c", "2"), ("c", "3")]),
        ("RowKey eq '2'", [("a", "2"), ("b", "2"), ("c", "2")]),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", []),
    ],
)
async def test_a_filter_finds_its_rows_whatever_the_size_of_pages(
    door: DoorAtHand, text: str, expected: list[tuple[str, str]]
) -> None:
    assert rows(await door.query(text)) == expected
    for top in (1, 2):
        found, _ = await everything(door, f"$filter={text.replace(' ', '%20')}&$top={top}")
        assert found == expected


async def test_three_matches_at_two_a_page_are_two_pages(door: DoorAtHand) -> None:
    assert await everything(door, "$filter=n%20eq%201&$top=2") == ([("a", "1"), ("b", "1"), ("c", "1")], 2)


async def test_a_token_without_a_row_key_begins_at_the_partition_in_any_case_of_its_name(door: DoorAtHand) -> None:
    answer = await door.send("GET", "orders()", query="nextpartitionkey=b")
    assert rows(answer) == ALL[3:]


async def test_a_selection_has_what_was_asked_and_the_etag(door: DoorAtHand) -> None:
    answer = await door.query("PartitionKey eq 'a' and RowKey eq '1'", select="n,missing")
    assert set(answer.json["value"][0]) == {"odata.etag", "n"}
    whole = await door.query("PartitionKey eq 'a' and RowKey eq '1'", select="*")
    assert {"n", "s", "RowKey"} <= set(whole.json["value"][0])


async def test_a_selection_may_name_far_more_than_there_is(door: DoorAtHand) -> None:
    names = ",".join(["RowKey", *(f"nothing{number}" for number in range(5000)), "n", "n"])
    found = await door.send("GET", "orders(PartitionKey='a',RowKey='2')", query=f"$select={names}")
    shown = {name: value for name, value in found.json.items() if not name.startswith("odata.")}
    assert shown == {"RowKey": "2", "n": 2}


async def test_a_page_that_has_no_time_left_still_makes_some_way(
    door: DoorAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asterism.languages.odata.search.PAGE_SECONDS_MAX", 0.0)
    assert rows(await door.query("PartitionKey eq 'a' or PartitionKey eq 'c'")) == ALL[:3]


async def test_options_that_tables_do_not_have_are_not_implemented(door: DoorAtHand) -> None:
    answer = await door.send("GET", "orders()", query="$orderby=n")
    assert (answer.status, answer.code) == (501, "NotImplemented")


async def test_a_malformed_filter_is_refused(door: DoorAtHand) -> None:
    answer = await door.query("n eq")
    assert (answer.status, answer.code) == (400, "InvalidInput")
    assert b"invalid. At character 5 of the filter: The filter ends too early." in answer.body


async def test_a_page_ends_at_4_megabytes_and_says_where_to_go_on(door: DoorAtHand) -> None:
    for number in range(12):
        await door.insert("z", f"{number:02}", **{f"p{part}": "x" * 32000 for part in range(14)})
    found, pages = await everything(door, "$filter=PartitionKey%20eq%20'z'")
    assert (len(found), pages) == (12, 2)


async def test_a_long_filter_is_answered(door: DoorAtHand) -> None:
    text = " or ".join(f"n eq {number}" for number in range(3, 400))
    assert rows(await door.query(text)) == [("a", "3"), ("b", "3"), ("c", "3")]


async def test_a_plus_in_a_query_is_a_space_and_an_encoded_one_a_plus(door: DoorAtHand) -> None:
    await door.insert("a+b", "1")
    await door.insert("a b", "1")
    spaces = await door.send("GET", "orders()", query="$filter=PartitionKey+eq+'a+b'")
    assert rows(spaces) == [("a b", "1")]
    plus = await door.send("GET", "orders()", query="$filter=PartitionKey%20eq%20'a%2Bb'")
    assert rows(plus) == [("a+b", "1")]


async def test_a_long_filter_is_worked_at_in_small_pieces(door: DoorAtHand, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []
    scan = Table.scan

    def seen(*bounds: Any, entries_examined_max: int, **options: Any) -> Any:
        pieces.append(entries_examined_max)
        return scan(*bounds, entries_examined_max=entries_examined_max, **options)

    monkeypatch.setattr(Table, "scan", seen)
    for count in (1, 15, 300):
        found = await door.query(" or ".join(f"n eq {number}" for number in range(1, count + 1)))
        assert len(rows(found)) == min(count, 3) * 3
    few, some, many = pieces
    assert 1000 > few > some > many >= 20

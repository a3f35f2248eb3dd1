"""Whatever a client sends, the answer is the client's mistake or what it asked for: clients repeat a 5xx."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.table.table_door_at_hand import DoorAtHand, change_set, entity_path, insertion, open_door, upsert

METHODS = st.sampled_from(["GET", "POST", "PUT", "PATCH", "MERGE", "DELETE", "HEAD", "OPTIONS"])
PIECES = st.sampled_from(
    [
        "orders",
        "Tables",
        "$batch",
        "(",
        ")",
        "'",
        "/",
        "()",
        entity_path(),
        "('orders')",
        "PartitionKey=",
        "RowKey='r'",
        "é",
        "%",
        "x",
    ]
)
PATHS = st.lists(PIECES, max_size=5).map("".join)
NAMES = st.sampled_from(
    ["$filter", "$top", "$select", "$format", "comp", "restype", "NextPartitionKey", "sig", "sv", "tn", "si"]
)
VALUES = st.text(max_size=12) | st.sampled_from(["a eq 1", "1", "properties", "acl", "stats", "1!4!YQ", "*"])
QUERIES = st.lists(st.tuples(NAMES, VALUES), max_size=3)
WHOLE, BATCH_HEADERS = change_set(upsert("p", "x", '{"a":1}'), insertion("p", "y"))
BODIES = (
    st.binary(max_size=60)
    | st.integers(0, len(WHOLE)).map(lambda length: WHOLE[:length])
    | st.sampled_from(
        [b'{"PartitionKey":"p","RowKey":"r","a":[1]}', b'{"a@odata.type":5,"a":1}', b"<SignedIdentifiers />"]
    )
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "if-match": st.sampled_from(["*", "x", ""]),
        "prefer": st.sampled_from(["return-content", "x"]),
        "accept": st.text("abc/;=*+", max_size=12),
        "x-http-method": st.sampled_from(["MERGE", "X", ""]),
        "origin": st.just("https://shop.test"),
        "content-type": st.sampled_from([BATCH_HEADERS["content-type"], "application/json"]),
    },
)


@settings(max_examples=300, deadline=None)
@given(METHODS, PATHS, QUERIES, BODIES, HEADERS, st.booleans())
def test_no_request_makes_the_door_fail(
    method: str,
    path: str,
    query: list[tuple[str, str]],
    body: bytes,
    headers: dict[str, str],
    is_cosmos: bool,
) -> None:
    async def send() -> int:
        async with open_door(is_cosmos=is_cosmos) as door:
            await door.create()
            await door.insert()
            text = "&".join(f"{quote(name)}={quote(value, errors='replace')}" for name, value in query)
            wire_path = quote(path, safe="/$(),='")
            return (await door.send(method, wire_path, body, query=text, headers=headers)).status

    assert asyncio.run(send()) < 500


# Python reads at most 4,300 digits as a number.
DIGITS = "9" * 5000


@pytest.fixture(params=[False, True])
async def door(request: pytest.FixtureRequest) -> AsyncIterator[DoorAtHand]:
    async with open_door(is_cosmos=request.param) as at_hand:
        yield at_hand


async def test_numbers_of_thousands_of_digits_are_no_failure(door: DoorAtHand) -> None:
    await door.create()
    await door.insert()
    filters = [f"a eq {value}" for value in (DIGITS, f"{DIGITS}L", f"-{DIGITS}", f"{DIGITS}.5", f"1e{DIGITS}")]
    filters += [f"a eq datetime'{DIGITS}'", f"a eq X'{DIGITS}'", f"a eq guid'{DIGITS}'"]
    queries = [f"$filter={quote(text)}" for text in filters]
    names = ["$top", "$select", "$format", "timeout", "NextPartitionKey", "NextRowKey", "NextTableName", "sv", "se"]
    queries += [f"{quote(name)}={value}" for name in names for value in (DIGITS, f"1!{DIGITS}!YQ")]
    for query in queries:
        for path in ("orders()", "Tables", ""):
            assert (await door.send("GET", path, b"", query=query)).status < 500, query
    for name in ("x-ms-version", "if-match", "x-ms-date", "dataserviceversion", "x-ms-offer-throughput"):
        answer = await door.send("POST", "Tables", b'{"TableName":"more"}', headers={name: DIGITS})
        assert answer.status < 500, name
    for kind in ("Edm.Int32", "Edm.Int64", "Edm.Double", "Edm.DateTime", "Edm.Guid", "Edm.Boolean", "Edm.Binary"):
        for value in (DIGITS, f'"{DIGITS}"'):
            body = f'{{"PartitionKey":"p","RowKey":"n","a@odata.type":"{kind}","a":{value}}}'
            assert (await door.send("POST", "orders", body.encode())).status < 500, kind

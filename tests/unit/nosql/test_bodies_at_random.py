"""Random bodies of batches and patches: each is refused with a message, or done, never half."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.models.documents.batch import BATCH_BYTES_MAX
from tests.support.world import ACCOUNT
from tests.unit.nosql.door_at_hand import ITEMS, Answer, DoorAtHand, door_at_hand, key

BATCH = {
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-atomic": "True",
    "x-ms-cosmos-batch-continue-on-error": "False",
}
THERE: dict[str, Any] = {"n": 1, "list": [1, [2], {"x": 3}], "deep": {"er": {"est": None}}, "text": "é"}
LEVELS = (60, 126, 130, 500, 1_000, 1_030, 5_000, 100_000)

names = st.sampled_from(
    ["id", "pk", "n", "list", "deep", "er", "0", "-", "", "~0", "~1~", "_ts", "_etag", "text", "new"]
)
paths = st.lists(names, max_size=5).map(lambda parts: "".join(f"/{part}" for part in parts)) | st.text(max_size=12)
numbers = st.integers() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names | st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)
patch_operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "set", "replace", "remove", "incr", "move"]) | values, "path": paths | values},
    optional={"from": paths | values, "value": values, "more": values},
)
conditions = st.sampled_from(
    ["from c", "from c where c.n = 1", "from c where", "select 1", "", "from c where udf.x(1)"]
)
patches = st.lists(patch_operations | values, max_size=12) | st.fixed_dictionaries(
    {"operations": st.lists(patch_operations, max_size=4) | values}, optional={"condition": conditions | values}
)
items = st.fixed_dictionaries(
    {"id": st.sampled_from(["there", "x", "y", ""]) | values, "pk": st.sampled_from(["a", "b"]) | values},
    optional={"ttl": values, "n": values, "_etag": values},
)
batch_operations = st.fixed_dictionaries(
    {
        "operationType": st.sampled_from(["Create", "Upsert", "Read", "Replace", "Delete", "Patch", "create"]) | values,
    },
    optional={
        "resourceBody": items | patches | values,
        "id": st.sampled_from(["there", "x", "y", ""]) | values,
        "partitionKey": st.sampled_from(['["a"]', '["b"]', "[", "[{}]"]) | values,
        "ifMatch": values,
        "ifNoneMatch": st.sampled_from(["*", '"x"']) | values,
    },
)
batches = st.lists(batch_operations | values, max_size=8) | values
AT_RANDOM = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=120
)


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as at_hand:
        await at_hand.create("there", **THERE)
        yield at_hand


async def everything(door: DoorAtHand) -> list[tuple[bytes, bytes]]:
    """Every byte that the container's partitions hold."""
    container = door.world.store.container_for_items(ACCOUNT, "d", "c")
    found = []
    for partition in container.keyspace.record.map.ranges:
        found += await door.world.everything(partition.partition)
    return found


async def send_batch(door: DoorAtHand, body: bytes, *, bulk: bool = False) -> Answer:
    headers = {**BATCH, **({"x-ms-cosmos-batch-atomic": "False"} if bulk else {}), **key("a")}
    return await door.send("POST", ITEMS, body, headers=headers)


async def patched(door: DoorAtHand, body: bytes) -> Answer:
    return await door.send("PATCH", f"{ITEMS}/there", body, headers=key("a"))


def check_refusal(answer: Answer) -> None:
    """A status of the client's, the service's word for it, and a sentence."""
    words = {400: "BadRequest", 409: "Conflict", 412: "PreconditionFailed", 413: "RequestEntityTooLarge"}
    assert answer.status in words
    assert answer.body["code"] == words[answer.status]
    assert len(answer.body["message"]) > 10


def as_text(body: object) -> bytes:
    return json.dumps(body).encode()


async def check_batch(door: DoorAtHand, body: bytes) -> None:
    before = await everything(door)
    answer = await send_batch(door, body)
    if answer.status >= 400:
        check_refusal(answer)
    if answer.status != 200:
        assert await everything(door) == before
    if answer.status == 207:
        (cause,) = [result for result in answer.body if result["statusCode"] != 424]
        assert 400 <= cause["statusCode"] < 500
        assert cause["message"]
    await door.world.check_statistics(door.world.store.container_for_items(ACCOUNT, "d", "c"))


async def check_patch(door: DoorAtHand, body: bytes) -> None:
    before = await everything(door)
    answer = await patched(door, body)
    if answer.status == 200:
        assert (answer.body["id"], answer.body["pk"]) == ("there", "a")
    else:
        check_refusal(answer)
        assert await everything(door) == before


@AT_RANDOM
@given(batches)
async def test_a_batch_is_done_or_leaves_every_byte_as_it_was(door: DoorAtHand, body: Any) -> None:
    await check_batch(door, as_text(body))


@AT_RANDOM
@given(batches)
async def test_a_bulk_request_is_never_the_servers_fault(door: DoorAtHand, body: Any) -> None:
    answer = await send_batch(door, as_text(body), bulk=True)
    if answer.status >= 400:
        check_refusal(answer)
    else:
        assert all(result["statusCode"] < 500 for result in answer.body)


@AT_RANDOM
@given(patches)
async def test_a_patch_is_done_or_leaves_every_byte_as_it_was(door: DoorAtHand, body: Any) -> None:
    await check_patch(door, as_text(body))


@AT_RANDOM
@given(st.binary(max_size=40) | st.text(max_size=20).map(str.encode), st.booleans())
async def test_bytes_that_are_not_json_are_refused(door: DoorAtHand, body: bytes, is_patch: bool) -> None:
    await (check_patch if is_patch else check_batch)(door, body)


@AT_RANDOM
@given(st.data())
async def test_a_body_that_was_cut_off_is_refused(door: DoorAtHand, data: st.DataObject) -> None:
    whole = as_text(data.draw(st.lists(batch_operations, min_size=1, max_size=4)))
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    before = await everything(door)
    for answer in (await send_batch(door, cut), await send_batch(door, cut, bulk=True), await patched(door, cut)):
        assert answer.status == 400
        check_refusal(answer)
    assert await everything(door) == before


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"x":', b"}")])
async def test_depth_is_refused_wherever_it_stands(
    door: DoorAtHand, levels: int, opening: bytes, closing: bytes
) -> None:
    deep = opening * levels + b"1" + closing * levels
    create = b'[{"operationType":"Create","resourceBody":{"id":"x","pk":"a","deep":%b}}]'
    for form in (create, b'[{"operationType":%b}]', b'[{"operationType":"Read","id":%b}]', b"%b"):
        await check_batch(door, form % deep)
    for form in (b'[{"op":"set","path":"/deep","value":%b}]', b'[{"op":%b}]', b'[{"op":"add","path":%b,"value":1}]'):
        await check_patch(door, form % deep)
    await check_patch(door, b'{"operations":[{"op":"incr","path":"/n","value":1}],"condition":%b}' % deep)
    await check_patch(door, b'[{"op":"set","path":"%b","value":1}]' % (b"/x" * levels))


@pytest.mark.parametrize("count", [11, 101, 10_000, 100_000])
async def test_huge_counts_are_refused(door: DoorAtHand, count: int) -> None:
    before = await everything(door)
    step = {"op": "incr", "path": "/n", "value": 1}
    answers = [await patched(door, as_text([step] * count))]
    operation = {"operationType": "Patch", "id": "there", "resourceBody": {"operations": [step] * count}}
    answers.append(await send_batch(door, as_text([operation])))
    answers.append(await send_batch(door, as_text([{"operationType": "Read", "id": "there"}] * max(count, 101))))
    for answer in answers:
        check_refusal(answer)
    assert await everything(door) == before


async def test_a_batch_beyond_two_megabytes_is_413(door: DoorAtHand) -> None:
    before = await everything(door)
    answer = await send_batch(
        door, as_text([{"operationType": "Create", "resourceBody": {"x": "y" * BATCH_BYTES_MAX}}])
    )
    assert answer.status == 413
    check_refusal(answer)
    assert await everything(door) == before


async def test_of_equal_members_the_last_counts(door: DoorAtHand) -> None:
    twice = (
        b'[{"operationType":"Delete","operationType":"Create","resourceBody":{"id":"q","id":"x","pk":"a","n":1,"n":2}}]'
    )
    answer = await send_batch(door, twice)
    assert (answer.status, answer.body[0]["resourceBody"]["n"]) == (200, 2)
    answer = await patched(door, b'[{"op":"remove","op":"set","path":"/id","path":"/n","value":1,"value":5}]')
    assert (answer.status, answer.body["n"]) == (200, 5)
    assert (await door.send("GET", f"{ITEMS}/q", headers=key("a"))).status == 404

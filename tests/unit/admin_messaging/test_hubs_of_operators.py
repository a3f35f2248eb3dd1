"""Hubs as an operator handles them: partitions, events, consumer groups and their lag."""

from __future__ import annotations

import pytest

from asterism.models.blobs.calls import NewBlob
from tests.unit.admin_messaging.operator_at_hand import NAMESPACE, Json, MessagingOperator

HOST = "asterism.servicebus.windows.net"


async def send(operator: MessagingOperator, *texts: str, **fields: object) -> Json:
    return await operator.post("events", hub="telemetry", events=[{"body": text} for text in texts], **fields)


async def test_a_hub_is_created_filled_read_and_deleted(operator: MessagingOperator) -> None:
    await operator.post("create", entity="telemetry", kind="hub", partitions=2, retention_hours=2, groups=["audit"])
    sent = await send(operator, "a", "b", partition=1)
    assert sent == {"partition": 1, "first_sequence": 0, "count": 2}
    shown = await operator.read("hub", hub="Telemetry")
    assert (shown["path"], shown["partition_count"], shown["retention_ms"]) == ("telemetry", 2, 7_200_000)
    assert [group["name"] for group in shown["groups"]] == ["$Default", "audit"]
    empty, full = shown["partitions"]
    assert (empty["last_sequence"], empty["events"], empty["state"]) == (-1, 0, "up")
    assert (full["begin_sequence"], full["last_sequence"], full["events"]) == (0, 1, 2)
    assert full["bytes"] > 0
    assert full["last_enqueued_ms"] <= shown["now_ms"]
    assert empty["physical_partition"] != full["physical_partition"]
    page = await operator.read("events", hub="telemetry", partition=1, count=1)
    assert [event["body"]["text"] for event in page["events"]] == ["a"]
    rest = await operator.read("events", hub="telemetry", partition=1, **{"from": page["next"]})
    assert ([event["body"]["text"] for event in rest["events"]], rest["next"]) == (["b"], None)
    await operator.post("delete", entity="telemetry", kind="hub")
    assert (await operator.refusal("events", hub="telemetry", events=[{}]))[0] == 404


async def test_events_of_a_key_are_in_one_partition_and_others_take_turns(operator: MessagingOperator) -> None:
    await operator.post("create", entity="telemetry", kind="hub", partitions=4)
    # A vector of the service's own hash.
    assert {(await send(operator, "x", partition_key="7"))["partition"] for _ in range(3)} == {3}
    event = (await operator.read("events", hub="telemetry", partition=3))["events"][0]
    assert (event["partition_key"], event["offset"]) == ("7", "0")
    assert {(await send(operator, "y"))["partition"] for _ in range(4)} == {0, 1, 2, 3}


async def test_consumer_groups_are_created_and_deleted(operator: MessagingOperator) -> None:
    await operator.post("create", entity="telemetry", kind="hub")
    await operator.post("groups", hub="telemetry", group="audit")
    assert (await operator.refusal("groups", hub="telemetry", group="Audit"))[0] == 409
    await operator.post("groups", hub="telemetry", group="audit", delete=True)
    assert (await operator.refusal("groups", hub="telemetry", group="audit", delete=True))[0] == 404
    assert [group["name"] for group in (await operator.read("hub", hub="telemetry"))["groups"]] == ["$Default"]


async def put_checkpoint(operator: MessagingOperator, place: str, sequence: int, *, host: str = HOST) -> None:
    await put_blob(operator, f"{host}/telemetry/{place}", {"sequencenumber": str(sequence), "offset": str(sequence)})


async def put_blob(operator: MessagingOperator, name: str, metadata: dict[str, str]) -> None:
    blobs = operator.assembly.services.blobs
    container = blobs.find_container("devstoreaccount1", "checkpoints")
    if container is None:
        container = await blobs.create_container("devstoreaccount1", "checkpoints")
    await container.put_blob(name, None, NewBlob(metadata=metadata))


async def lag_of(operator: MessagingOperator, **more: object) -> list[Json]:
    asked = {"hub": "telemetry", "account": "devstoreaccount1", "container": "checkpoints", **more}
    groups: list[Json] = (await operator.read("lag", **asked))["groups"]
    return groups


async def test_the_lag_of_a_group_is_counted_from_its_checkpoints(operator: MessagingOperator) -> None:
    await operator.post("create", entity="telemetry", kind="hub", partitions=3)
    await send(operator, *"abcde", partition=0)
    await send(operator, *"abc", partition=1)
    await put_checkpoint(operator, "$default/checkpoint/0", 3)
    await put_blob(operator, f"{HOST}/telemetry/$default/ownership/0", {"ownerid": "reader-1"})
    await put_blob(operator, f"{HOST}/telemetry/$default/ownership/1", {"ownerid": ""})
    (group,) = await lag_of(operator)
    assert (group["group"], group["host"], group["exists"], group["lag"]) == ("$Default", HOST, True, 4)
    found = [(each["sequence"], each["lag"], each["owner"]) for each in group["partitions"]]
    assert found == [(3, 1, "reader-1"), (None, 3, None), (None, 0, None)]


async def test_groups_and_hosts_are_told_apart_and_other_blobs_passed_over(operator: MessagingOperator) -> None:
    await operator.post("create", entity="telemetry", kind="hub", partitions=1)
    await send(operator, "a", "b", partition=0)
    await put_checkpoint(operator, "$default/checkpoint/0", 1)
    await put_checkpoint(operator, "gone/checkpoint/0", 0, host="localhost")
    await put_checkpoint(operator, "gone/checkpoint/none", 0, host="localhost")
    await put_blob(operator, "readme.txt", {})
    groups = await lag_of(operator)
    assert [(group["host"], group["group"], group["lag"], group["exists"]) for group in groups] == [
        (HOST, "$Default", 0, True),
        ("localhost", "gone", 1, False),
    ]
    assert [group["group"] for group in await lag_of(operator, group="Gone")] == ["gone"]


async def test_a_container_that_is_not_there_is_said_not_to_be(operator: MessagingOperator) -> None:
    await operator.post("create", entity="telemetry", kind="hub")
    query = f"namespace={NAMESPACE}&hub=telemetry&account=devstoreaccount1&container=none"
    assert (await operator.ask("GET", "messaging/lag", query=query)).status == 404


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"events": []}, 400),
        ({"events": [{}], "partition": 9}, 404),
        ({"events": [{}], "partition": "0"}, 400),
        ({"events": [{}], "partition_key": "k" * 129}, 400),
        ({"events": [{"body": "x" * 1_100_000}]}, 413),
    ],
)
async def test_events_that_cannot_be_sent_are_refused(
    operator: MessagingOperator, fields: dict[str, object], status: int
) -> None:
    await operator.post("create", entity="telemetry", kind="hub")
    assert (await operator.refusal("events", hub="telemetry", **fields))[0] == status

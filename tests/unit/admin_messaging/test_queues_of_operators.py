"""Queues, topics and subscriptions as an operator handles them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from asterism.apis.admin.messaging import purging
from tests.unit.admin_messaging.operator_at_hand import NAMESPACE, MessagingOperator


async def test_a_queue_is_created_filled_looked_at_and_deleted(operator: MessagingOperator) -> None:
    assert await operator.post("create", entity="orders") == {"kind": "queue", "path": "orders"}
    numbers = await operator.fill("orders", '{"id": 1}', "two", properties={"region": "eu"})
    assert numbers == [1, 2]
    page = await operator.read("messages", entity="Orders")
    first, second = page["messages"]
    assert (first["sequence_number"], first["state"], first["body"]["kind"]) == (1, "active", "json")
    assert (second["body"]["text"], second["application_properties"]) == ("two", {"region": "eu"})
    assert (page["next"], first["lock_token"]) == (None, None)
    shown = await operator.read("entity", entity="orders")
    assert (shown["kind"], shown["status"], shown["counts"]["active"]) == ("queue", "Active", 2)
    assert [(each["id"], each["state"], each["messages"]) for each in shown["fragments"]] == [(0, "up", 2)]
    assert await operator.post("delete", entity="orders") == {"kind": "queue", "path": "orders"}
    assert (await operator.refusal("delete", entity="orders"))[0] == 404


async def test_pages_of_messages_follow_each_other_and_change_nothing(operator: MessagingOperator) -> None:
    await operator.post("create", entity="orders")
    await operator.fill("orders", *map(str, range(7)))
    found: list[str] = []
    start: int | None = 0
    while start is not None:
        page = await operator.read("messages", entity="orders", count=3, **{"from": start})
        found += [message["body"]["text"] for message in page["messages"]]
        start = page["next"]
    assert found == [str(number) for number in range(7)]
    assert (await operator.read("entity", entity="orders"))["counts"]["active"] == 7


async def test_received_messages_are_settled_by_their_locks(operator: MessagingOperator) -> None:
    await operator.post("create", entity="orders")
    await operator.fill("orders", "done", "again", "bad", "later")
    taken = (await operator.post("receive", entity="orders", count=9))["messages"]
    assert [message["body"]["text"] for message in taken] == ["done", "again", "bad", "later"]
    assert (await operator.post("receive", entity="orders"))["messages"] == []
    for message, action in zip(taken, ("complete", "abandon", "dead-letter", "defer"), strict=True):
        settled = await operator.post("settle", entity="orders", action=action, lock_tokens=[message["lock_token"]])
        assert settled["failed"] == []
    counts = (await operator.read("entity", entity="orders"))["counts"]
    assert (counts["active"], counts["deferred"], counts["dead_letters"]) == (1, 1, 1)
    lost = await operator.post("settle", entity="orders", action="complete", lock_tokens=[taken[0]["lock_token"]])
    assert (lost["settled"], lost["failed"][0]["reason"]) == (0, "lock lost")


async def test_messages_are_removed_as_they_are_received_if_that_is_asked(operator: MessagingOperator) -> None:
    await operator.post("create", entity="orders")
    await operator.fill("orders", "a", "b")
    taken = await operator.post("receive", entity="orders", count=1, mode="delete")
    assert [message["body"]["text"] for message in taken["messages"]] == ["a"]
    assert await operator.texts("orders") == ["b"]


async def test_messages_of_sessions_are_received_by_session(operator: MessagingOperator) -> None:
    await operator.post("create", entity="sagas", requires_session=True)
    await operator.fill("sagas", "a1", "a2", session_id="a")
    await operator.fill("sagas", "b1", session_id="b")
    assert await operator.texts("sagas", session="b") == ["b1"]
    status, message = await operator.refusal("receive", entity="sagas")
    assert (status, "sessions" in message) == (400, True)
    taken = await operator.post("receive", entity="sagas", mode="delete", session="a", count=9)
    assert [message["body"]["text"] for message in taken["messages"]] == ["a1", "a2"]
    taken = await operator.post("receive", entity="sagas", mode="delete", count=9)
    assert [message["body"]["text"] for message in taken["messages"]] == ["b1"]
    assert (await operator.post("receive", entity="sagas", mode="delete", count=9))["messages"] == []


async def test_dead_letters_show_their_reasons_and_are_sent_again_without_them(operator: MessagingOperator) -> None:
    await operator.post("create", entity="orders")
    await operator.dead_letter("orders", "one", "two", properties={"kept": 1})
    dead = (await operator.read("messages", entity="orders", queue="dead-letter"))["messages"]
    assert [message["dead_letter"]["reason"] for message in dead] == ["broken", "broken"]
    assert dead[0]["dead_letter"]["description"] == "no such part"
    assert await operator.post("resubmit", entity="orders") == {"resubmitted": 2, "missing": []}
    assert await operator.texts("orders", queue="dead-letter") == []
    again = (await operator.read("messages", entity="orders"))["messages"]
    assert [message["body"]["text"] for message in again] == ["one", "two"]
    assert [message["application_properties"] for message in again] == [{"kept": 1}, {"kept": 1}]
    assert [message["delivery_count"] for message in again] == [0, 0]


async def test_chosen_dead_letters_are_sent_again_and_the_others_stay(operator: MessagingOperator) -> None:
    await operator.post("create", entity="orders")
    await operator.dead_letter("orders", *map(str, range(5)))
    answer = await operator.post("resubmit", entity="orders", sequence_numbers=[2, 4, 99])
    assert answer == {"resubmitted": 2, "missing": [99]}
    assert await operator.texts("orders") == ["1", "3"]
    assert await operator.texts("orders", queue="dead-letter") == ["0", "2", "4"]
    # The others are not left locked.
    assert (await operator.post("resubmit", entity="orders"))["resubmitted"] == 3


async def test_a_dead_letter_is_sent_again_within_the_window_of_duplicates(operator: MessagingOperator) -> None:
    await operator.post("create", entity="orders", duplicate_window_seconds=600)
    await operator.dead_letter("orders", "once", message_id="the-id")
    await operator.post("resubmit", entity="orders")
    (again,) = (await operator.read("messages", entity="orders"))["messages"]
    assert (again["body"]["text"], again["properties"]["message_id"]) == ("once", "the-id")


async def test_dead_letters_stay_while_their_queue_takes_no_messages(operator: MessagingOperator) -> None:
    await operator.post("create", entity="orders")
    await operator.dead_letter("orders", "one")
    await close(operator, "orders")
    status, _ = await operator.refusal("resubmit", entity="orders")
    assert status == 409
    assert await operator.texts("orders", queue="dead-letter") == ["one"]


async def close(operator: MessagingOperator, queue: str) -> None:
    messages = operator.assembly.services.messages
    entity = messages.find(NAMESPACE, queue)
    assert entity is not None
    await messages.update(entity, lambda description: replace(description, status="SendDisabled"))


async def test_dead_letters_of_a_partitioned_queue_are_sent_again(operator: MessagingOperator) -> None:
    await operator.post("create", entity="orders", is_partitioned=True)
    await operator.dead_letter("orders", *"abcdefgh")
    await operator.dead_letter("orders", "keyed", partition_key="k")
    done = [await operator.post("resubmit", entity="orders") for _ in range(2)]
    assert [answer["resubmitted"] for answer in done] == [9, 0]
    assert sorted(await operator.texts("orders")) == ["a", "b", "c", "d", "e", "f", "g", "h", "keyed"]


async def test_dead_letters_of_a_subscription_are_sent_to_its_topic_again(operator: MessagingOperator) -> None:
    await operator.post("create", entity="events", kind="topic")
    for name in ("a", "b"):
        await operator.post("create", entity=f"events/subscriptions/{name}")
    await operator.fill("events", "x")
    taken = (await operator.post("receive", entity="events/subscriptions/a"))["messages"]
    tokens = [message["lock_token"] for message in taken]
    await operator.post("settle", entity="events/subscriptions/a", action="dead-letter", lock_tokens=tokens)
    assert (await operator.post("resubmit", entity="events/subscriptions/a"))["resubmitted"] == 1
    assert await operator.texts("events/subscriptions/a") == ["x"]
    assert await operator.texts("events/subscriptions/b") == ["x", "x"]


async def test_reasons_that_a_client_has_copied_into_a_message_are_removed_too(operator: MessagingOperator) -> None:
    await operator.post("create", entity="orders")
    await operator.dead_letter("orders", "x", properties={"DeadLetterReason": "old", "kept": True}, subject="s")
    await operator.post("resubmit", entity="orders")
    (again,) = (await operator.read("messages", entity="orders"))["messages"]
    assert again["application_properties"] == {"kept": True}
    assert (again["body"]["text"], again["properties"]["subject"]) == ("x", "s")


async def test_a_queue_is_emptied_and_its_dead_letters_are_apart(operator: MessagingOperator) -> None:
    await operator.post("create", entity="orders")
    await operator.dead_letter("orders", "dead")
    await operator.fill("orders", *map(str, range(100)))
    await operator.fill("orders", "later", scheduled_ms=4_000_000_000_000)
    answer = await operator.post("purge", entity="orders")
    assert answer == {"removed": 101, "left": 0, "is_done": True}
    assert await operator.texts("orders") == []
    assert await operator.texts("orders", queue="dead-letter") == ["dead"]
    assert (await operator.post("purge", entity="orders", queue="dead-letter"))["removed"] == 1


async def test_a_large_queue_is_emptied_in_several_answers(
    operator: MessagingOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "_ANSWER_SECONDS", 0)
    await operator.post("create", entity="orders")
    for _ in range(12):
        await operator.fill("orders", *["x"] * 100)
    answers = [await operator.post("purge", entity="orders")]
    while not answers[-1]["is_done"]:
        answers.append(await operator.post("purge", entity="orders"))
    assert len(answers) > 1
    assert (sum(answer["removed"] for answer in answers), answers[-1]["left"]) == (1200, 0)
    assert await operator.texts("orders") == []


async def test_messages_that_came_after_a_purge_are_removed_by_the_next(
    operator: MessagingOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "_ANSWER_SECONDS", 0)
    await operator.post("create", entity="orders")
    await operator.fill("orders", "a")
    assert not (await operator.post("purge", entity="orders"))["is_done"]
    monkeypatch.undo()
    # The first purge is over by now, and no answer has said so.
    await operator.fill("orders", "b", "c")
    assert (await operator.post("purge", entity="orders"))["is_done"]
    assert await operator.texts("orders") == []


async def test_a_fragment_is_closed_and_messages_go_around_it(operator: MessagingOperator) -> None:
    await operator.post("create", entity="orders", is_partitioned=True)
    closed = await operator.post("fragment", entity="orders", fragment=3, is_closed=True)
    assert [each["id"] for each in closed["fragments"] if each["state"] == "closed"] == [3]
    assert len({each["physical_partition"] for each in closed["fragments"]}) == 16
    numbers = await operator.fill("orders", *map(str, range(32)))
    assert 3 not in {number >> 48 for number in numbers}
    opened = await operator.post("fragment", entity="orders", fragment=3, is_closed=False)
    assert {each["state"] for each in opened["fragments"]} == {"up"}
    assert (await operator.refusal("fragment", entity="orders", fragment=16, is_closed=True))[0] == 404


async def test_a_topic_and_its_subscriptions_are_told_apart_by_their_paths(operator: MessagingOperator) -> None:
    await operator.post("create", entity="events", kind="topic")
    created = await operator.post("create", entity="events/subscriptions/EU", filter="region = 'eu'")
    assert created == {"kind": "subscription", "path": "events/subscriptions/EU"}
    await operator.post("create", entity="events", subscription="all")
    await operator.fill("events", "for the eu", properties={"region": "eu"})
    await operator.fill("events", "for the us", properties={"region": "us"})
    assert await operator.texts("events/Subscriptions/eu") == ["for the eu"]
    assert await operator.texts("events", subscription="all") == ["for the eu", "for the us"]
    shown = await operator.read("entity", entity="events")
    assert [(each["name"], each["counts"]["active"]) for each in shown["subscriptions"]] == [("all", 2), ("EU", 1)]
    subscription = await operator.read("entity", entity="events/subscriptions/eu")
    assert (subscription["kind"], subscription["path"]) == ("subscription", "events/subscriptions/EU")
    assert subscription["rules"] == [{"name": "$Default", "filter": "region = 'eu'", "action": None}]
    status, message = await operator.refusal("receive", entity="events")
    assert (status, "subscriptions" in message) == (400, True)
    assert (await operator.refusal("send", entity="events/subscriptions/eu", messages=[{}]))[0] == 400
    await operator.post("delete", entity="events/subscriptions/eu")
    assert (await operator.refusal("receive", entity="events/subscriptions/eu"))[0] == 404


async def test_the_list_has_entities_of_all_kinds_with_their_counts_page_by_page(operator: MessagingOperator) -> None:
    await operator.post("create", entity="a-queue")
    await operator.post("create", entity="b-topic", kind="topic")
    await operator.post("create", entity="b-topic/subscriptions/s")
    await operator.post("create", entity="c-hub", kind="hub", partitions=2)
    await operator.fill("b-topic", "x")
    listed = await operator.get("messaging/entities", f"namespace={NAMESPACE}")
    rows = [(each["kind"], each["path"], each["partitions"], each["counts"]) for each in listed["entities"]]
    assert [row[:3] for row in rows] == [
        ("queue", "a-queue", 1),
        ("topic", "b-topic", 1),
        ("subscription", "b-topic/subscriptions/s", 1),
        ("hub", "c-hub", 2),
    ]
    assert (rows[2][3]["active"], rows[3][3]) == (1, None)
    page = await operator.get("messaging/entities", "offset=1&limit=2")
    assert (page["total"], [each["path"] for each in page["entities"]]) == (4, ["b-topic", "b-topic/subscriptions/s"])
    assert [each["path"] for each in (await operator.get("messaging/entities", "kinds=hub"))["entities"]] == ["c-hub"]
    assert [each["path"] for each in (await operator.get("messaging/entities", "search=A-Q"))["entities"]] == [
        "a-queue"
    ]
    assert (await operator.ask("GET", "messaging/entities", query="kinds=tables")).status == 400


@pytest.mark.parametrize(
    ("route", "fields", "status"),
    [
        ("create", {}, 400),
        ("create", {"entity": "?"}, 400),
        ("create", {"entity": "x" * 261}, 400),
        ("create", {"entity": "orders"}, 409),
        ("create", {"entity": "new", "kind": "table"}, 400),
        ("create", {"entity": "new", "lock_seconds": 301}, 400),
        ("create", {"entity": "new", "max_delivery_count": 0}, 400),
        ("create", {"entity": "new", "is_partitioned": 1}, 400),
        ("create", {"entity": "new", "forward_to": "nothing"}, 400),
        ("create", {"entity": "new", "kind": "topic", "requires_session": True}, 400),
        ("create", {"entity": "orders/subscriptions/s"}, 404),
        ("create", {"entity": "topic/subscriptions/s", "filter": "region ="}, 400),
        ("create", {"entity": "topic/subscriptions/" + "s" * 51}, 400),
        ("send", {"entity": "orders"}, 400),
        ("send", {"entity": "orders", "messages": []}, 400),
        ("send", {"entity": "orders", "messages": [1]}, 400),
        ("send", {"entity": "orders", "messages": [{}] * 101}, 400),
        ("send", {"entity": "none", "messages": [{}]}, 404),
        ("receive", {"entity": "orders", "count": 0}, 400),
        ("receive", {"entity": "orders", "mode": "take"}, 400),
        ("receive", {"entity": "orders", "queue": "side"}, 400),
        ("receive", {"entity": "orders", "session": "s"}, 400),
        ("receive", {"entity": "orders", "wait_seconds": 21}, 400),
        ("settle", {"entity": "orders", "action": "complete", "lock_tokens": ["zz"]}, 400),
        ("settle", {"entity": "orders", "action": "eat", "lock_tokens": []}, 400),
        ("resubmit", {"entity": "orders", "queue": "main"}, 400),
        ("resubmit", {"entity": "orders", "sequence_numbers": []}, 400),
        ("resubmit", {"entity": "orders", "sequence_numbers": ["1"]}, 400),
        ("fragment", {"entity": "orders", "fragment": 1, "is_closed": True}, 404),
        ("fragment", {"entity": "orders", "fragment": 0, "is_closed": "yes"}, 400),
        ("purge", {"entity": "topic/subscriptions/x"}, 404),
    ],
)
async def test_bad_requests_get_a_code_and_a_message(
    operator: MessagingOperator, route: str, fields: dict[str, object], status: int
) -> None:
    await operator.post("create", entity="orders")
    await operator.post("create", entity="topic", kind="topic")
    found, message = await operator.refusal(route, **fields)
    assert (found, bool(message)) == (status, True)


async def test_an_account_reaches_its_own_namespace_alone(operator: MessagingOperator) -> None:
    await operator.ask("POST", "accounts", body={"name": "blue"})
    await operator.post("create", entity="orders")
    blue = MessagingOperator(operator.assembly, account="blue")
    response = await blue.ask("GET", "messaging/entity", query=f"namespace={NAMESPACE}&entity=orders")
    assert (response.status, json.loads(response.body)["message"]) == (404, f"There is no namespace '{NAMESPACE}'.")
    assert (await blue.get("messaging/entities", ""))["entities"] == []

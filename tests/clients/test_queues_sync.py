"""Queues with the official client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.storage.queue import (
    AccessPolicy,
    AccountSasPermissions,
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    CorsRule,
    Metrics,
    QueueAnalyticsLogging,
    QueueClient,
    QueueMessage,
    QueueSasPermissions,
    QueueServiceClient,
    ResourceTypes,
    RetentionPolicy,
    Services,
    generate_account_sas,
    generate_queue_sas,
)

from tests.clients.queue_server import QueueServer, new_name, running_queues

HOUR = timedelta(hours=1)


@pytest.fixture
def queue(queues: QueueServer) -> Iterator[QueueClient]:
    made = queues.new_queue()
    yield made
    made.delete_queue()


def code_of(problem: pytest.ExceptionInfo[HttpResponseError]) -> str:
    code: str = problem.value.error_code  # type: ignore[attr-defined]  # set by the client
    return code


def texts(messages: object) -> list[str]:
    return [message.content for message in messages]  # type: ignore[attr-defined]  # any iterable of messages


# --- queues -----------------------------------------------------------------------------------------------------------


def test_a_queue_is_created_listed_and_deleted(queues: QueueServer) -> None:
    service, name = queues.service(), new_name()
    service.create_queue(name, metadata={"color": "blue", "shape": "r\u00f6und".encode().decode("ascii", "ignore")})
    with pytest.raises(ResourceExistsError) as same:
        service.create_queue(name, metadata={"color": "blue", "shape": "rund"})
    assert code_of(same) == "QueueAlreadyExists"
    with pytest.raises(ResourceExistsError) as other:
        service.create_queue(name, metadata={"color": "red"})
    assert code_of(other) == "QueueAlreadyExists"
    (listed,) = service.list_queues(name_starts_with=name, include_metadata=True)
    assert (listed.name, listed.metadata) == (name, {"color": "blue", "shape": "rund"})
    service.delete_queue(name)
    with pytest.raises(ResourceNotFoundError) as gone:
        service.delete_queue(name)
    assert code_of(gone) == "QueueNotFound"
    service.create_queue(name)
    service.delete_queue(name)


def test_queues_are_listed_in_pages(queues: QueueServer) -> None:
    server = queues.of_new_account()
    service = server.service()
    names = [f"list-{number:03}" for number in range(12)]
    for name in names:
        service.create_queue(name)
    service.create_queue("other")
    pages = [[found.name for found in page] for page in service.list_queues("list-", results_per_page=5).by_page()]
    assert pages == [names[:5], names[5:10], names[10:]]
    assert [found.name for found in service.list_queues()] == [*names, "other"]
    assert list(service.list_queues("nothing")) == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("Upper", "InvalidResourceName"),
        ("two--hyphens", "InvalidResourceName"),
        ("-front", "InvalidResourceName"),
        ("back-", "InvalidResourceName"),
        ("under_score", "InvalidResourceName"),
        ("\u554a\u9f44\u4e02", "InvalidResourceName"),
    ],
)
def test_a_name_that_no_queue_may_have_is_refused(queues: QueueServer, name: str, code: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        queues.service().create_queue(name)
    assert refused.value.status_code == 400
    assert code_of(refused) == code


def test_metadata_are_replaced_as_a_whole(queue: QueueClient) -> None:
    queue.set_queue_metadata({"a": "1", "a_b": "2", "a1": "3"})
    queue.send_message("x")
    properties = queue.get_queue_properties()
    assert properties.metadata == {"a": "1", "a_b": "2", "a1": "3"}
    assert properties.approximate_message_count == 1
    queue.set_queue_metadata({"b": "4"})
    assert queue.get_queue_properties().metadata == {"b": "4"}
    queue.set_queue_metadata()
    assert not queue.get_queue_properties().metadata


def test_calls_on_a_queue_that_does_not_exist_say_so(queues: QueueServer) -> None:
    queue = queues.service().get_queue_client(new_name())
    calls = [
        lambda: queue.send_message("x"),
        queue.receive_message,
        queue.peek_messages,
        queue.clear_messages,
        queue.get_queue_properties,
        queue.get_queue_access_policy,
        lambda: queue.set_queue_access_policy({}),
        lambda: queue.set_queue_metadata({"a": "b"}),
        lambda: queue.delete_message("00000000-0000-0000-0000-000000000000", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ]
    for call in calls:
        with pytest.raises(ResourceNotFoundError) as missing:
            call()
        assert code_of(missing) == "QueueNotFound"


# --- messages ---------------------------------------------------------------------------------------------------------


def test_a_message_is_put_peeked_taken_updated_and_deleted(queue: QueueClient) -> None:
    put = queue.send_message("first")
    assert put.pop_receipt
    (peeked,) = queue.peek_messages()
    assert (peeked.id, peeked.content, peeked.dequeue_count, peeked.pop_receipt) == (put.id, "first", 0, None)
    taken = queue.receive_message(visibility_timeout=60)
    assert taken is not None
    assert (taken.id, taken.content, taken.dequeue_count) == (put.id, "first", 1)
    assert queue.receive_message() is None
    assert queue.peek_messages() == []
    updated = queue.update_message(taken, visibility_timeout=0, content="second")
    assert updated.pop_receipt != taken.pop_receipt
    again = queue.receive_message()
    assert again is not None
    assert (again.content, again.dequeue_count) == ("second", 2)
    with pytest.raises(HttpResponseError) as outdated:
        queue.delete_message(taken.id, taken.pop_receipt)
    assert (outdated.value.status_code, code_of(outdated)) == (400, "PopReceiptMismatch")
    queue.delete_message(again)
    with pytest.raises(ResourceNotFoundError) as gone:
        queue.delete_message(again)
    assert code_of(gone) == "MessageNotFound"
    assert queue.get_queue_properties().approximate_message_count == 0


def test_messages_are_received_in_their_order_and_in_pages(queue: QueueClient) -> None:
    for number in range(40):
        queue.send_message(f"{number}")
    assert texts(queue.peek_messages(32)) == [f"{number}" for number in range(32)]
    first = list(queue.receive_messages(messages_per_page=5, max_messages=10))
    assert texts(first) == [f"{number}" for number in range(10)]
    pages = [texts(page) for page in queue.receive_messages(messages_per_page=8).by_page()]
    assert [len(page) for page in pages] == [8, 8, 8, 6]
    assert [text for page in pages for text in page] == [f"{number}" for number in range(10, 40)]
    queue.clear_messages()
    assert queue.get_queue_properties().approximate_message_count == 0
    assert queue.receive_message() is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " spaces \n lines \t",
        "carriage\r\nreturns\r",
        "<a href='x'>&amp; \"quoted\" ]]></a>",
        "&#13;&lt;",
        "\u00fcml\u00e4ut \U0001f600 \u554a",
        "\x7f\x85\u2028",
        "x" * 65536,
        "<" * 65536,
        "\u00e9" * 32768,
    ],
    ids=["empty", "spaces", "returns", "markup", "escaped", "unicode", "controls", "long", "long markup", "long é"],
)
def test_a_text_arrives_as_it_was_sent(queue: QueueClient, text: str) -> None:
    queue.send_message(text)
    (peeked,) = queue.peek_messages()
    taken = queue.receive_message()
    assert taken is not None
    assert (peeked.content or "") == text
    assert (taken.content or "") == text
    queue.update_message(taken, content=text, visibility_timeout=0)
    renewed = queue.receive_message()
    assert renewed is not None
    assert (renewed.content or "") == text


def test_bytes_arrive_in_base64(queues: QueueServer) -> None:
    name = queues.new_queue().queue_name
    queue = queues.service().get_queue_client(
        name, message_encode_policy=BinaryBase64EncodePolicy(), message_decode_policy=BinaryBase64DecodePolicy()
    )
    queue.send_message(bytes(range(256)))
    taken = queue.receive_message()
    assert taken is not None
    assert taken.content == bytes(range(256))
    queue.delete_queue()


@pytest.mark.parametrize("text", ["x" * 65537, "\u00e9" * 32769])
def test_a_text_that_is_too_long_is_refused(queue: QueueClient, text: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        queue.send_message(text)
    assert (refused.value.status_code, code_of(refused)) == (413, "RequestBodyTooLarge")
    assert queue.get_queue_properties().approximate_message_count == 0


def test_a_message_has_its_times(queue: QueueClient) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    week = queue.send_message("a week")
    for_ever = queue.send_message("for ever", time_to_live=-1)
    later = queue.send_message("later", visibility_timeout=3600, time_to_live=7200)
    assert before <= week.inserted_on <= before + HOUR
    assert week.expires_on - week.inserted_on == timedelta(days=7)
    assert for_ever.expires_on.year == 9999
    assert later.next_visible_on - later.inserted_on == HOUR
    assert later.expires_on - later.inserted_on == 2 * HOUR
    assert texts(queue.receive_messages(max_messages=3)) == ["a week", "for ever"]
    assert queue.get_queue_properties().approximate_message_count == 3
    # The receipt of the put is good for an update.
    queue.update_message(later.id, later.pop_receipt, visibility_timeout=0)
    assert texts(queue.peek_messages(5)) == ["later"]


def taken_twice(queue: QueueClient, *, seconds: int) -> QueueMessage | None:
    """Put a message that lives so long and take it twice; None if it has expired before."""
    queue.send_message("short", time_to_live=seconds)
    first, second = queue.receive_message(visibility_timeout=1), None
    while second is None and queue.get_queue_properties().approximate_message_count:
        second = queue.receive_message(visibility_timeout=1)
    return None if first is None else second


def test_a_message_comes_back_and_expires(queue: QueueClient) -> None:
    # A machine that stands still for a moment gets a message that lives longer.
    second = next(filter(None, (taken_twice(queue, seconds=seconds) for seconds in (3, 10, 30, 100))))
    assert second.dequeue_count == 2
    while queue.get_queue_properties().approximate_message_count:
        pass
    assert queue.receive_message() is None
    with pytest.raises(ResourceNotFoundError):
        queue.delete_message(second)


@pytest.mark.parametrize(
    "options",
    [
        {"time_to_live": 0},
        {"time_to_live": -2},
        {"visibility_timeout": -1},
        {"visibility_timeout": 604801},
        {"visibility_timeout": 60, "time_to_live": 60},
    ],
)
def test_times_out_of_range_are_refused(queue: QueueClient, options: dict[str, int]) -> None:
    # The client refuses some itself.
    with pytest.raises((HttpResponseError, ValueError)):
        queue.send_message("x", **options)
    assert queue.get_queue_properties().approximate_message_count == 0


def test_a_get_out_of_range_is_refused(queue: QueueClient) -> None:
    with pytest.raises(HttpResponseError) as refused:
        list(queue.receive_messages(messages_per_page=33))
    assert code_of(refused) == "OutOfRangeQueryParameterValue"
    with pytest.raises(HttpResponseError):
        queue.receive_message(visibility_timeout=0)


def test_consumers_at_once_get_different_messages(queues: QueueServer) -> None:
    name = queues.new_queue().queue_name
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(queues.service().get_queue_client(name).send_message, map(str, range(160))))

        def consume(_: int) -> list[str]:
            own, taken = queues.service().get_queue_client(name), list[str]()
            for message in own.receive_messages():
                own.delete_message(message)
                taken.append(message.content)
            return taken

        consumed = [text for taken in pool.map(consume, range(8)) for text in taken]
    assert sorted(consumed) == sorted(map(str, range(160)))
    queues.service().delete_queue(name)


def test_no_get_comes_back_empty_while_messages_are_visible(queues: QueueServer) -> None:
    name = queues.new_queue().queue_name
    together = threading.Barrier(16)

    def get(_: int) -> list[QueueMessage]:
        own = queues.service().get_queue_client(name)
        own.peek_messages()
        together.wait(60)
        return list(own.receive_messages(max_messages=2))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(queues.service().get_queue_client(name).send_message, map(str, range(100))))
        taken = list(pool.map(get, range(16)))
    assert [len(messages) for messages in taken] == [2] * 16
    assert len({message.id for messages in taken for message in messages}) == 32
    queues.service().delete_queue(name)


# --- the service ------------------------------------------------------------------------------------------------------


def test_service_properties_are_kept(queues: QueueServer) -> None:
    service = queues.of_new_account().service()
    assert service.get_service_properties()["cors"] == []
    service.set_service_properties(
        analytics_logging=QueueAnalyticsLogging(read=True, retention_policy=RetentionPolicy(enabled=True, days=5)),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=6)),
        cors=[CorsRule(["https://a.example"], ["GET"], max_age_in_seconds=7)],
    )
    service.set_service_properties(minute_metrics=Metrics(enabled=True, include_apis=False))
    found = service.get_service_properties()
    assert found["analytics_logging"].read
    assert found["analytics_logging"].retention_policy.days == 5
    assert found["hour_metrics"].retention_policy.days == 6
    assert found["minute_metrics"].enabled
    assert found["cors"][0].max_age_in_seconds == 7


def test_the_secondary_location_answers_reads_only(queues: QueueServer) -> None:
    server = queues.of_new_account()
    assert server.service().get_service_stats()["geo_replication"]["status"] == "live"
    stats = "?restype=service&comp=stats&" + account_sas(server, "r", "s")
    assert b"<Status>live</Status>" in server.raw("GET", f"/{server.account}-secondary/{stats}").body
    assert server.raw("GET", f"/{server.account}/{stats}").status == 400
    queue = server.new_queue()
    queue.send_message("x")
    secondary = QueueClient(server.secondary_endpoint, queue.queue_name, server.credential, retry_total=0)
    assert texts(secondary.peek_messages()) == ["x"]
    for call in (secondary.receive_message, lambda: secondary.send_message("y"), secondary.clear_messages):
        with pytest.raises(HttpResponseError) as refused:
            call()
        assert refused.value.status_code == 403
    assert queue.get_queue_properties().approximate_message_count == 1


# --- who may do what --------------------------------------------------------------------------------------------------


def account_sas(queues: QueueServer, permission: str, types: str) -> str:
    return generate_account_sas(
        queues.account,
        queues.key,
        ResourceTypes.from_string(types),
        AccountSasPermissions.from_string(permission),
        datetime.now(UTC) + HOUR,
        services=Services(queue=True),
    )


def test_a_wrong_key_is_refused(queues: QueueServer) -> None:
    wrong = {"account_name": queues.account, "account_key": "d3Jvbmc="}
    service = QueueServiceClient(queues.endpoint, wrong, retry_total=0)
    with pytest.raises(ClientAuthenticationError):
        list(service.list_queues())


def queue_sas(queues: QueueServer, queue: QueueClient, permission: str, **more: object) -> QueueClient:
    token = generate_queue_sas(
        queues.account,
        queue.queue_name,
        queues.key,
        permission=QueueSasPermissions.from_string(permission),
        expiry=datetime.now(UTC) + HOUR,
        **more,  # type: ignore[arg-type]  # passed through
    )
    return QueueClient(queues.endpoint, queue.queue_name, token, retry_total=0)


def test_a_signature_for_a_queue_permits_what_it_names(queues: QueueServer, queue: QueueClient) -> None:
    adder = queue_sas(queues, queue, "a")
    adder.send_message("by signature")
    for refused in (adder.receive_message, adder.peek_messages, adder.clear_messages, adder.delete_queue):
        with pytest.raises(HttpResponseError) as problem:
            refused()
        assert (problem.value.status_code, code_of(problem)) == (403, "AuthorizationPermissionMismatch")
    reader = queue_sas(queues, queue, "r")
    assert texts(reader.peek_messages()) == ["by signature"]
    assert reader.get_queue_properties().approximate_message_count == 1
    with pytest.raises(HttpResponseError):
        reader.receive_message()
    processor = queue_sas(queues, queue, "p")
    taken = processor.receive_message()
    assert taken is not None
    with pytest.raises(HttpResponseError):
        processor.update_message(taken, visibility_timeout=0)
    renewed = queue_sas(queues, queue, "u").update_message(taken, visibility_timeout=1)
    processor.delete_message(renewed.id, renewed.pop_receipt)
    other = queues.new_queue()
    with pytest.raises(ClientAuthenticationError):
        QueueClient(queues.endpoint, other.queue_name, adder.credential or adder.url.partition("?")[2]).send_message(
            "x"
        )
    other.delete_queue()


def test_a_signature_by_a_stored_policy_ends_with_it(queues: QueueServer, queue: QueueClient) -> None:
    policy = AccessPolicy(permission="ap", start=datetime.now(UTC) - HOUR, expiry=datetime.now(UTC) + HOUR)
    queue.set_queue_access_policy({"both": policy, "empty": AccessPolicy()})
    stored = queue.get_queue_access_policy()
    assert set(stored) == {"both", "empty"}
    assert stored["both"].permission == "ap"
    token = generate_queue_sas(queues.account, queue.queue_name, queues.key, policy_id="both")
    client = QueueClient(queues.endpoint, queue.queue_name, token, retry_total=0)
    client.send_message("x")
    queue.set_queue_access_policy({})
    assert queue.get_queue_access_policy() == {}
    with pytest.raises(ClientAuthenticationError):
        client.send_message("y")
    with pytest.raises(HttpResponseError, match="at most five"):
        queue.set_queue_access_policy({f"id{number}": policy for number in range(6)})


def test_a_signature_for_the_account_permits_what_it_names(queues: QueueServer, queue: QueueClient) -> None:
    def service(permission: str, types: str) -> QueueServiceClient:
        return QueueServiceClient(queues.endpoint, account_sas(queues, permission, types), retry_total=0)

    name = queue.queue_name
    assert name in [found.name for found in service("l", "s").list_queues(name)]
    service("a", "o").get_queue_client(name).send_message("x")
    taken = service("p", "o").get_queue_client(name).receive_message()
    assert taken is not None
    service("d", "o").get_queue_client(name).clear_messages()
    with pytest.raises(HttpResponseError) as wrong_type:
        list(service("l", "co").list_queues())
    assert code_of(wrong_type) == "AuthorizationResourceTypeMismatch"
    with pytest.raises(HttpResponseError) as wrong_permission:
        service("r", "sco").get_queue_client(name).send_message("x")
    assert code_of(wrong_permission) == "AuthorizationPermissionMismatch"
    with pytest.raises(HttpResponseError):
        service("rwdlacup", "sco").get_queue_client(name).get_queue_access_policy()


# --- addresses, malformed requests ------------------------------------------------------------------------------------


def test_the_host_may_name_the_account(queues: QueueServer, queue: QueueClient) -> None:
    token = queue_sas(queues, queue, "ar").url.partition("?")[2]
    head = {"host": f"{queues.account}.queue.localhost:{queues.port}"}
    path = f"/{queue.queue_name}/messages?{token}"
    body = b"<QueueMessage><MessageText>by host</MessageText></QueueMessage>"
    assert queues.raw("POST", path, body, head).status == 201
    assert texts(queue.peek_messages()) == ["by host"]


BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbb">]><QueueMessage><MessageText>&b;</MessageText></QueueMessage>'
)


@pytest.mark.parametrize(
    "body",
    [b"", b"text", b"<QueueMessage>", b"<Other/>", b"<QueueMessage/>", BOMB, b"<QueueMessage><MessageText>\x01"],
    ids=["empty", "text", "cut", "another root", "no text", "entities", "control character"],
)
def test_a_malformed_message_is_refused(queues: QueueServer, queue: QueueClient, body: bytes) -> None:
    token = queue_sas(queues, queue, "a").url.partition("?")[2]
    reply = queues.raw("POST", f"/{queues.account}/{queue.queue_name}/messages?{token}", body)
    assert reply.status == 400
    assert b"<Code>InvalidXmlDocument</Code>" in reply.body


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        ("00000000-0000-0000-0000-000000000000?", "MissingRequiredQueryParameter"),
        ("00000000-0000-0000-0000-000000000000?popreceipt=x", "InvalidQueryParameterValue"),
        ("xyz?popreceipt=AAAAAAAAAAAAAAAAAAAAAA%3D%3D", "MessageNotFound"),
        ("00000000-0000-0000-0000-000000000000?popreceipt=AAAAAAAAAAAAAAAAAAAAAA%3D%3D", "MessageNotFound"),
    ],
)
def test_a_malformed_receipt_is_refused(queues: QueueServer, queue: QueueClient, rest: str, code: str) -> None:
    token = queue_sas(queues, queue, "p").url.partition("?")[2]
    reply = queues.raw("DELETE", f"/{queues.account}/{queue.queue_name}/messages/{rest}&{token}")
    assert f"<Code>{code}</Code>".encode() in reply.body


# --- restarts ---------------------------------------------------------------------------------------------------------


def test_queues_messages_and_receipts_survive_a_restart(tmp_path: Path) -> None:
    with running_queues(tmp_path / "data") as queues:
        queue = queues.service().create_queue("kept", metadata={"a": "b"})
        queue.send_message("taken")
        queue.send_message("waits", time_to_live=-1)
        taken = queue.receive_message(visibility_timeout=3600)
        assert taken is not None
    with running_queues(tmp_path / "data") as queues:
        queue = queues.service().get_queue_client("kept")
        assert queue.get_queue_properties().approximate_message_count == 2
        assert queue.get_queue_properties().metadata == {"a": "b"}
        queue.delete_message(taken)
        assert texts(queue.receive_messages()) == ["waits"]

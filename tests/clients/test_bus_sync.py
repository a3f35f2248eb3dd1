"""Service Bus through the official client for Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from azure.servicebus import (
    NEXT_AVAILABLE_SESSION,
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceivedMessage,
    ServiceBusReceiveMode,
    ServiceBusSubQueue,
)
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessageSizeExceededError,
    MessagingEntityDisabledError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    ServiceBusError,
    SessionCannotBeLockedError,
)
from azure.servicebus.management import CorrelationRuleFilter, EntityStatus, SqlRuleAction, SqlRuleFilter

from tests.clients.messaging_server import WAIT_SECONDS, MessagingServer


@contextmanager
def sending(messaging: MessagingServer) -> Iterator[tuple[ServiceBusClient, str]]:
    """Yield a client and a new queue."""
    with messaging.client() as client:
        yield client, messaging.new_queue()


def send(client: ServiceBusClient, queue: str, *messages: ServiceBusMessage) -> None:
    with client.get_queue_sender(queue) as sender:
        sender.send_messages(list(messages))


def bodies(messages: list[ServiceBusReceivedMessage]) -> list[str]:
    return [str(message) for message in messages]


def test_a_message_is_received_once_and_completed(messaging: MessagingServer) -> None:
    with sending(messaging) as (client, queue):
        send(client, queue, ServiceBusMessage("hello", message_id="m", subject="s", application_properties={"a": 1}))
        with client.get_queue_receiver(queue) as receiver:
            (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
            assert (str(message), message.message_id, message.subject) == ("hello", "m", "s")
            assert message.application_properties == {b"a": 1}
            assert (message.sequence_number, message.delivery_count) == (1, 0)
            receiver.complete_message(message)
            assert receiver.receive_messages(max_wait_time=1) == []
            assert receiver.peek_messages() == []


def test_messages_keep_their_order(messaging: MessagingServer) -> None:
    with sending(messaging) as (client, queue):
        send(client, queue, *(ServiceBusMessage(str(number)) for number in range(200)))
        received: list[str] = []
        with client.get_queue_receiver(queue, prefetch_count=50) as receiver:
            while len(received) < 200:
                for message in receiver.receive_messages(max_message_count=40, max_wait_time=WAIT_SECONDS):
                    received.append(str(message))
                    receiver.complete_message(message)
        assert received == [str(number) for number in range(200)]


def test_an_abandoned_message_comes_back_with_its_count(messaging: MessagingServer) -> None:
    with sending(messaging) as (client, queue), client.get_queue_receiver(queue) as receiver:
        send(client, queue, ServiceBusMessage("again"))
        (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
        receiver.abandon_message(message)
        (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
        assert message.delivery_count == 1


def test_a_dead_letter_has_its_reason(messaging: MessagingServer) -> None:
    with sending(messaging) as (client, queue), client.get_queue_receiver(queue) as receiver:
        send(client, queue, ServiceBusMessage("bad", application_properties={"kept": "yes"}))
        (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
        receiver.dead_letter_message(message, reason="broken", error_description="beyond repair")
        with client.get_queue_receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead_letters:
            (dead,) = dead_letters.receive_messages(max_wait_time=WAIT_SECONDS)
            assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("broken", "beyond repair")
            assert dead.application_properties is not None
            assert dead.application_properties[b"kept"] == b"yes"
            dead_letters.complete_message(dead)


def test_too_many_deliveries_end_in_the_dead_letter_queue(messaging: MessagingServer) -> None:
    queue = messaging.new_queue(max_delivery_count=2)
    with messaging.client() as client, client.get_queue_receiver(queue) as receiver:
        send(client, queue, ServiceBusMessage("bad"))
        for _ in range(2):
            (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
            receiver.abandon_message(message)
        with client.get_queue_receiver(queue, sub_queue="deadletter") as dead_letters:
            (dead,) = dead_letters.receive_messages(max_wait_time=WAIT_SECONDS)
            assert dead.dead_letter_reason == "MaxDeliveryCountExceeded"


def test_a_deferred_message_is_received_by_its_number(messaging: MessagingServer) -> None:
    with sending(messaging) as (client, queue), client.get_queue_receiver(queue) as receiver:
        send(client, queue, ServiceBusMessage("later"))
        (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
        receiver.defer_message(message)
        number = message.sequence_number
        assert number is not None
        assert receiver.receive_messages(max_wait_time=1) == []
        (deferred,) = receiver.receive_deferred_messages(number)
        assert str(deferred) == "later"
        receiver.complete_message(deferred)
        with pytest.raises(ServiceBusError):
            receiver.receive_deferred_messages(number)


def test_peeking_shows_messages_of_every_state_and_locks_none(messaging: MessagingServer) -> None:
    with sending(messaging) as (client, queue), client.get_queue_receiver(queue) as receiver:
        send(client, queue, ServiceBusMessage("a"), ServiceBusMessage("b"))
        with client.get_queue_sender(queue) as sender:
            sender.schedule_messages(ServiceBusMessage("c"), datetime.now(UTC) + timedelta(hours=1))
        receiver.receive_messages(max_wait_time=WAIT_SECONDS)
        # Without a number, the client goes on behind what it has received.
        assert bodies(receiver.peek_messages(max_message_count=10, sequence_number=1)) == ["a", "b", "c"]
        assert bodies(receiver.peek_messages(max_message_count=1, sequence_number=2)) == ["b"]


def test_a_scheduled_message_is_canceled_or_comes_in_time(messaging: MessagingServer) -> None:
    with sending(messaging) as (client, queue):
        soon = datetime.now(UTC) + timedelta(seconds=2)
        with client.get_queue_sender(queue) as sender:
            canceled, kept = sender.schedule_messages([ServiceBusMessage("no"), ServiceBusMessage("yes")], soon)
            sender.cancel_scheduled_messages(canceled)
        with client.get_queue_receiver(queue) as receiver:
            (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
            assert (str(message), message.sequence_number) == ("yes", kept)
            assert message.enqueued_time_utc is not None
            assert message.enqueued_time_utc.replace(tzinfo=UTC) >= soon - timedelta(milliseconds=1)


def test_an_expired_message_is_dead_lettered(messaging: MessagingServer) -> None:
    queue = messaging.new_queue(dead_lettering_on_message_expiration=True)
    with messaging.client() as client:
        send(client, queue, ServiceBusMessage("old", time_to_live=timedelta(seconds=1)))
        with client.get_queue_receiver(queue, sub_queue="deadletter") as receiver:
            (dead,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
            assert dead.dead_letter_reason == "TTLExpiredException"


def test_a_deleting_receiver_has_nothing_to_settle(messaging: MessagingServer) -> None:
    with sending(messaging) as (client, queue):
        send(client, queue, ServiceBusMessage("once"))
        mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
        with client.get_queue_receiver(queue, receive_mode=mode) as receiver:
            assert bodies(receiver.receive_messages(max_wait_time=WAIT_SECONDS)) == ["once"]
            assert receiver.peek_messages() == []


def test_a_lock_is_renewed_and_ends(messaging: MessagingServer) -> None:
    queue = messaging.new_queue(lock_duration=timedelta(seconds=5))
    with messaging.client() as client, client.get_queue_receiver(queue) as receiver:
        send(client, queue, ServiceBusMessage("locked"))
        (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
        first = message.locked_until_utc
        assert first is not None
        assert receiver.renew_message_lock(message) >= first
        with client.get_queue_receiver(queue) as other:
            (again,) = other.receive_messages(max_wait_time=WAIT_SECONDS)
            assert again.delivery_count == 1
            with pytest.raises(MessageLockLostError):
                receiver.complete_message(message)
            other.complete_message(again)


def test_a_lock_survives_its_link(messaging: MessagingServer) -> None:
    with sending(messaging) as (client, queue):
        send(client, queue, ServiceBusMessage("a"))
        with client.get_queue_receiver(queue) as receiver:
            (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
        with client.get_queue_receiver(queue) as receiver:
            assert receiver.receive_messages(max_wait_time=1) == []
        assert message.delivery_count == 0


def test_messages_of_many_frames_arrive_whole(messaging: MessagingServer) -> None:
    with sending(messaging) as (client, queue):
        body = bytes(range(256)) * 1000
        send(client, queue, ServiceBusMessage(body))
        with client.get_queue_receiver(queue) as receiver:
            (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
            assert b"".join(message.body) == body


def test_a_message_that_is_too_large_is_refused(messaging: MessagingServer) -> None:
    with sending(messaging) as (client, queue), client.get_queue_sender(queue) as sender:
        with pytest.raises((MessageSizeExceededError, ValueError)):
            sender.send_messages(ServiceBusMessage(b"x" * 300_000))
        sender.send_messages(ServiceBusMessage("small"))


def test_a_duplicate_is_taken_and_dropped(messaging: MessagingServer) -> None:
    queue = messaging.new_queue(requires_duplicate_detection=True)
    with messaging.client() as client:
        for body in ("first", "second"):
            send(client, queue, ServiceBusMessage(body, message_id="same"))
        with client.get_queue_receiver(queue) as receiver:
            assert bodies(receiver.peek_messages(max_message_count=10)) == ["first"]


# --- sessions -------------------------------------------------------------------------------------------------------


def test_a_session_is_read_in_order_by_its_holder_only(messaging: MessagingServer) -> None:
    queue = messaging.new_queue(requires_session=True)
    with messaging.client() as client:
        send(client, queue, *(ServiceBusMessage(f"{name}{n}", session_id=name) for n in range(3) for name in "ab"))
        with client.get_queue_receiver(queue, session_id="a") as receiver:
            with pytest.raises(SessionCannotBeLockedError), client.get_queue_receiver(queue, session_id="a"):
                pass
            received: list[str] = []
            while len(received) < 3:
                for message in receiver.receive_messages(max_message_count=3, max_wait_time=WAIT_SECONDS):
                    received.append(str(message))
                    receiver.complete_message(message)
            assert received == ["a0", "a1", "a2"]
            session = receiver.session
            assert session.get_state() is None
            session.set_state(b"half way")
            assert session.get_state() == b"half way"
            assert session.renew_lock() is not None
        with client.get_queue_receiver(queue, session_id="a") as receiver:
            assert receiver.session.get_state() == b"half way"


def test_the_next_available_session_is_waited_for(messaging: MessagingServer) -> None:
    queue = messaging.new_queue(requires_session=True)
    with messaging.client() as client:
        with (
            pytest.raises(OperationTimeoutError),
            client.get_queue_receiver(queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=1),
        ):
            pass
        send(client, queue, ServiceBusMessage("x", session_id="only"))
        with client.get_queue_receiver(queue, session_id=NEXT_AVAILABLE_SESSION) as receiver:
            assert receiver.session.session_id == "only"


def test_messages_without_a_session_are_refused_where_sessions_are_required(messaging: MessagingServer) -> None:
    queue = messaging.new_queue(requires_session=True)
    with messaging.client() as client:
        with client.get_queue_sender(queue) as sender, pytest.raises(ServiceBusError):
            sender.send_messages(ServiceBusMessage("no session"))
        with pytest.raises(ServiceBusError), client.get_queue_receiver(queue) as receiver:
            receiver.receive_messages(max_wait_time=1)


# --- topics ---------------------------------------------------------------------------------------------------------


def test_subscriptions_get_copies_by_their_rules(messaging: MessagingServer) -> None:
    topic = messaging.new_topic("all", "large", "red")
    with messaging.administration() as administration:
        for name in ("large", "red"):
            administration.delete_rule(topic, name, "$Default")
        administration.create_rule(
            topic, "large", "size", filter=SqlRuleFilter("size > 10"), action=SqlRuleAction("SET seen = 'yes'")
        )
        administration.create_rule(topic, "red", "color", filter=CorrelationRuleFilter(properties={"color": "red"}))
    with messaging.client() as client:
        with client.get_topic_sender(topic) as sender:
            sender.send_messages(
                [
                    ServiceBusMessage("a", application_properties={"size": 5, "color": "red"}),
                    ServiceBusMessage("b", application_properties={"size": 50, "color": "blue"}),
                ]
            )
        found = {}
        for name in ("all", "large", "red"):
            with client.get_subscription_receiver(topic, name) as receiver:
                found[name] = receiver.peek_messages(max_message_count=10)
        assert {name: bodies(messages) for name, messages in found.items()} == {
            "all": ["a", "b"],
            "large": ["b"],
            "red": ["a"],
        }
        assert found["large"][0].application_properties is not None
        assert found["large"][0].application_properties[b"seen"] == b"yes"


# --- partitioned entities -------------------------------------------------------------------------------------------


def test_a_partitioned_queue_keeps_the_order_of_a_key(messaging: MessagingServer) -> None:
    queue = messaging.new_queue(enable_partitioning=True)
    with messaging.client() as client:
        for key in ("a", "b", "c"):
            send(client, queue, *(ServiceBusMessage(f"{key}{n}", partition_key=key) for n in range(5)))
        send(client, queue, *(ServiceBusMessage(f"-{n}") for n in range(5)))
        received: list[str] = []
        with client.get_queue_receiver(queue) as receiver:
            while len(received) < 20:
                for message in receiver.receive_messages(max_message_count=20, max_wait_time=WAIT_SECONDS):
                    received.append(str(message))
                    receiver.complete_message(message)
        for key in ("a", "b", "c"):
            assert [body for body in received if body.startswith(key)] == [f"{key}{n}" for n in range(5)]
        assert len(set(received)) == 20


# --- ways to connect, and refusals ----------------------------------------------------------------------------------


def test_tls_serves_the_same_entities(messaging: MessagingServer) -> None:
    queue = messaging.new_queue()
    with messaging.tls_client() as client:
        send(client, queue, ServiceBusMessage("by TLS"))
        with client.get_queue_receiver(queue) as receiver:
            assert bodies(receiver.receive_messages(max_wait_time=WAIT_SECONDS)) == ["by TLS"]


def test_websockets_serve_the_same_entities(messaging: MessagingServer) -> None:
    queue = messaging.new_queue()
    with messaging.websocket_client() as client:
        send(client, queue, ServiceBusMessage("by websocket"))
        with client.get_queue_receiver(queue) as receiver:
            assert bodies(receiver.receive_messages(max_wait_time=WAIT_SECONDS)) == ["by websocket"]


def test_a_wrong_key_and_a_missing_entity_are_told_apart_from_nothing(messaging: MessagingServer) -> None:
    queue = messaging.new_queue()
    for string, name in ((messaging.connection_string(key="wrong"), queue), (messaging.connection_string(), "missing")):
        with (
            ServiceBusClient.from_connection_string(string) as client,
            pytest.raises(ServiceBusAuthenticationError),
            client.get_queue_sender(name) as sender,
        ):
            sender.send_messages(ServiceBusMessage("x"))


def test_a_disabled_queue_refuses_and_goes_on_when_it_is_enabled(messaging: MessagingServer) -> None:
    queue = messaging.new_queue()
    with messaging.administration() as administration, messaging.client(retry_total=0) as client:
        description = administration.get_queue(queue)
        description.status = EntityStatus.SEND_DISABLED
        administration.update_queue(description)
        with pytest.raises(MessagingEntityDisabledError), client.get_queue_sender(queue) as sender:
            sender.send_messages(ServiceBusMessage("x"))
        description.status = EntityStatus.ACTIVE
        administration.update_queue(description)
        send(client, queue, ServiceBusMessage("x"))

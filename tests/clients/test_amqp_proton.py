"""Features that the official clients for Python do not have, through another client of AMQP 1.0: SASL PLAIN and
transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from azure.servicebus import ServiceBusMessage
from proton import ConnectionException, Delivery, Message, ulong
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container
from proton.utils import BlockingConnection, LinkDetached, SendException

from tests.clients.messaging_server import KEY, KEY_NAME, WAIT_SECONDS, MessagingServer

TRANSACTIONAL_STATE = 0x34


@contextmanager
def connected(messaging: MessagingServer, *, key: str = KEY) -> Iterator[BlockingConnection]:
    connection = BlockingConnection(
        f"amqp://localhost:{messaging.amqp_port}",
        timeout=WAIT_SECONDS,
        user=KEY_NAME,
        password=key,
        allowed_mechs="PLAIN",
        allow_insecure_mechs=True,
    )
    try:
        yield connection
    finally:
        connection.close()


def peeked(messaging: MessagingServer, queue: str) -> list[str]:
    with messaging.client() as client, client.get_queue_receiver(queue) as receiver:
        return [str(message) for message in receiver.peek_messages(max_message_count=50)]


def sent(messaging: MessagingServer, queue: str, *bodies: str) -> None:
    with messaging.client() as client, client.get_queue_sender(queue) as sender:
        sender.send_messages([ServiceBusMessage(body) for body in bodies])


def test_a_key_opens_a_connection_without_tokens(messaging: MessagingServer) -> None:
    queue = messaging.new_queue()
    with connected(messaging) as connection:
        connection.create_sender(queue).send(Message("by proton"))
        receiver = connection.create_receiver(queue)
        assert receiver.receive(timeout=WAIT_SECONDS).body == "by proton"
        receiver.accept()
    assert peeked(messaging, queue) == []


def test_a_wrong_key_opens_none(messaging: MessagingServer) -> None:
    with pytest.raises(ConnectionException), connected(messaging, key="wrong"):
        pass


def test_a_missing_node_is_not_attached(messaging: MessagingServer) -> None:
    with connected(messaging) as connection, pytest.raises(LinkDetached, match="not-found"):
        connection.create_sender("missing")


def test_a_refused_message_is_rejected(messaging: MessagingServer) -> None:
    queue = messaging.new_queue(requires_session=True)
    with connected(messaging) as connection, pytest.raises(SendException):
        connection.create_sender(queue).send(Message("no session"))


# --- transactions ---------------------------------------------------------------------------------------------------


class Worker(MessagingHandler, TransactionHandler):
    """Declares a transaction, sends, completes what it receives in it, and ends it in one of two ways."""

    def __init__(
        self, messaging: MessagingServer, sends: list[tuple[str, str]], completes: str, *, commits: bool
    ) -> None:
        super().__init__(prefetch=0, auto_accept=False)
        self.url = f"amqp://localhost:{messaging.amqp_port}"
        self.sends, self.completes, self.commits = sends, completes, commits
        self.outcomes: list[str] = []
        self.transaction: Any = None
        self.connection: Any = None

    def on_start(self, event: Any) -> None:
        self.container = event.container
        self.connection = self.container.connect(
            self.url, user=KEY_NAME, password=KEY, allowed_mechs="PLAIN", allow_insecure_mechs=True, reconnect=False
        )
        self.container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event: Any) -> None:
        self.transaction = event.transaction
        if self.completes:
            self.container.create_receiver(self.connection, self.completes).flow(1)
        else:
            self.send_all()

    def on_message(self, event: Any) -> None:
        self.transaction.accept(event.delivery)
        self.send_all()

    def send_all(self) -> None:
        self.senders = [(self.container.create_sender(self.connection, address), body) for address, body in self.sends]
        if not self.senders:
            self.end()

    def on_sendable(self, event: Any) -> None:
        for sender, body in self.senders:
            if sender == event.sender:
                self.transaction.send(sender, Message(body.encode(), inferred=True))
                self.senders.remove((sender, body))
                return

    def on_settled(self, event: Any) -> None:
        delivery = event.delivery
        if event.sender is None or delivery.remote_state != TRANSACTIONAL_STATE:
            return
        # Proton leaves the outcome in a transaction to the program.
        is_accepted = delivery.remote.data[1].descriptor == ulong(Delivery.ACCEPTED)
        self.outcomes.append("accepted" if is_accepted else "rejected")
        if len(self.outcomes) == len(self.sends):
            self.end()

    def end(self) -> None:
        if self.commits:
            self.transaction.commit()
        else:
            self.transaction.abort()

    def on_transaction_committed(self, event: Any) -> None:
        self.outcomes.append("committed")
        event.connection.close()

    def on_transaction_aborted(self, event: Any) -> None:
        self.outcomes.append("aborted")
        event.connection.close()

    def on_transaction_commit_failed(self, event: Any) -> None:
        self.outcomes.append("failed")
        event.connection.close()


def run(worker: Worker) -> list[str]:
    Container(worker).run()
    return worker.outcomes


def test_a_transaction_sends_and_completes_at_once(messaging: MessagingServer) -> None:
    queue = messaging.new_queue()
    sent(messaging, queue, "old")
    worker = Worker(messaging, [(queue, "new")], queue, commits=True)
    assert run(worker) == ["accepted", "committed"]
    assert peeked(messaging, queue) == ["new"]


def test_an_aborted_transaction_leaves_everything_as_it_was(messaging: MessagingServer) -> None:
    queue = messaging.new_queue()
    sent(messaging, queue, "old")
    worker = Worker(messaging, [(queue, "new")], queue, commits=False)
    assert run(worker) == ["accepted", "aborted"]
    assert peeked(messaging, queue) == ["old"]


def test_a_second_entity_is_refused_within_a_transaction(messaging: MessagingServer) -> None:
    first, second = messaging.new_queue(), messaging.new_queue()
    worker = Worker(messaging, [(first, "a"), (second, "b")], "", commits=True)
    outcomes = run(worker)
    assert sorted(outcomes[:2]) == ["accepted", "rejected"]
    assert peeked(messaging, first) + peeked(messaging, second) in (["a"], ["b"])

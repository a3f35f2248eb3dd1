"""A transaction: a message is completed and two that follow from it are sent, all of it or nothing.

The clients for .NET and Java have transactions; this is how a library for AMQP uses them. Needs a queue:

    asterism bus create transfers
"""

from __future__ import annotations

import sys

from proton import Delivery, Event, Message
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container, Transaction

# The name of a rule and its key, as a plain login.
EMULATOR = "amqp://RootManageSharedAccessKey:SAS_KEY_VALUE@localhost:5672"
QUEUE = "transfers"


class Transfer(MessagingHandler, TransactionHandler):
    """Takes a transfer from the queue and sends its two bookings; the first attempt fails half way."""

    def __init__(self, address: str) -> None:
        super().__init__(auto_accept=False, prefetch=0)
        self.bookings: list[str] = []
        self.attempts = 0
        self._address = address
        self._order: tuple[Delivery, str] | None = None

    def on_start(self, event: Event) -> None:
        self._container: Container = event.container
        self._connection = self._container.connect(self._address, allowed_mechs="PLAIN", allow_insecure_mechs=True)
        self._sender = self._container.create_sender(self._connection, QUEUE)
        self._receiver = self._container.create_receiver(self._connection, QUEUE)
        self._sender.send(Message("ada to bob: 5"))
        self._receiver.flow(1)

    def on_message(self, event: Event) -> None:
        text = str(event.message.body)
        if text.startswith("booking"):
            self.bookings.append(text)
            self.accept(event.delivery)
            if len(self.bookings) == 2:
                self._connection.close()
                return
            self._receiver.flow(1)
        else:
            self._order = (event.delivery, text)
            self._container.declare_transaction(self._connection, handler=self)

    def on_transaction_declared(self, event: Event) -> None:
        transaction: Transaction = event.transaction
        self.attempts += 1
        assert self._order is not None
        delivery, text = self._order
        for account in text.partition(":")[0].split(" to "):
            transaction.send(self._sender, Message(f"booking of {account}"))
            if self.attempts == 1:
                transaction.abort()
                return
        transaction.accept(delivery)
        transaction.commit()

    def on_transaction_aborted(self, _event: Event) -> None:
        print("aborted, bookings sent:", len(self.bookings))
        # The transfer is still locked: it can be tried again.
        self._container.declare_transaction(self._connection, handler=self)

    def on_transaction_committed(self, _event: Event) -> None:
        print("committed")
        self._receiver.flow(1)

    def on_transaction_commit_failed(self, _event: Event) -> None:
        raise RuntimeError("the transaction was refused")

    def on_transport_error(self, event: Event) -> None:
        raise ConnectionError(str(event.transport.condition))


def main(address: str) -> None:
    transfer = Transfer(address)
    Container(transfer).run()
    print("attempts:", transfer.attempts, "bookings:", sorted(transfer.bookings))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else EMULATOR)

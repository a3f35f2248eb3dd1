"""Sessions: the messages of an order are handled in their order, by one worker at a time, which keeps notes.

Needs a queue:

    asterism bus create order-steps --sessions
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusMessage, ServiceBusReceiver
from azure.servicebus.exceptions import OperationTimeoutError

EMULATOR = (
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
)
QUEUE = "order-steps"
STEPS = ("placed", "paid", "packed", "shipped")
ORDERS = [f"order-{number}" for number in range(6)]
WORKERS = 2
# A worker leaves a session without messages after the first time, and ends without a session after the second.
IDLE_SECONDS = 1
NO_SESSION_SECONDS = 3


def handle_session(receiver: ServiceBusReceiver) -> None:
    """Handle what is in a session, and append each step to the session's state, which outlives the worker."""
    for message in receiver:
        notes = receiver.session.get_state() or b""
        receiver.session.set_state(notes + str(message).encode() + b" ")
        # Stopped here, the step would be handled again: notes that must not have it twice look at its message id.
        receiver.complete_message(message)


def work(client: ServiceBusClient) -> int:
    sessions = 0
    while True:
        try:
            # Whichever session has messages and is held by no other worker.
            with client.get_queue_receiver(
                QUEUE, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=NO_SESSION_SECONDS
            ) as receiver:
                sessions += 1
                handle_session(receiver)
        except OperationTimeoutError:
            return sessions


def main(connection: str) -> None:
    # By itself, the client would ask for a session several times before it gives up.
    with ServiceBusClient.from_connection_string(connection, retry_total=0) as client:
        with client.get_queue_sender(QUEUE) as sender:
            for step in STEPS:
                # The orders' steps are mixed.
                sender.send_messages([ServiceBusMessage(step, session_id=order) for order in ORDERS])

        with ThreadPoolExecutor(WORKERS) as pool:
            futures = [pool.submit(work, client) for _ in range(WORKERS)]
            print("sessions handled by both workers:", sum(future.result() for future in futures))

        for order in ORDERS[:2]:
            with client.get_queue_receiver(QUEUE, session_id=order) as receiver:
                print(f"{order}: {(receiver.session.get_state() or b'').decode().strip()}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else EMULATOR)

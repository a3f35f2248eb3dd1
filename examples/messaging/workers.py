"""Workers that share a queue: what fails three times becomes a dead letter, is repaired and sent again.

Needs a queue:

    asterism bus create pictures --max-delivery 3
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from azure.servicebus import (
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceivedMessage,
    ServiceBusReceiver,
    ServiceBusSubQueue,
)

EMULATOR = (
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
)
QUEUE = "pictures"
WORKERS = 4
# A worker ends when nothing has come for so long; a real one goes on.
IDLE_SECONDS = 2


def resize(picture: str) -> None:
    if picture.startswith("broken"):
        raise OSError("the disk is slow today")
    if not picture.endswith(".jpg"):
        raise ValueError("not a picture")


def handle(receiver: ServiceBusReceiver, message: ServiceBusReceivedMessage) -> str | None:
    """Handle a message, which no other worker gets before its lock ends; return the picture if it was done."""
    picture = str(message)
    try:
        resize(picture)
    except ValueError as refusal:
        # It will never be done: it goes aside at once, with the reason.
        receiver.dead_letter_message(message, reason="not a picture", error_description=str(refusal))
    except OSError:
        # Perhaps later: it is there again for all, and after the third delivery the server puts it aside.
        receiver.abandon_message(message)
    else:
        # Deleted only now: if the worker had been stopped, the message would come back when its lock ends.
        receiver.complete_message(message)
        return picture
    return None


def work(client: ServiceBusClient) -> list[str]:
    done = []
    with client.get_queue_receiver(QUEUE, max_wait_time=IDLE_SECONDS) as receiver:
        for message in receiver:
            picture = handle(receiver, message)
            if picture is not None:
                done.append(picture)
    return done


def work_together(client: ServiceBusClient) -> list[str]:
    with ThreadPoolExecutor(WORKERS) as pool:
        futures = [pool.submit(work, client) for _ in range(WORKERS)]
        return sorted(picture for future in futures for picture in future.result())


def send_again(client: ServiceBusClient) -> None:
    """Repair dead letters and send them again: first the new message, then the old one is completed."""
    sender = client.get_queue_sender(QUEUE)
    receiver = client.get_queue_receiver(QUEUE, sub_queue=ServiceBusSubQueue.DEAD_LETTER, max_wait_time=IDLE_SECONDS)
    with sender, receiver:
        for message in sorted(receiver, key=str):
            print(f"dead letter {message}: {message.dead_letter_reason}, deliveries: {message.delivery_count}")
            repaired = str(message).replace("broken", "mended").replace(".txt", ".jpg")
            sender.send_messages(ServiceBusMessage(repaired))
            receiver.complete_message(message)


def main(connection: str) -> None:
    with ServiceBusClient.from_connection_string(connection) as client:
        with client.get_queue_sender(QUEUE) as sender:
            pictures = [*(f"{number:02}.jpg" for number in range(40)), "broken.jpg", "notes.txt"]
            sender.send_messages([ServiceBusMessage(picture) for picture in pictures])
        done = work_together(client)
        print("done:", len(done), "once each:", len(done) == len(set(done)))
        send_again(client)
        print("done:", work_together(client))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else EMULATOR)

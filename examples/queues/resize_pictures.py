"""Workers that share a queue: each message is handled, and one that always fails is put aside."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from azure.core.exceptions import ResourceExistsError
from azure.storage.queue import QueueClient, QueueMessage, QueueServiceClient

WORKERS = 4
# After so many attempts a message is taken for one that cannot be handled.
ATTEMPTS_MAX = 3


def resize(picture: str) -> None:
    if picture == "broken.jpg":
        raise ValueError("not a picture")


def handle(pictures: QueueClient, failed: QueueClient, message: QueueMessage) -> bool:
    """Handle a message; return True if it was done."""
    try:
        resize(message.content)
    except ValueError:
        if message.dequeue_count >= ATTEMPTS_MAX:
            failed.send_message(message.content, time_to_live=-1)
            pictures.delete_message(message)
        else:
            # Try again in a second, whichever worker is free then.
            pictures.update_message(message, visibility_timeout=1)
        return False
    # Deleted only now: if the worker had been stopped, the message would come back.
    pictures.delete_message(message)
    return True


def work(pictures: QueueClient, failed: QueueClient) -> int:
    done = 0
    # While messages are left, visible or not.
    while pictures.get_queue_properties().approximate_message_count:
        for message in pictures.receive_messages(messages_per_page=8, visibility_timeout=60):
            done += handle(pictures, failed, message)
    return done


def main(connection_string: str) -> None:
    service = QueueServiceClient.from_connection_string(connection_string)
    for name in ("pictures", "pictures-failed"):
        try:
            service.create_queue(name)
        except ResourceExistsError:
            service.get_queue_client(name).clear_messages()
    pictures, failed = service.get_queue_client("pictures"), service.get_queue_client("pictures-failed")
    for number in range(40):
        pictures.send_message(f"{number:02}.jpg")
    pictures.send_message("broken.jpg")

    with ThreadPoolExecutor(WORKERS) as pool:
        done = sum(pool.map(lambda _: work(pictures, failed), range(WORKERS)))
    print("done:", done)
    print("failed:", [message.content for message in failed.peek_messages(32)])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "UseDevelopmentStorage=true")

"""kill -9 in a loop of puts, gets and deletes, then a restart.

Every acknowledged message is there exactly once unless its delete was sent, none of those whose delete was acknowledged
is, and the count agrees.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from azure.core.exceptions import AzureError, HttpResponseError
from azure.storage.queue import QueueClient

from tests.clients.queue_server import QueueServer, running_queues
from tests.support.raw import wait_until

QUEUE = "jobs"


class Worker:
    """Puts two messages, takes one and deletes it, until the server is gone."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.tried = 0
        self.put: set[str] = set()
        self.taken: set[str] = set()
        self.deleting: set[str] = set()
        self.deleted: set[str] = set()
        self.refusal: HttpResponseError | None = None

    def run(self, queues: QueueServer) -> None:
        try:
            with queues.service().get_queue_client(QUEUE) as queue:
                while True:
                    self._work(queue)
        except HttpResponseError as refusal:
            # Without a status, it is an answer whose end is missing.
            self.refusal = refusal if refusal.status_code is not None else None
        except (AzureError, OSError):
            return

    def _work(self, queue: QueueClient) -> None:
        for _ in range(2):
            self.tried += 1
            text = f"{self.number}-{self.tried}"
            queue.send_message(text, time_to_live=-1)
            self.put.add(text)
        message = queue.receive_message(visibility_timeout=3600)
        if message is not None:
            self.taken.add(message.content)
            self.deleting.add(message.content)
            queue.delete_message(message)
            self.deleted.add(message.content)


def union(workers: list[Worker], name: str) -> set[str]:
    return {text for worker in workers for text in getattr(worker, name)}


def all_messages(queue: QueueClient) -> list[str]:
    return [message.content for message in queue.receive_messages(messages_per_page=32, visibility_timeout=3600)]


@pytest.mark.parametrize("rounds", [3, 25])
def test_acknowledged_messages_survive_a_kill_exactly_once(tmp_path: Path, rounds: int) -> None:
    workers = [Worker(number) for number in range(4)]
    with running_queues(tmp_path / "data") as queues:
        queues.service().create_queue(QUEUE)
        threads = [threading.Thread(target=worker.run, args=(queues,)) for worker in workers]
        for thread in threads:
            thread.start()
        wait_until(lambda: min(len(worker.deleted) for worker in workers) >= rounds)
        queues.running.kill()
        for thread in threads:
            thread.join()
    assert [worker.refusal for worker in workers] == [None] * len(workers)
    # Each message went to a single worker.
    assert len(union(workers, "taken")) == sum(len(worker.taken) for worker in workers)
    with running_queues(tmp_path / "data") as queues:
        queue = queues.service().get_queue_client(QUEUE)
        count = queue.get_queue_properties().approximate_message_count
        visible = all_messages(queue)
        assert len(visible) == len(set(visible))
        assert not union(workers, "deleted") & set(visible)
        # Of each worker, one put, one get or one delete may have been done without an answer.
        missing = union(workers, "put") - union(workers, "deleting") - set(visible)
        assert len(missing) <= len(workers)
        assert len(visible) <= count <= len(visible) + len(missing) + len(union(workers, "deleting"))
        unknown = union(workers, "deleting") - union(workers, "deleted")
        assert count - len(visible) - len(missing) in range(len(unknown) + 1)
        queue.clear_messages()
        assert queue.get_queue_properties().approximate_message_count == 0

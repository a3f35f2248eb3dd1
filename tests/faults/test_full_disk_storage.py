"""Blobs and queues on a disk that becomes full: writes are refused as a whole, reads and deletions continue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.queue import QueueClient

from asterism.limits import KIB, MIB
from tests.clients.blob_server import BlobServer
from tests.clients.queue_server import QueueServer
from tests.support.full_disk import files_limited_to
from tests.support.raw import wait_until
from tests.support.server import RunningServer, running_server

ROOM_MIB = 12
# As large as a blob whose content lies in its record, and is freed with it.
SMALL = bytes(4 * KIB)
BLOCK = bytes(MIB)
TEXT = "m" * 16_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with running_server(
        tmp_path,
        doors=("nosql", "blob", "queue"),
        before_start=files_limited_to(ROOM_MIB * MIB),
        embedded=True,
        alone=True,
    ) as running:
        yield running


def is_full(write: Callable[[], object]) -> bool:
    try:
        write()
    except HttpResponseError as refusal:
        return (refusal.status_code, refusal.error_code) == (507, "InsufficientStorage")
    return False


def write_until_full(write: Callable[[int], object]) -> int:
    """Write until the disk is full; return the number of writes that were acknowledged."""
    return next(number for number in count() if is_full(partial(write, number)))


def names(box: ContainerClient) -> set[str]:
    return {blob.name for blob in box.list_blobs()}


def test_an_upload_for_which_there_is_no_room_leaves_nothing(server: RunningServer) -> None:
    service = BlobServiceClient.from_connection_string(
        BlobServer(server).connection_string, retry_total=0, max_single_put_size=2 * ROOM_MIB * MIB
    )
    box = service.create_container("box")
    box.upload_blob("small", SMALL)
    whole = box.get_blob_client("whole")
    # In one request: its first parts are stored before the disk is full.
    assert is_full(lambda: whole.upload_blob(BLOCK * 2 * ROOM_MIB))
    assert names(box) == {"small"}
    assert box.download_blob("small").readall() == SMALL
    # The store gives room that was freed to one of the next writes.
    assert wait_until(lambda: not is_full(lambda: whole.upload_blob(BLOCK, overwrite=True)))
    assert whole.download_blob().readall() == BLOCK


def test_blobs_of_a_full_disk_are_read_and_deleted(server: RunningServer) -> None:
    box = BlobServer(server).new_container()
    written = write_until_full(lambda number: box.upload_blob(f"{number:05}", SMALL))
    assert names(box) == {f"{number:05}" for number in range(written)}
    assert box.download_blob("00000").readall() == SMALL
    for number in range(written // 2):
        box.delete_blob(f"{number:05}")
    assert names(box) == {f"{number:05}" for number in range(written // 2, written)}
    box.upload_blob("new", SMALL)
    assert box.download_blob("new").readall() == SMALL


def test_blocks_that_were_staged_before_the_disk_was_full_are_committed(server: RunningServer) -> None:
    blob = BlobServer(server).new_container().get_blob_client("blob")
    staged = write_until_full(lambda number: blob.stage_block(f"{number:05}", BLOCK))
    kept = [f"{number:05}" for number in range(staged)]
    assert [block.id for block in blob.get_block_list("uncommitted")[1]] == kept
    blob.commit_block_list(kept[:1])
    assert blob.download_blob().readall() == BLOCK


def received(queue: QueueClient) -> set[str]:
    return {message.content[:5] for message in queue.peek_messages(max_messages=32)}


def test_messages_of_a_full_disk_are_peeked_and_deleted(server: RunningServer) -> None:
    queue = QueueServer(server).new_queue()
    sent = []
    written = write_until_full(lambda number: sent.append(queue.send_message(f"{number:05}{TEXT}")))
    assert received(queue) == {f"{number:05}" for number in range(32)}
    assert queue.get_queue_properties().approximate_message_count == written
    for message in sent[: written // 2]:
        queue.delete_message(message)
    assert queue.get_queue_properties().approximate_message_count == written - written // 2
    taken = queue.receive_message()
    assert taken is not None
    assert taken.content[:5] == f"{written // 2:05}"
    queue.send_message("new")

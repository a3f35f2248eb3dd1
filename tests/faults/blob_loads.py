"""Writes to blobs by one thread until the server is gone, and the check of them after its restart.

A further kind of write is a further class in `LOADS`; copies are apart, as tests kill while one is under way.
"""

from __future__ import annotations

import contextlib
import random
import socket
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from azure.core.exceptions import HttpResponseError, ResourceNotFoundError, ServiceRequestError, ServiceResponseError
from azure.storage.blob import (
    BlobBlock,
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    generate_container_sas,
)

from tests.clients.blob_server import MIB, BlobServer
from tests.support.raw import connect

BOX = "box"
KIB = 1024
# A record of its own, a chunk, and an upload that is stored in several parts.
SIZES = (100, 40 * KIB, 2 * MIB + MIB // 2)
NAMES = 4
PAGE_SLOTS = 6
PAGE_SLOT_BYTES = 64 * KIB
# Above the size that is copied while the request waits.
COPIED_BYTES = 40 * MIB

Data = bytes | None


def data_of(seed: str, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def client_of(blobs: BlobServer) -> ContainerClient:
    """Return a client that sends each upload as one request."""
    service = BlobServiceClient.from_connection_string(blobs.connection_string, retry_total=0)
    return service.get_container_client(BOX)


def content_or_none(blob: BlobClient) -> Data:
    try:
        return bytes(blob.download_blob().readall())
    except ResourceNotFoundError:
        return None


class Load(ABC):
    def __init__(self, number: int) -> None:
        self.number = number
        self.acknowledged = 0
        self.refusal: Exception | None = None

    def run(self, blobs: BlobServer) -> None:
        try:
            self.write(blobs)
        except HttpResponseError as refusal:
            # Without a status, it is an answer whose end is missing.
            self.refusal = refusal if refusal.status_code is not None else None
        except (ServiceRequestError, ServiceResponseError, OSError):
            return

    @abstractmethod
    def write(self, blobs: BlobServer) -> None:
        """Write until an error ends it; raise `acknowledged` after each write."""

    @abstractmethod
    def check(self, box: ContainerClient) -> None: ...


class ReplacedBlobs(Load):
    """Blobs that are replaced all the time: what each has is its old content or its new one, never a part."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.possible: dict[str, list[Data]] = {}

    @contextlib.contextmanager
    def attempt(self, name: str, after: Data) -> Iterator[None]:
        self.possible[name] = [*self.possible.get(name, [None])[-1:], after]
        yield
        self.possible[name] = [after]
        self.acknowledged += 1

    def check(self, box: ContainerClient) -> None:
        listed = {
            blob.name: blob.size for blob in box.list_blobs(name_starts_with=f"{type(self).__name__}{self.number}/")
        }
        found = {name: content_or_none(box.get_blob_client(name)) for name in self.possible}
        for name, content in found.items():
            assert content in self.possible[name], name
        assert listed == {name: len(content) for name, content in found.items() if content is not None}

    def name_of(self, step: int) -> str:
        return f"{type(self).__name__}{self.number}/{step % NAMES}"


class Puts(ReplacedBlobs):
    """Whole blobs of several sizes, overwritten and deleted."""

    def write(self, blobs: BlobServer) -> None:
        box, step = client_of(blobs), 0
        while True:
            step += 1
            name = self.name_of(step)
            data = data_of(f"{name} {step}", SIZES[step % len(SIZES)])
            with self.attempt(name, data):
                box.upload_blob(name, data, overwrite=True)
            if step % 5 == 0:
                with self.attempt(name, None):
                    box.delete_blob(name)


class BlockLists(ReplacedBlobs):
    """Blobs committed from blocks, of which the list after that keeps one."""

    def write(self, blobs: BlobServer) -> None:
        box, step = client_of(blobs), 0
        while True:
            step += 1
            name = self.name_of(step)
            blob = box.get_blob_client(name)
            parts = [data_of(f"{name} {step} {part}", 300 * KIB) for part in range(3)]
            ids = [f"{step:08d}-{part}" for part in range(3)]
            for block_id, part in zip(ids, parts, strict=True):
                blob.stage_block(block_id, part)
            with self.attempt(name, b"".join(parts)):
                blob.commit_block_list([BlobBlock(block_id) for block_id in ids])
            blob.stage_block("9" * 10, b"last")
            with self.attempt(name, parts[2] + b"last"):
                blob.commit_block_list([BlobBlock(ids[2]), BlobBlock("9" * 10)])


class Appends(Load):
    """An append blob: all acknowledged blocks in order, and at most the one more that was under way."""

    def write(self, blobs: BlobServer) -> None:
        blob = client_of(blobs).get_blob_client(f"appends-{self.number}")
        blob.create_append_blob()
        while True:
            blob.append_block(self.block(self.acknowledged))
            self.acknowledged += 1

    def block(self, step: int) -> bytes:
        return data_of(f"append {self.number} {step}", 50 * KIB)

    def check(self, box: ContainerClient) -> None:
        sure = b"".join(map(self.block, range(self.acknowledged)))
        content = content_or_none(box.get_blob_client(f"appends-{self.number}"))
        assert content in (sure, sure + self.block(self.acknowledged))


class Pages(Load):
    """Slots of a page blob, and snapshots of it: a slot has its last content or the one that was under way."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.slots = [[bytes(PAGE_SLOT_BYTES)] for _ in range(PAGE_SLOTS)]
        self.snapshots: dict[str, bytes] = {}

    def write(self, blobs: BlobServer) -> None:
        blob, step = client_of(blobs).get_blob_client(f"pages-{self.number}"), 0
        blob.create_page_blob(PAGE_SLOTS * PAGE_SLOT_BYTES)
        while True:
            step += 1
            slot = step % PAGE_SLOTS
            data = data_of(f"page {self.number} {step}", PAGE_SLOT_BYTES)
            self.slots[slot].append(data)
            blob.upload_page(data, offset=slot * PAGE_SLOT_BYTES, length=PAGE_SLOT_BYTES)
            self.slots[slot] = [data]
            self.acknowledged += 1
            if step % 10 == 0:
                snapshot = blob.create_snapshot()["snapshot"]
                self.snapshots[snapshot] = b"".join(known for (known,) in self.slots)

    def check(self, box: ContainerClient) -> None:
        content = content_or_none(box.get_blob_client(f"pages-{self.number}"))
        assert content is not None
        for slot, possible in enumerate(self.slots):
            assert content[slot * PAGE_SLOT_BYTES : (slot + 1) * PAGE_SLOT_BYTES] in possible
        for snapshot, expected in self.snapshots.items():
            assert content_or_none(box.get_blob_client(f"pages-{self.number}", snapshot=snapshot)) == expected


class Snapshots(Load):
    """A blob that is replaced after each snapshot of it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.snapshots: dict[str, int] = {}

    def write(self, blobs: BlobServer) -> None:
        blob = client_of(blobs).get_blob_client(f"snapshots-{self.number}")
        while True:
            blob.upload_blob(self.content(self.acknowledged), overwrite=True)
            self.snapshots[blob.create_snapshot()["snapshot"]] = self.acknowledged
            self.acknowledged += 1

    def content(self, step: int) -> bytes:
        return data_of(f"snapshot {self.number} {step}", 30 * KIB)

    def check(self, box: ContainerClient) -> None:
        name = f"snapshots-{self.number}"
        listed = {blob.snapshot for blob in box.list_blobs(name, include=["snapshots"])} - {None}
        assert len(listed - self.snapshots.keys()) <= 1
        for snapshot, step in self.snapshots.items():
            assert content_or_none(box.get_blob_client(name, snapshot=snapshot)) == self.content(step)


class Copies(Load):
    """Copies in the background, each begun when the one before is done. After the restart they go on; their data are
    checked when they are over."""

    source = f"copied/{uuid.uuid4()}"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.is_copying = False

    def write(self, blobs: BlobServer) -> None:
        box = client_of(blobs)
        source = box.upload_blob(self.source, data_of(self.source, COPIED_BYTES))
        while True:
            target = box.get_blob_client(f"copies/{self.acknowledged}")
            target.start_copy_from_url(source.url)
            self.acknowledged += 1
            self.is_copying = True
            while target.get_blob_properties().copy.status == "pending":
                time.sleep(0.01)
            self.is_copying = False

    def check(self, box: ContainerClient) -> None:
        states = {blob.name: blob.copy.status for blob in box.list_blobs("copies/", include=["copy"])}
        assert states.keys() >= {f"copies/{number}" for number in range(self.acknowledged)}
        assert len(states) <= self.acknowledged + 1
        assert list(states.values()).count("pending") <= 1
        assert set(states.values()) <= {"pending", "success"}


class CutUploads(Load):
    """Uploads that stop in the middle of the body: nothing of them is ever seen."""

    def write(self, blobs: BlobServer) -> None:
        signature = generate_container_sas(
            blobs.account,
            BOX,
            blobs.key,
            permission=ContainerSasPermissions(write=True, create=True),
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        path = f"/{blobs.account}/{BOX}/cut-{self.number}?{signature}"
        head = (
            f"PUT {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-ms-blob-type: BlockBlob\r\ncontent-length: {8 * MIB}\r\n\r\n"
        )
        with connect(blobs.port) as connection:
            # The rest, apart from the buffer of the server, has been read when all is sent.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * KIB)
            connection.sendall(head.encode() + bytes(5 * MIB))
            self.acknowledged = 1_000_000
            # It stays open until the server is killed.
            with contextlib.suppress(socket.timeout):
                connection.recv(1)

    def check(self, box: ContainerClient) -> None:
        assert list(box.list_blob_names(name_starts_with="cut-")) == []


LOADS: tuple[type[Load], ...] = (Puts, BlockLists, Appends, Pages, Snapshots, CutUploads)

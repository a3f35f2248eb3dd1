"""Requests of the benchmark of queues and blobs, beside what the official client would sign."""

from __future__ import annotations

import hashlib
import os

import pytest
from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.core.pipeline.transport import HttpRequest
from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy

from benchmarks import storage_wire
from benchmarks.large_blob import BLOCK_BYTES, LargeBlob
from benchmarks.memory_watch import watching_memory

KEY_TEXT = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def signature_of_the_client(request: bytes) -> str:
    head = request.partition(b"\r\n\r\n")[0].decode()
    first, *lines = head.split("\r\n")
    verb, target, _ = first.split(" ")
    headers = dict(line.split(": ", 1) for line in lines)
    headers.pop("authorization")
    headers = {("Content-Length" if name == "content-length" else name): value for name, value in headers.items()}
    made = HttpRequest(verb, f"http://127.0.0.1{target}", headers=headers)
    SharedKeyCredentialPolicy(storage_wire.ACCOUNT, KEY_TEXT).on_request(PipelineRequest(made, PipelineContext(None)))
    return str(made.headers["Authorization"])


@pytest.mark.parametrize(
    "request_bytes",
    [
        storage_wire.create_queue("q"),
        storage_wire.put_message("q", "text"),
        storage_wire.get_message("q"),
        storage_wire.delete_message("q", "an-id", "a+receipt/with=signs"),
        storage_wire.create_container("c"),
        storage_wire.put_blob("c", "b0000001", b"content"),
        storage_wire.put_blob("c", "b0000001", b""),
        storage_wire.get_blob("c", "b0000001"),
        storage_wire.block_head("c", "large", 7, 1024),
        storage_wire.commit_blocks("c", "large", 3),
        storage_wire.list_blobs("c", "b0001", 1000),
    ],
    ids=lambda request: request.split(b" HTTP")[0].decode()[:60],
)
def test_a_request_is_signed_as_the_client_signs_it(request_bytes: bytes) -> None:
    authorization = next(line for line in request_bytes.decode().split("\r\n") if line.startswith("authorization: "))
    assert authorization == f"authorization: {signature_of_the_client(request_bytes)}"


def test_names_of_blobs_have_seven_digits_so_that_a_prefix_of_four_has_a_thousand() -> None:
    requests = list(storage_wire.put_blobs("c", "b", b"", first=41_999, last=42_001))
    assert [request.split(b" ")[1].rpartition(b"/")[2] for request in requests] == [b"b0041999", b"b0042000"]


def test_no_two_blocks_of_a_large_blob_are_alike_and_its_md5_is_of_all_of_them() -> None:
    blob = LargeBlob(2)
    blocks = [b"".join(blob.block(number)) for number in range(2)]
    assert blocks[0] != blocks[1]
    assert [len(block) for block in blocks] == [BLOCK_BYTES, BLOCK_BYTES]
    assert blob.md5 == hashlib.md5(b"".join(blocks), usedforsecurity=False).hexdigest()


def test_the_watch_sees_memory_that_is_used_only_for_a_moment() -> None:
    with watching_memory(os.getpid()) as peak:
        before = peak.anonymous_mb
        content = bytearray(os.urandom(64 * 1024 * 1024))
        peak.sample(os.getpid())
        del content
    assert peak.anonymous_mb >= before + 60
    assert peak.resident_mb >= peak.anonymous_mb

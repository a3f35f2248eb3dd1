"""Copies, data from URLs, and provided keys with the official client."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, BlobClient, ContainerClient, PublicAccess, StandardBlobTier

from tests.clients.blob_server import BlobServer, status_of_copy

DATA = bytes(range(256)) * 64


@pytest.fixture
def container(blobs: BlobServer) -> Iterator[ContainerClient]:
    made = blobs.service().create_container(f"copies-{uuid.uuid4()}")
    yield made
    made.delete_container()


@pytest.fixture
def source(container: ContainerClient) -> BlobClient:
    return container.upload_blob("source", DATA, metadata={"color": "blue"}, tags={"kind": "test"})


def test_a_copy_has_the_data_and_the_properties_of_its_source(container: ContainerClient, source: BlobClient) -> None:
    target = container.get_blob_client("target")
    assert target.start_copy_from_url(source.url)["copy_status"] == "success"
    properties = target.get_blob_properties()
    assert target.download_blob().readall() == DATA
    assert properties.metadata == {"color": "blue"}
    assert properties.content_settings.content_md5 == source.get_blob_properties().content_settings.content_md5
    assert (properties.copy.source, properties.copy.progress) == (source.url, f"{len(DATA)}/{len(DATA)}")


def test_a_copy_can_have_properties_of_its_own(container: ContainerClient, source: BlobClient) -> None:
    target = container.get_blob_client("target")
    target.start_copy_from_url(
        source.url, metadata={"color": "red"}, tags={"a": "b"}, standard_blob_tier=StandardBlobTier.COOL
    )
    properties = target.get_blob_properties()
    assert (properties.metadata, properties.blob_tier) == ({"color": "red"}, StandardBlobTier.COOL)
    assert target.get_blob_tags() == {"a": "b"}


def test_a_copy_of_a_snapshot_has_the_data_of_then(container: ContainerClient, source: BlobClient) -> None:
    snapshot = source.create_snapshot()["snapshot"]
    source.upload_blob(b"later", overwrite=True)
    target = container.get_blob_client("target")
    target.start_copy_from_url(f"{source.url}?snapshot={snapshot}")
    assert target.download_blob().readall() == DATA


def test_a_copy_with_its_answer_reads_a_signed_url(
    container: ContainerClient, source: BlobClient, blobs: BlobServer
) -> None:
    target = container.get_blob_client("target")
    with pytest.raises(ClientAuthenticationError):
        target.start_copy_from_url(source.url, requires_sync=True)
    copied = target.start_copy_from_url(blobs.signed_url(source), requires_sync=True)
    assert copied["copy_status"] == "success"
    assert target.download_blob().readall() == DATA


def test_a_large_copy_ends_after_its_answer(container: ContainerClient) -> None:
    data = os.urandom(1 << 20) * 40
    large = container.upload_blob("large", data, max_concurrency=4)
    target = container.get_blob_client("target")
    assert target.start_copy_from_url(large.url)["copy_status"] == "pending"
    assert status_of_copy(target) == "success"
    assert hashlib.md5(target.download_blob().readall()).digest() == hashlib.md5(data).digest()


def test_a_copy_that_has_ended_cannot_be_aborted(container: ContainerClient, source: BlobClient) -> None:
    target = container.get_blob_client("target")
    started = target.start_copy_from_url(source.url)
    with pytest.raises(HttpResponseError) as refused:
        target.abort_copy(started)
    assert refused.value.error_code == "NoPendingCopyOperation"


def test_a_source_elsewhere_or_nowhere_is_refused(container: ContainerClient, source: BlobClient) -> None:
    target = container.get_blob_client("target")
    for url in ("http://example.com/devstoreaccount1/c/b", source.url + "-missing"):
        with pytest.raises(ResourceNotFoundError) as refused:
            target.start_copy_from_url(url)
        assert refused.value.error_code == "CannotVerifyCopySource"
    assert not target.exists()


def test_blobs_blocks_and_appends_take_data_from_urls(
    container: ContainerClient, source: BlobClient, blobs: BlobServer
) -> None:
    url = blobs.signed_url(source)
    whole = container.get_blob_client("whole")
    whole.upload_blob_from_url(url)
    assert whole.download_blob().readall() == DATA
    blocks = container.get_blob_client("blocks")
    blocks.stage_block_from_url("1", url, source_offset=256, source_length=512)
    blocks.stage_block_from_url("2", url, source_offset=0, source_length=256)
    blocks.commit_block_list([BlobBlock("2"), BlobBlock("1")])
    assert blocks.download_blob().readall() == DATA[:768]
    appended = container.get_blob_client("appended")
    appended.create_append_blob()
    assert appended.append_block_from_url(url, source_offset=0, source_length=100)["blob_append_offset"] == "0"
    assert appended.append_block_from_url(url, source_offset=100, source_length=100)["blob_append_offset"] == "100"
    assert appended.download_blob().readall() == DATA[:200]
    pages = container.get_blob_client("pages")
    pages.create_page_blob(1024)
    pages.upload_pages_from_url(url, offset=512, length=512, source_offset=0)
    assert pages.download_blob().readall() == bytes(512) + DATA[:512]


def test_data_from_a_url_are_checked(container: ContainerClient, source: BlobClient, blobs: BlobServer) -> None:
    url, target = blobs.signed_url(source), container.get_blob_client("target")
    md5 = bytearray(hashlib.md5(DATA).digest())
    assert target.stage_block_from_url("1", url, source_content_md5=md5)["content_md5"] == md5
    with pytest.raises(HttpResponseError) as wrong:
        target.stage_block_from_url("2", url, source_content_md5=bytearray(hashlib.md5(b"").digest()))
    assert wrong.value.error_code == "Md5Mismatch"
    with pytest.raises(HttpResponseError) as beyond:
        target.stage_block_from_url("2", url, source_offset=len(DATA), source_length=1)
    assert beyond.value.error_code == "InvalidRange"
    assert len(target.get_block_list("uncommitted")[1]) == 1


def test_everybody_may_copy_a_public_blob(blobs: BlobServer, container: ContainerClient) -> None:
    public = blobs.service().create_container(f"public-{uuid.uuid4()}", public_access=PublicAccess.BLOB)
    open_source = public.upload_blob("open", DATA)
    target = container.get_blob_client("target")
    target.upload_blob_from_url(open_source.url)
    assert target.download_blob().readall() == DATA
    public.delete_container()

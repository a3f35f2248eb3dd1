"""Page blobs with the official client."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError
from azure.storage.blob import BlobClient, ContainerClient, PremiumPageBlobTier

from tests.clients.blob_server import BlobServer

PAGE = 512


@pytest.fixture
def container(blobs: BlobServer) -> Iterator[ContainerClient]:
    made = blobs.service().create_container(f"pages-{uuid.uuid4()}")
    yield made
    made.delete_container()


@pytest.fixture
def blob(container: ContainerClient) -> BlobClient:
    made = container.get_blob_client("disk")
    made.create_page_blob(8 * PAGE)
    return made


def pages(blob: BlobClient) -> list[tuple[int, int]]:
    return [(found["start"], found["end"]) for found in blob.list_page_ranges()]


def test_pages_that_were_not_written_are_zeros(blob: BlobClient) -> None:
    blob.upload_page(b"a" * PAGE, offset=PAGE, length=PAGE)
    blob.upload_page(b"b" * 2 * PAGE, offset=4 * PAGE, length=2 * PAGE)
    expected = bytes(PAGE) + b"a" * PAGE + bytes(2 * PAGE) + b"b" * 2 * PAGE + bytes(2 * PAGE)
    assert blob.download_blob().readall() == expected
    assert pages(blob) == [(PAGE, 2 * PAGE - 1), (4 * PAGE, 6 * PAGE - 1)]


def test_cleared_pages_are_zeros_again(blob: BlobClient) -> None:
    blob.upload_page(b"a" * 4 * PAGE, offset=0, length=4 * PAGE)
    blob.clear_page(offset=PAGE, length=2 * PAGE)
    assert blob.download_blob(offset=0, length=4 * PAGE).readall() == b"a" * PAGE + bytes(2 * PAGE) + b"a" * PAGE
    assert pages(blob) == [(0, PAGE - 1), (3 * PAGE, 4 * PAGE - 1)]


def test_a_snapshot_keeps_its_pages_and_differs_by_those_written_since(blob: BlobClient) -> None:
    blob.upload_page(b"a" * 2 * PAGE, offset=0, length=2 * PAGE)
    snapshot = blob.create_snapshot()
    blob.upload_page(b"b" * PAGE, offset=4 * PAGE, length=PAGE)
    blob.clear_page(offset=0, length=PAGE)
    found = [(span["start"], span["cleared"]) for span in blob.list_page_ranges(previous_snapshot=snapshot)]
    assert found == [(0, True), (4 * PAGE, False)]
    old = BlobClient.from_blob_url(blob.url, credential=blob.credential, snapshot=snapshot)
    assert old.download_blob().readall() == b"a" * 2 * PAGE + bytes(6 * PAGE)


def test_ranges_come_in_pages_of_the_answer(blob: BlobClient) -> None:
    for page in range(0, 8, 2):
        blob.upload_page(b"a" * PAGE, offset=page * PAGE, length=PAGE)
    by_page = blob.list_page_ranges(results_per_page=1).by_page()
    assert [[span["start"] for span in page] for page in by_page] == [[page * PAGE] for page in range(0, 8, 2)]


def test_a_blob_of_eight_tebibytes_costs_nothing(container: ContainerClient) -> None:
    large = container.get_blob_client("large")
    large.create_page_blob(8 * 1024**4)
    large.upload_page(b"z" * PAGE, offset=8 * 1024**4 - PAGE, length=PAGE)
    assert pages(large) == [(8 * 1024**4 - PAGE, 8 * 1024**4 - 1)]
    with pytest.raises(HttpResponseError):
        container.get_blob_client("larger").create_page_blob(8 * 1024**4 + PAGE)


def test_a_smaller_blob_has_lost_its_last_pages(blob: BlobClient) -> None:
    blob.upload_page(b"a" * 8 * PAGE, offset=0, length=8 * PAGE)
    blob.resize_blob(2 * PAGE)
    blob.resize_blob(4 * PAGE)
    assert blob.download_blob().readall() == b"a" * 2 * PAGE + bytes(2 * PAGE)


def test_sequence_numbers_guard_writes(blob: BlobClient) -> None:
    assert blob.set_sequence_number("update", "7")["blob_sequence_number"] == 7
    assert blob.set_sequence_number("max", "5")["blob_sequence_number"] == 7
    assert blob.set_sequence_number("increment")["blob_sequence_number"] == 8
    blob.upload_page(b"a" * PAGE, offset=0, length=PAGE, if_sequence_number_eq=8)
    for condition in ({"if_sequence_number_lt": 8}, {"if_sequence_number_lte": 7}, {"if_sequence_number_eq": 9}):
        with pytest.raises(HttpResponseError) as refused:
            blob.upload_page(b"b" * PAGE, offset=0, length=PAGE, **condition)
        assert refused.value.error_code == "SequenceNumberConditionNotMet"
    assert blob.download_blob(offset=0, length=PAGE).readall() == b"a" * PAGE


def test_a_write_beyond_the_end_or_of_the_wrong_type_is_refused(blob: BlobClient, container: ContainerClient) -> None:
    with pytest.raises(HttpResponseError) as refused:
        blob.upload_page(b"a" * PAGE, offset=8 * PAGE, length=PAGE)
    assert refused.value.status_code == 416
    container.upload_blob("block", b"data")
    with pytest.raises(ResourceExistsError) as wrong:
        container.get_blob_client("block").upload_page(b"a" * PAGE, offset=0, length=PAGE)
    assert wrong.value.error_code == "InvalidBlobType"


def test_a_page_write_is_checked_against_its_md5(blob: BlobClient) -> None:
    written = blob.upload_page(b"a" * PAGE, offset=0, length=PAGE, validate_content=True)
    assert written["content_md5"] is not None
    assert written["content_crc64"] is not None


def test_a_stale_etag_does_not_permit_a_write(blob: BlobClient) -> None:
    etag = blob.get_blob_properties().etag
    blob.upload_page(b"a" * PAGE, offset=0, length=PAGE)
    with pytest.raises(ResourceModifiedError):
        blob.upload_page(b"b" * PAGE, offset=0, length=PAGE, if_match=etag)


def test_the_tier_of_a_page_blob_is_inferred_until_it_is_set(blob: BlobClient) -> None:
    assert blob.get_blob_properties().blob_tier_inferred
    blob.set_premium_page_blob_tier(PremiumPageBlobTier.P20)
    properties = blob.get_blob_properties()
    assert (properties.blob_tier, properties.blob_tier_inferred) == (PremiumPageBlobTier.P20, None)


def test_snapshots_are_copied_incrementally(blob: BlobClient, container: ContainerClient, blobs: BlobServer) -> None:
    target = container.get_blob_client("backup")
    blob.upload_page(b"a" * PAGE, offset=0, length=PAGE)
    for content in (b"a", b"b"):
        blob.upload_page(content * PAGE, offset=PAGE, length=PAGE)
        snapshot = blob.create_snapshot()["snapshot"]
        started = target.start_copy_from_url(blobs.signed_url(blob, snapshot=snapshot), incremental_copy=True)
        assert started["copy_status"] == "pending"
        copied = target.get_blob_properties().copy
        assert (copied.status, copied.incremental_copy) == ("success", True)
        kept = BlobClient.from_blob_url(target.url, credential=blob.credential, snapshot=copied.destination_snapshot)
        assert kept.download_blob(offset=0, length=2 * PAGE).readall() == b"a" * PAGE + content * PAGE
    with pytest.raises(HttpResponseError):
        target.upload_page(b"c" * PAGE, offset=0, length=PAGE)

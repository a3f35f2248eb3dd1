"""Blobs with the official client: containers, data, listings, signatures, batches and public access."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import pytest
import requests
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import (
    AccessPolicy,
    BlobBlock,
    BlobClient,
    BlobSasPermissions,
    ContainerClient,
    ContainerSasPermissions,
    RetentionPolicy,
    generate_blob_sas,
    generate_container_sas,
)

from tests.clients.blob_server import MIB, BlobServer, new_name, running_blobs


@pytest.fixture
def box(blobs: BlobServer) -> ContainerClient:
    return blobs.new_container()


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


# --- data -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 4096, MIB, 5 * MIB + 1])
def test_data_of_any_size_are_read_back(box: ContainerClient, size: int) -> None:
    data = os.urandom(size)
    blob = box.upload_blob("data", data)
    assert blob.download_blob().readall() == data
    assert blob.get_blob_properties().size == size


def test_a_stream_is_uploaded_in_blocks_and_read_by_ranges(box: ContainerClient) -> None:
    data = os.urandom(7 * MIB + 123)
    blob = box.upload_blob("data", BytesIO(data), length=len(data), max_concurrency=4)
    assert len(blob.get_block_list("committed")[0]) == 8
    for offset, length in ((0, 1), (MIB - 1, 2), (3 * MIB + 7, 2 * MIB), (len(data) - 5, 5)):
        assert blob.download_blob(offset, length).readall() == data[offset : offset + length]
    assert blob.download_blob(max_concurrency=4).readall() == data


@pytest.mark.parametrize(
    "name",
    [
        "a b/c",
        "it's",
        "100%",
        "a+b=c&d",
        "é/\U0001f600",
        "dots..and~tilde",
        "(1),[2];{3}@$!*",
        "trailing/",
        "a//b",
        "#?",
    ],
)
def test_names_of_any_kind_are_found_again(box: ContainerClient, name: str) -> None:
    box.upload_blob(name, name.encode())
    assert [blob.name for blob in box.list_blobs()] == [name]
    assert box.download_blob(name).readall().decode() == name
    box.delete_blob(name)
    assert not box.get_blob_client(name).exists()


def test_an_existing_blob_is_overwritten_only_on_demand(box: ContainerClient) -> None:
    blob = box.upload_blob("a", b"first")
    with pytest.raises(ResourceExistsError):
        box.upload_blob("a", b"second")
    assert blob.download_blob().readall() == b"first"
    box.upload_blob("a", b"second", overwrite=True)
    assert blob.download_blob().readall() == b"second"


def test_conditions_protect_what_another_client_wrote(box: ContainerClient) -> None:
    blob = box.upload_blob("a", b"first")
    etag = blob.get_blob_properties().etag
    blob.upload_blob(b"second", overwrite=True, if_match=etag)
    with pytest.raises(ResourceModifiedError):
        blob.upload_blob(b"third", overwrite=True, etag=etag, match_condition=_if_not_modified())
    assert blob.download_blob().readall() == b"second"


def _if_not_modified() -> object:
    from azure.core import MatchConditions

    return MatchConditions.IfNotModified


def test_blocks_are_committed_in_the_order_of_their_list(box: ContainerClient) -> None:
    blob = box.get_blob_client("blocks")
    for number in range(3):
        blob.stage_block(f"{number:04}", f"block {number} ".encode(), validate_content=True)
    blob.commit_block_list([BlobBlock("0002"), BlobBlock("0000")])
    assert blob.download_blob().readall() == b"block 2 block 0 "
    committed, uncommitted = blob.get_block_list("all")
    assert ([block.id for block in committed], uncommitted) == (["0002", "0000"], [])
    with pytest.raises(HttpResponseError) as refused:
        blob.commit_block_list([BlobBlock("0001")])
    assert refused.value.error_code == "InvalidBlockList"


def test_an_append_blob_grows_until_it_is_sealed(box: ContainerClient) -> None:
    blob = box.get_blob_client("log")
    blob.create_append_blob()
    for line in (b"one\n", b"two\n"):
        blob.append_block(line)
    blob.seal_append_blob()
    with pytest.raises(HttpResponseError) as refused:
        blob.append_block(b"three\n")
    assert refused.value.error_code == "BlobIsSealed"
    assert blob.download_blob().readall() == b"one\ntwo\n"


# --- listings -------------------------------------------------------------------------------------------------------


def test_a_listing_comes_in_pages_and_in_order(box: ContainerClient) -> None:
    names = sorted(f"{folder}/{number:02}" for folder in ("a", "b") for number in range(7))
    for name in reversed(names):
        box.upload_blob(name, b"", metadata={"of": name.replace("/", "")})
    pages = [[blob.name for blob in page] for page in box.list_blobs(results_per_page=5).by_page()]
    assert [len(page) for page in pages] == [5, 5, 4]
    assert [name for page in pages for name in page] == names
    assert [blob.name for blob in box.list_blobs("b/")] == names[7:]
    listed = list(box.list_blobs(include=["metadata"]))
    assert [blob.metadata["of"] for blob in listed] == [name.replace("/", "") for name in names]


def test_a_hierarchy_is_walked(box: ContainerClient) -> None:
    for name in ("a/1", "a/b/2", "c", "d/3"):
        box.upload_blob(name, b"")
    assert sorted(entry.name for entry in box.walk_blobs()) == ["a/", "c", "d/"]
    assert sorted(entry.name for entry in box.walk_blobs("a/")) == ["a/1", "a/b/"]


def test_snapshots_and_uncommitted_blobs_are_listed_on_demand(box: ContainerClient) -> None:
    blob = box.upload_blob("a", b"first")
    snapshot = blob.create_snapshot()
    box.get_blob_client("b").stage_block("0", b"data")
    assert [found.name for found in box.list_blobs()] == ["a"]
    found = list(box.list_blobs(include=["snapshots", "uncommittedblobs"]))
    assert [(entry.name, entry.snapshot) for entry in found] == [("a", snapshot["snapshot"]), ("a", None), ("b", None)]


# --- containers -----------------------------------------------------------------------------------------------------


def test_containers_are_made_listed_and_deleted(blobs: BlobServer) -> None:
    service = blobs.of_new_account().service()
    names = [new_name() for _ in range(3)]
    for name in names:
        service.create_container(name, metadata={"kind": "test"})
    with pytest.raises(ResourceExistsError):
        service.create_container(names[0])
    listed = list(service.list_containers(include_metadata=True, results_per_page=2))
    assert [(found.name, found.metadata) for found in listed] == [(name, {"kind": "test"}) for name in sorted(names)]
    service.delete_container(names[0])
    with pytest.raises(ResourceNotFoundError):
        service.get_container_client(names[0]).get_container_properties()
    service.create_container(names[0])


@pytest.mark.parametrize(
    ("name", "code"), [("ab", "OutOfRangeInput"), ("Upper", "InvalidResourceName"), ("a--b", "InvalidResourceName")]
)
def test_a_name_that_no_container_can_have_is_refused(blobs: BlobServer, name: str, code: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        blobs.service().create_container(name)
    assert refused.value.error_code == code


def test_a_leased_container_is_deleted_with_its_lease_only(box: ContainerClient) -> None:
    lease = box.acquire_lease(60)
    with pytest.raises(HttpResponseError) as refused:
        box.delete_container()
    assert refused.value.error_code == "LeaseIdMissing"
    box.delete_container(lease=lease)


# --- senders --------------------------------------------------------------------------------------------------------


def test_a_wrong_key_is_refused(blobs: BlobServer, box: ContainerClient) -> None:
    other = ContainerClient(blobs.endpoint, box.container_name, credential="AAAA", retry_total=0)
    with pytest.raises(ClientAuthenticationError):
        other.get_container_properties()


def test_a_signature_for_reading_permits_nothing_else(blobs: BlobServer, box: ContainerClient) -> None:
    box.upload_blob("a b", b"data")
    signature = generate_blob_sas(
        blobs.account,
        box.container_name,
        "a b",
        account_key=blobs.key,
        permission=BlobSasPermissions(read=True),
        expiry=soon(),
        content_disposition="attachment",
    )
    blob = BlobClient.from_blob_url(f"{box.url}/a%20b?{signature}", retry_total=0)
    download = blob.download_blob()
    assert download.readall() == b"data"
    assert download.properties.content_settings.content_disposition == "attachment"
    with pytest.raises(HttpResponseError) as refused:
        blob.upload_blob(b"other", overwrite=True)
    assert refused.value.error_code == "AuthorizationPermissionMismatch"


def test_a_signature_for_creating_replaces_no_blob(blobs: BlobServer, box: ContainerClient) -> None:
    box.upload_blob("old", b"data")
    signature = generate_container_sas(
        blobs.account,
        box.container_name,
        account_key=blobs.key,
        permission=ContainerSasPermissions(create=True),
        expiry=soon(),
    )
    limited = ContainerClient.from_container_url(f"{box.url}?{signature}", retry_total=0)
    limited.upload_blob("new", b"data", overwrite=True)
    with pytest.raises(HttpResponseError) as refused:
        limited.upload_blob("old", b"other", overwrite=True)
    assert refused.value.error_code == "UnauthorizedBlobOverwrite"
    assert box.download_blob("old").readall() == b"data"


def test_a_stored_policy_decides_about_its_signatures(blobs: BlobServer, box: ContainerClient) -> None:
    box.upload_blob("a", b"data")
    box.set_container_access_policy(
        {"readers": AccessPolicy(ContainerSasPermissions(read=True), soon(), datetime.now(UTC) - timedelta(hours=1))}
    )
    signature = generate_container_sas(blobs.account, box.container_name, account_key=blobs.key, policy_id="readers")
    limited = ContainerClient.from_container_url(f"{box.url}?{signature}", retry_total=0)
    assert limited.download_blob("a").readall() == b"data"
    box.set_container_access_policy({})
    with pytest.raises(ClientAuthenticationError):
        limited.download_blob("a")


def test_public_blobs_are_read_and_public_containers_listed_by_anybody(blobs: BlobServer) -> None:
    service = blobs.of_new_account().service()
    for access in ("blob", "container"):
        service.create_container(f"{access}-box", public_access=access).upload_blob("a", b"data")
    service.create_container("private-box").upload_blob("a", b"data")

    def anonymous(name: str) -> ContainerClient:
        return ContainerClient.from_container_url(service.get_container_client(name).url, retry_total=0)

    assert anonymous("blob-box").download_blob("a").readall() == b"data"
    assert [blob.name for blob in anonymous("container-box").list_blobs()] == ["a"]
    with pytest.raises(HttpResponseError):
        list(anonymous("blob-box").list_blobs())
    for refused in (anonymous("private-box"), anonymous("no-box")):
        with pytest.raises(HttpResponseError):
            refused.download_blob("a")
    with pytest.raises(HttpResponseError):
        anonymous("container-box").upload_blob("b", b"")


# --- many at once, tags, soft delete, versions ------------------------------------------------------------------------


def test_a_batch_answers_for_each_blob(box: ContainerClient) -> None:
    for name in ("a b", "c"):
        box.upload_blob(name, b"")
    replies = list(box.delete_blobs("a b", "missing", "c", raise_on_any_failure=False))
    assert [reply.status_code for reply in replies] == [202, 404, 202]
    assert list(box.list_blobs()) == []


def test_blobs_are_found_by_their_tags(blobs: BlobServer) -> None:
    service = blobs.of_new_account().service()
    first, second = (service.create_container(name) for name in ("first", "second"))
    for box, name, color in ((first, "a", "red"), (first, "b", "blue"), (second, "c", "red")):
        box.upload_blob(name, b"", tags={"color": color, "size": name})
    found = [(blob.container_name, blob.name) for blob in service.find_blobs_by_tags("\"color\" = 'red'")]
    assert found == [("first", "a"), ("second", "c")]
    pages = service.find_blobs_by_tags("\"size\" >= 'b'", results_per_page=1).by_page()
    assert [[blob.name for blob in page] for page in pages] == [["b"], ["c"]]
    assert [blob.name for blob in second.find_blobs_by_tags("\"color\" = 'red'")] == ["c"]


def test_deleted_blobs_are_restored_within_their_retention(blobs: BlobServer) -> None:
    service = blobs.of_new_account().service()
    service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=2))
    box = service.create_container("box")
    blob = box.upload_blob("a", b"data")
    blob.delete_blob()
    assert list(box.list_blobs()) == []
    (deleted,) = box.list_blobs(include=["deleted"])
    assert (deleted.deleted, deleted.remaining_retention_days) == (True, 1)
    blob.undelete_blob()
    assert blob.download_blob().readall() == b"data"


def test_versions_and_deleted_containers_are_kept_where_the_operator_wants_it(tmp_path: Path) -> None:
    with running_blobs(tmp_path / "data", "--blob-versioning", "*", "--container-retention", "7") as server:
        service = server.service()
        box = service.create_container("box")
        first = box.upload_blob("a", b"first").get_blob_properties().version_id
        blob = box.upload_blob("a", b"second", overwrite=True)
        assert blob.download_blob(version_id=first).readall() == b"first"
        versions = list(box.list_blobs(include=["versions"]))
        assert [(found.version_id == first, found.is_current_version) for found in versions] == [
            (True, None),
            (False, True),
        ]
        box.delete_container()
        (deleted,) = service.list_containers(include_deleted=True)
        restored = service.undelete_container(deleted.name, deleted.version)
        assert restored.get_blob_client("a").download_blob().readall() == b"second"
        properties = restored.get_container_properties()
        assert properties.deleted is None


def test_data_lake_is_refused_plainly(blobs: BlobServer) -> None:
    reply = blobs.raw("PUT", f"/{blobs.account}/box?resource=filesystem")
    assert (reply.status, reply.headers["x-ms-error-code"]) == (400, "NotImplemented")
    assert b"Data Lake" in reply.body


# --- bodies that do not arrive ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [100_000, 3 * MIB])
def test_a_body_that_is_cut_off_leaves_nothing(blobs: BlobServer, box: ContainerClient, sent: int) -> None:
    box.upload_blob("old", b"data")
    signature = generate_container_sas(
        blobs.account,
        box.container_name,
        account_key=blobs.key,
        permission=ContainerSasPermissions(write=True),
        expiry=soon(),
    )
    path = f"/{blobs.account}/{box.container_name}"
    for target in (f"{path}/old?{signature}", f"{path}/old?comp=block&blockid=AAAA&{signature}"):
        with socket.create_connection(("127.0.0.1", blobs.port), timeout=60) as connection:
            head = f"PUT {target} HTTP/1.1\r\nHost: 127.0.0.1:{blobs.port}\r\nx-ms-blob-type: BlockBlob\r\n"
            connection.sendall(f"{head}Content-Length: {4 * MIB}\r\n\r\n".encode() + b"x" * sent)
    assert box.download_blob("old").readall() == b"data"
    assert box.get_blob_client("old").get_block_list("uncommitted")[1] == []


def test_a_body_without_a_length_is_refused(blobs: BlobServer, box: ContainerClient) -> None:
    signature = generate_container_sas(
        blobs.account,
        box.container_name,
        account_key=blobs.key,
        permission=ContainerSasPermissions(write=True),
        expiry=soon(),
    )
    reply = requests.put(
        f"{box.url}/a?{signature}", data=iter([b"a", b"b"]), headers={"x-ms-blob-type": "BlockBlob"}, timeout=60
    )
    assert (reply.status_code, reply.headers["x-ms-error-code"]) == (411, "MissingContentLengthHeader")
    assert list(box.list_blobs()) == []

"""Input that is wrong, too large or cut off: the service's status and code, nothing half-written, and a server that
goes on."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

import pytest
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline import PipelineRequest
from azure.core.pipeline.transport import HttpRequest
from azure.storage.blob import ContainerClient, ContainerSasPermissions, generate_container_sas
from azure.storage.queue import AccountSasPermissions, ResourceTypes, generate_account_sas

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, WELL_KNOWN_EMULATOR_KEY
from asterism.cli.client import AdminClient
from tests.clients.blob_server import MIB, BlobServer, RawReply
from tests.clients.queue_server import QueueServer
from tests.support.raw import answer_of, connect, rest_of
from tests.support.server import running_server

BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}
DATA = b"0123456789"
BOMB = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;&b;">]>'
PAGE_BLOB_BYTES = 1024
MANY_BLOCKS = 10_000
LIST_ENTRIES_MAX = 50_000


def block_id(number: int) -> str:
    return base64.b64encode(b"%06d" % number).decode()


def md5_of(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def block_list(*ids: str, source: str = "Latest") -> bytes:
    entries = "".join(f"<{source}>{each}</{source}>" for each in ids)
    return f'<?xml version="1.0" encoding="utf-8"?><BlockList>{entries}</BlockList>'.encode()


@dataclass(frozen=True)
class Box:
    """A container with a blob of each kind, for requests with a signature in their address."""

    blobs: BlobServer
    client: ContainerClient
    signature: str

    def path(self, name: str, query: str = "") -> str:
        return f"/{self.blobs.account}/{self.client.container_name}/{quote(name)}?{query}&{self.signature}"

    def send(
        self, method: str, name: str, query: str = "", body: bytes = b"", headers: dict[str, str] | None = None
    ) -> RawReply:
        return self.blobs.raw(method, self.path(name, query), body, {"x-ms-version": "2026-10-06", **(headers or {})})

    def cut_off(self, name: str, query: str = "", *, sent: bytes, length: int, headers: dict[str, str]) -> None:
        """Send a part of a body, and close that direction: the server notices, and says so."""
        lines = [f"PUT {self.path(name, query)} HTTP/1.1", "host: 127.0.0.1", f"content-length: {length}"]
        lines += [f"{header}: {value}" for header, value in headers.items()]
        with connect(self.blobs.port) as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode() + sent)
            connection.shutdown(socket.SHUT_WR)
            answer = rest_of(connection)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"<Code>InvalidInput</Code>" in answer


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    data: Path = tmp_path_factory.mktemp("bad") / "data"
    with running_server(
        data, "--test-controls", doors=("nosql", "blob", "queue", "table"), alone=True, embedded=True
    ) as running:
        blobs = BlobServer(running)
        client = blobs.new_container()
        client.upload_blob("block", DATA)
        client.get_blob_client("page").create_page_blob(PAGE_BLOB_BYTES)
        client.get_blob_client("append").create_append_blob()
        client.get_blob_client("append").append_block(DATA)
        signature = generate_container_sas(
            blobs.account,
            client.container_name,
            blobs.key,
            permission=ContainerSasPermissions.from_string("racwdxltmei"),
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        yield Box(blobs, client, signature)
        status, log = running.end()
        assert (status, "Traceback" in log) == (0, False), log


@pytest.fixture(autouse=True)
def goes_on(box: Box) -> Iterator[None]:
    """After each test the blobs are as they were, and the server takes requests."""
    yield
    assert box.client.download_blob("block").readall() == DATA
    assert box.client.download_blob("append").readall() == DATA
    assert box.client.download_blob("page").readall() == bytes(PAGE_BLOB_BYTES)
    box.client.upload_blob("probe", b"still here", overwrite=True)


# --- requests that are refused ----------------------------------------------------------------------------------------

WRONG_MD5 = {"content-md5": md5_of(b"other")}
WRONG_CRC64 = {"x-ms-content-crc64": base64.b64encode(bytes(8)).decode()}
SHORT_MD5 = {"content-md5": "c2hvcnQ="}
PAGE = {"x-ms-page-write": "update"}
AT_THREE = {"x-ms-blob-condition-appendpos": "3"}
UP_TO_TWELVE = {"x-ms-blob-condition-maxsize": "12"}
ONE_BLOCK = f"comp=block&blockid={quote(block_id(1), safe='')}"


@pytest.mark.parametrize(
    ("name", "query", "body", "headers", "expected"),
    [
        # Checksums.
        ("new", "", DATA, {**BLOCK_BLOB, **WRONG_MD5}, (400, "Md5Mismatch")),
        ("new", "", DATA, {**BLOCK_BLOB, **WRONG_CRC64}, (400, "Crc64Mismatch")),
        ("new", "", DATA, {**BLOCK_BLOB, **SHORT_MD5}, (400, "InvalidMd5")),
        ("new", "", bytes(3 * MIB), {**BLOCK_BLOB, **WRONG_MD5}, (400, "Md5Mismatch")),
        ("new", ONE_BLOCK, DATA, WRONG_MD5, (400, "Md5Mismatch")),
        ("new", ONE_BLOCK, bytes(3 * MIB), WRONG_CRC64, (400, "Crc64Mismatch")),
        ("append", "comp=appendblock", DATA, WRONG_MD5, (400, "Md5Mismatch")),
        ("page", "comp=page", bytes(512), {**PAGE, "range": "bytes=0-511", **WRONG_MD5}, (400, "Md5Mismatch")),
        ("block", "comp=blocklist", block_list(), WRONG_MD5, (400, "Md5Mismatch")),
        # Blocks and lists of them.
        ("new", "comp=block&blockid=%%%", DATA, {}, (400, "InvalidBlockId")),
        ("new", f"comp=block&blockid={quote(base64.b64encode(bytes(65)))}", DATA, {}, (400, "InvalidBlockId")),
        ("new", "comp=block", DATA, {}, (400, "MissingRequiredQueryParameter")),
        ("page", ONE_BLOCK, DATA, {}, (409, "InvalidBlobType")),
        ("block", "comp=blocklist", block_list(block_id(9)), {}, (400, "InvalidBlockList")),
        ("block", "comp=blocklist", block_list(block_id(9), source="Committed"), {}, (400, "InvalidBlockList")),
        ("block", "comp=blocklist", block_list("%%%"), {}, (400, "InvalidBlockId")),
        # Documents.
        ("block", "comp=blocklist", b"<BlockList><Latest>", {}, (400, "InvalidXmlDocument")),
        ("block", "comp=blocklist", b"\x00\xff\xfe", {}, (400, "InvalidXmlDocument")),
        ("block", "comp=blocklist", b"<Other/>", {}, (400, "InvalidXmlDocument")),
        ("block", "comp=blocklist", BOMB + b"<BlockList>&c;</BlockList>", {}, (400, "InvalidXmlDocument")),
        ("block", "comp=blocklist", b" " * (9 * MIB), {}, (413, "RequestBodyTooLarge")),
        ("block", "comp=tags", BOMB + b"<Tags><TagSet>&c;</TagSet></Tags>", {}, (400, "InvalidXmlDocument")),
        ("block", "comp=tags", b"<Tags>", {}, (400, "InvalidXmlDocument")),
        # Ranges.
        ("page", "comp=page", bytes(512), {**PAGE, "range": "bytes=1024-1535"}, (416, "InvalidRange")),
        ("page", "comp=page", bytes(512), {**PAGE, "range": "bytes=1-512"}, (416, "InvalidPageRange")),
        ("page", "comp=page", bytes(100), {**PAGE, "range": "bytes=0-511"}, (400, "InvalidHeaderValue")),
        ("page", "comp=page", bytes(512), PAGE, (400, "MissingRequiredHeader")),
        ("append", "comp=appendblock", DATA, AT_THREE, (412, "AppendPositionConditionNotMet")),
        ("append", "comp=appendblock", DATA, UP_TO_TWELVE, (412, "MaxBlobSizeConditionNotMet")),
        # Headers and names.
        ("new", "", DATA, {}, (400, "MissingRequiredHeader")),
        ("new", "", DATA, {"x-ms-blob-type": "OtherBlob"}, (400, "InvalidHeaderValue")),
        ("x" * 1025, "", DATA, BLOCK_BLOB, (400, "OutOfRangeInput")),
        ("a/" * 254 + "a", "", DATA, BLOCK_BLOB, (400, "InvalidUri")),
        ("new", "", DATA, {**BLOCK_BLOB, "x-ms-meta-1bad": "1"}, (400, "InvalidMetadata")),
        ("block", "", DATA, {**BLOCK_BLOB, "x-ms-lease-id": "no-uuid"}, (400, "InvalidHeaderValue")),
        ("new", "", DATA, {**BLOCK_BLOB, "if-match": '"0x1"'}, (412, "ConditionNotMet")),
        ("block", "", DATA[1:], {**BLOCK_BLOB, "if-match": '"é"'}, (400, "InvalidHeaderValue")),
        ("block", "", DATA[1:], {**BLOCK_BLOB, "x-ms-lease-id": "é"}, (400, "InvalidHeaderValue")),
        ("new", "", DATA, {**BLOCK_BLOB, "content-md5": "é"}, (400, "InvalidHeaderValue")),
        ("new", "", DATA, {**BLOCK_BLOB, "x-ms-blob-content-disposition": "é"}, (400, "InvalidHeaderValue")),
        ("new", "", DATA, {**BLOCK_BLOB, "x-ms-meta-a": "é"}, (400, "InvalidMetadata")),
        ("block", "", DATA, {**BLOCK_BLOB, "if-none-match": "*"}, (409, "BlobAlreadyExists")),
    ],
)  # fmt: skip
def test_a_write_that_is_wrong_has_the_code_of_the_service_and_no_effect(
    box: Box, name: str, query: str, body: bytes, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    reply = box.send("PUT", name, query, body, headers)
    assert (reply.status, reply.headers.get("x-ms-error-code")) == expected, reply.body
    assert box.send("GET", "new").status == 404
    assert [blob.name for blob in box.client.list_blobs("new", include=["uncommittedblobs"])] == []


@pytest.mark.parametrize("name", ["%FF", "%FE", "%C3%28", "%ED%A0%80"])
def test_a_name_that_is_not_utf8_is_refused(box: Box, name: str) -> None:
    reply = box.blobs.raw("PUT", box.path("NAME").replace("NAME", name), DATA, BLOCK_BLOB)
    assert (reply.status, reply.headers["x-ms-error-code"]) == (400, "InvalidUri")
    assert [blob.name for blob in box.client.list_blobs("\ufffd")] == []


@pytest.mark.parametrize("header", ["range", "x-ms-range"])
def test_ranges_of_reads_end_with_the_blob_and_may_not_begin_behind_it(box: Box, header: str) -> None:
    found = box.send("GET", "block", headers={header: "bytes=7-1000"})
    assert (found.status, found.body, found.headers["content-range"]) == (206, b"789", "bytes 7-9/10")
    refused = box.send("GET", "block", headers={header: "bytes=10-20"})
    assert (refused.status, refused.headers["x-ms-error-code"]) == (416, "InvalidRange")
    # HTTP ignores a malformed range, the service's own header does not.
    for malformed in ("bytes=9-3", "bytes=a-b", "pages=0-1"):
        assert box.send("GET", "block", headers={header: malformed}).status in (200, 400)


def test_block_ids_of_a_blob_have_one_length(box: Box) -> None:
    assert box.send("PUT", "lengths", ONE_BLOCK, DATA).status == 201
    refused = box.send("PUT", "lengths", "comp=block&blockid=YQ%3D%3D", DATA)
    assert (refused.status, refused.headers["x-ms-error-code"]) == (400, "InvalidBlobOrBlock")
    assert box.send("PUT", "lengths", "comp=blocklist", block_list(block_id(1))).status == 201
    # The committed block has the other length, and that is no hindrance.
    assert box.send("PUT", "lengths", "comp=block&blockid=YQ%3D%3D", DATA).status == 201


def bomb_of(request: PipelineRequest[HttpRequest]) -> None:
    request.http_request.set_bytes_body(BOMB + b"<SignedIdentifiers>&c;</SignedIdentifiers>")


def test_documents_of_accounts_and_containers_refuse_entities(box: Box) -> None:
    service = box.blobs.service()
    for send in (
        lambda: box.client.set_container_access_policy({}, raw_request_hook=bomb_of),
        lambda: service.set_service_properties(cors=[], raw_request_hook=bomb_of),
    ):
        with pytest.raises(HttpResponseError) as refused:
            send()
        assert (refused.value.status_code, refused.value.error_code) == (400, "InvalidXmlDocument")


def test_a_copy_onto_itself_keeps_the_data(box: Box) -> None:
    blob = box.client.upload_blob("itself", DATA * 5000, overwrite=True)
    blob.start_copy_from_url(blob.url, metadata={"color": "blue"})
    assert blob.download_blob().readall() == DATA * 5000
    assert blob.get_blob_properties().metadata == {"color": "blue"}


# --- leases that end meanwhile ----------------------------------------------------------------------------------------


def test_a_lease_that_ends_while_the_body_arrives_no_longer_permits_the_write(box: Box) -> None:
    admin = AdminClient(box.blobs.running.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=False)
    blob = box.client.upload_blob("leased", DATA, overwrite=True)
    lease = blob.acquire_lease(lease_duration=15)
    body = os.urandom(3 * MIB)
    head = f"PUT {box.path('leased')} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-ms-blob-type: BlockBlob\r\n"
    head += f"x-ms-lease-id: {lease.id}\r\ncontent-length: {len(body)}\r\n\r\n"
    with connect(box.blobs.port) as connection:
        connection.sendall(head.encode() + body[: 2 * MIB])
        admin.post("testing/clock-skew", {"seconds": 20})
        try:
            connection.sendall(body[2 * MIB :])
            answer = answer_of(connection)
        finally:
            admin.post("testing/clock-skew", {"seconds": 0})
    assert answer.startswith(b"HTTP/1.1 412 ")
    assert b"LeaseLost" in answer
    assert blob.download_blob().readall() == DATA


# --- requests that are cut off ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent_bytes", [100, 3 * MIB])
def test_nothing_of_a_request_that_is_cut_off_is_written(box: Box, sent_bytes: int) -> None:
    sent, length = b"x" * sent_bytes, 4 * MIB
    box.cut_off("cut", sent=sent, length=length, headers=BLOCK_BLOB)
    box.cut_off("block", sent=sent, length=length, headers=BLOCK_BLOB)
    box.cut_off("cut", ONE_BLOCK, sent=sent, length=length, headers={})
    box.cut_off("append", "comp=appendblock", sent=sent, length=length, headers={})
    page = {**PAGE, "range": f"bytes=0-{length - 1}"}
    box.client.get_blob_client("large").create_page_blob(length)
    box.cut_off("large", "comp=page", sent=sent, length=length, headers=page)
    assert box.send("GET", "cut").status == 404
    assert list(box.client.list_blobs("cut", include=["uncommittedblobs"])) == []
    assert box.client.get_blob_client("large").get_page_ranges()[0] == []


def test_nothing_of_a_list_or_a_message_that_is_cut_off_is_written(box: Box) -> None:
    content = block_list(*[block_id(1)] * 1000)
    assert box.send("PUT", "half", ONE_BLOCK, DATA).status == 201
    box.cut_off("half", "comp=blocklist", sent=content[:-20], length=len(content), headers={})
    assert box.send("GET", "half").status == 404
    assert [block.id for block in box.client.get_blob_client("half").get_block_list("uncommitted")[1]] == ["000001"]
    queue = QueueServer(box.blobs.running).new_queue()
    signature = generate_account_sas(
        DEVELOPMENT_ACCOUNT,
        DEVELOPMENT_KEY,
        ResourceTypes(object=True),
        AccountSasPermissions(add=True, write=True),
        datetime.now(UTC) + timedelta(hours=1),
    )
    message = b"<QueueMessage><MessageText>text</MessageText></QueueMessage>"
    head = f"POST /{DEVELOPMENT_ACCOUNT}/{queue.queue_name}/messages?{signature} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    with connect(box.blobs.running.ports["queue"]) as connection:
        connection.sendall(f"{head}content-length: {len(message)}\r\n\r\n".encode() + message[:-1])
        connection.shutdown(socket.SHUT_WR)
        assert rest_of(connection).startswith(b"HTTP/1.1 400 ")
    assert queue.get_queue_properties().approximate_message_count == 0


# --- what the listener refuses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "announced", "body"),
    [
        ("blob", 6_000 * MIB, b"<Code>RequestBodyTooLarge</Code>"),
        ("queue", 2 * MIB, b"<Code>RequestBodyTooLarge</Code>"),
        ("table", 64 * MIB, b'{"odata.error":{"code":"RequestBodyTooLarge"'),
    ],
)
def test_a_body_that_no_route_takes_is_refused_in_the_words_of_the_service(
    box: Box, service: str, announced: int, body: bytes
) -> None:
    head = f"PUT /{DEVELOPMENT_ACCOUNT}/name HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {announced}\r\n\r\n"
    with connect(box.blobs.running.ports[service]) as connection:
        connection.sendall(head.encode())
        connection.shutdown(socket.SHUT_WR)
        answer = rest_of(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"\r\nx-ms-request-id: " in answer
    assert body in answer
    if service != "table":
        assert b"\r\nx-ms-error-code: RequestBodyTooLarge\r\n" in answer


def test_a_client_for_queues_learns_how_long_a_text_may_be(box: Box) -> None:
    queue = QueueServer(box.blobs.running).new_queue()
    with pytest.raises(HttpResponseError) as refused:
        queue.send_message("x" * 500_000)
    assert (refused.value.status_code, refused.value.error_code) == (413, "RequestBodyTooLarge")
    assert refused.value.additional_info["maxlimit"] == "65536"


def test_uploads_for_which_there_is_no_room_are_told_to_come_again(tmp_path: Path) -> None:
    limit = ("--limit", "body-bytes-in-flight=3MB")
    with running_server(tmp_path, *limit, doors=("nosql", "blob"), alone=True) as running:
        client = BlobServer(running).new_container()
        signature = generate_container_sas(
            DEVELOPMENT_ACCOUNT,
            client.container_name,
            DEVELOPMENT_KEY,
            permission=ContainerSasPermissions(write=True),
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        path = f"/{DEVELOPMENT_ACCOUNT}/{client.container_name}/b?comp=blocklist&{signature}"
        head = f"PUT {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {2 * MIB}\r\n\r\n".encode()
        with connect(running.ports["blob"]) as holder, connect(running.ports["blob"]) as other:
            holder.sendall(head)
            # Answered when the first one has been looked at.
            assert [blob.name for blob in client.list_blobs()] == []
            other.sendall(head)
            answer = answer_of(other)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nretry-after: 1\r\n" in answer
    assert b"<Code>ServerBusy</Code>" in answer


# --- many blocks ------------------------------------------------------------------------------------------------------


def put_blocks(box: Box, name: str, numbers: range) -> set[int]:
    connection = HTTPConnection("127.0.0.1", box.blobs.port, timeout=60)
    statuses = set()
    for number in numbers:
        query = f"comp=block&blockid={quote(block_id(number), safe='')}"
        connection.request("PUT", box.path(name, query), b"%06d" % number)
        reply = connection.getresponse()
        reply.read()
        statuses.add(reply.status)
    connection.close()
    return statuses


def test_ten_thousand_blocks_are_committed_and_lists_of_fifty_thousand(box: Box) -> None:
    parts = [range(start, MANY_BLOCKS, 4) for start in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert set().union(*pool.map(lambda part: put_blocks(box, "many", part), parts)) == {201}
    blob = box.client.get_blob_client("many")
    assert len(blob.get_block_list("uncommitted")[1]) == MANY_BLOCKS
    ids = [block_id(number) for number in range(MANY_BLOCKS)]
    assert box.send("PUT", "many", "comp=blocklist", block_list(*ids)).status == 201
    content = b"".join(b"%06d" % number for number in range(MANY_BLOCKS))
    assert blob.download_blob().readall() == content
    assert blob.get_block_list("all")[1] == []
    repeated = ids * (LIST_ENTRIES_MAX // MANY_BLOCKS)
    assert box.send("PUT", "many", "comp=blocklist", block_list(*repeated)).status == 201
    assert blob.get_blob_properties().size == LIST_ENTRIES_MAX * 6
    assert blob.download_blob(offset=LIST_ENTRIES_MAX * 6 - len(content)).readall() == content
    refused = box.send("PUT", "many", "comp=blocklist", block_list(*repeated, ids[0]))
    assert (refused.status, refused.headers["x-ms-error-code"]) == (400, "BlockListTooLong")

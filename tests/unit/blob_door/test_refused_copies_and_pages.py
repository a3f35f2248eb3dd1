"""Requests for copies, pages and queries that the door refuses, each with the service's status and code."""

from __future__ import annotations

import pytest

from tests.unit.blob_door.blob_door_at_hand import BlobDoorAtHand, open_door

SERVER = "http://127.0.0.1:10000/devstoreaccount1/"
SOURCE = {"x-ms-copy-source": SERVER + "box/b"}
BEFORE_TIME = "0001-01-01T00:00:00.0000000Z"
HUGE = "9" * 19


async def open_box(at_hand: BlobDoorAtHand) -> None:
    await at_hand.make_container("box")
    await at_hand.put("box/b", b"data")
    page = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "4096"}
    assert (await at_hand.send("PUT", "box/p", headers=page)).status == 201


@pytest.mark.parametrize(
    ("source", "status", "code"),
    [
        ("box/b?snapshot=" + BEFORE_TIME, 400, "InvalidHeaderValue"),
        ("box/b?snapshot=2020-01-01T00:00:00.0000000Z", 404, "CannotVerifyCopySource"),
        ("nobox/b", 404, "CannotVerifyCopySource"),
        ("BAD__/b", 404, "CannotVerifyCopySource"),
        ("box/b%00", 404, "CannotVerifyCopySource"),
        ("box/b%00%ff", 400, "CannotVerifyCopySource"),
        ("box/b?sv=2026-10-06&sr=b&sp=r&se=2099-01-01&sig=abc", 403, "CannotVerifyCopySource"),
    ],
)
async def test_a_source_that_cannot_be_read(source: str, status: int, code: str) -> None:
    async with open_door() as at_hand:
        await open_box(at_hand)
        asked = {"x-ms-copy-source": SERVER + source}
        assert (await at_hand.send("PUT", "box/c", headers=asked)).outcome == (status, code)
        assert (await at_hand.send("HEAD", "box/c")).status == 404


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"x-ms-copy-source": "http://example.com/devstoreaccount1/box/b"}, 400, "CannotVerifyCopySource"),
        ({"x-ms-copy-source": "http://[::1]:x/a/b"}, 400, "InvalidHeaderValue"),
        ({"x-ms-copy-source-authorization": "Bearer x.y.z"}, 403, "CannotVerifyCopySource"),
        ({"x-ms-copy-source-authorization": "SharedKey a:b"}, 400, "InvalidHeaderValue"),
        ({"x-ms-requires-sync": "maybe"}, 400, "InvalidHeaderValue"),
        ({"x-ms-access-tier": "P4"}, 400, "InvalidHeaderValue"),
        ({"x-ms-source-if-match": '"0x1"'}, 412, "ConditionNotMet"),
        ({"x-ms-copy-source-tag-option": "MOVE"}, 400, "InvalidHeaderValue"),
        ({"x-ms-source-range": "bytes=0-1"}, 400, "UnsupportedHeader"),
        ({"x-ms-source-range": "bytes=0-1", "x-ms-requires-sync": "true"}, 400, "UnsupportedHeader"),
    ],
)
async def test_a_copy_that_is_refused(more: dict[str, str], status: int, code: str) -> None:
    async with open_door() as at_hand:
        await open_box(at_hand)
        assert (await at_hand.send("PUT", "box/c", headers={**SOURCE, **more})).outcome == (status, code)


@pytest.mark.parametrize("length", ["", "-1", "²", "9" * 20, "9" * 5000])
async def test_the_length_of_a_structured_content_is_a_number(length: str) -> None:
    structured = {"x-ms-structured-body": "XSM/1.0; properties=crc64", "x-ms-structured-content-length": length}
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        assert (await at_hand.put("box/c", b"data", structured)).outcome == (400, "InvalidHeaderValue")


async def test_the_key_of_the_account_permits_whole_copies_only() -> None:
    async with open_door() as at_hand:
        await open_box(at_hand)
        assert (await at_hand.send("PUT", "box/c", headers=SOURCE)).status == 202
        block = await at_hand.send("PUT", "box/c?comp=block&blockid=MQ==", headers=SOURCE)
        assert block.outcome == (401, "CannotVerifyCopySource")
        assert block.headers["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"


@pytest.mark.parametrize(
    ("source_range", "status", "code"),
    [
        ("bytes=0-" + HUGE, 416, "InvalidRange"),
        ("bytes=4-4", 416, "InvalidRange"),
        ("bytes=-5", 400, "InvalidHeaderValue"),
    ],
)
async def test_a_range_that_a_source_does_not_have(source_range: str, status: int, code: str) -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box", {"x-ms-blob-public-access": "blob"})
        await at_hand.put("box/b", b"data")
        asked = {**SOURCE, "x-ms-source-range": source_range}
        answer = await at_hand.send("PUT", "box/c?comp=block&blockid=MQ==", headers=asked)
        assert answer.outcome == (status, code)


@pytest.mark.parametrize(
    ("query", "headers", "status", "code"),
    [
        ("comp=pagelist", {"x-ms-range": f"bytes={HUGE}-{HUGE}"}, 416, "InvalidRange"),
        ("comp=pagelist&marker=" + "9" * 18, {}, 400, "OutOfRangeQueryParameterValue"),
        ("comp=pagelist&marker=x", {}, 400, "InvalidQueryParameterValue"),
        ("comp=pagelist&maxresults=0", {}, 400, "OutOfRangeQueryParameterValue"),
        ("comp=pagelist&prevsnapshot=" + BEFORE_TIME, {}, 400, "InvalidQueryParameterValue"),
        ("comp=pagelist&prevsnapshot=2020-01-01T00:00:00.0000000Z", {}, 409, "PreviousSnapshotNotFound"),
        ("comp=pagelist&snapshot=" + BEFORE_TIME, {}, 400, "InvalidQueryParameterValue"),
    ],
)
async def test_ranges_that_are_refused(query: str, headers: dict[str, str], status: int, code: str) -> None:
    async with open_door() as at_hand:
        await open_box(at_hand)
        assert (await at_hand.send("GET", f"box/p?{query}", headers=headers)).outcome == (status, code)


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({"x-ms-page-write": "update", "x-ms-range": "bytes=0-1023"}, b"a" * 512, 400, "InvalidHeaderValue"),
        ({"x-ms-page-write": "update", "x-ms-range": "bytes=4096-4607"}, b"a" * 512, 416, "InvalidRange"),
        ({"x-ms-page-write": "update", "x-ms-range": "bytes=1-512"}, b"a" * 512, 416, "InvalidPageRange"),
        ({"x-ms-page-write": "update", "x-ms-range": "bytes=0-8388607"}, b"", 413, "RequestBodyTooLarge"),
        ({"x-ms-page-write": "clear", "x-ms-range": f"bytes=0-{2**63 - 1}"}, b"", 416, "InvalidRange"),
        ({"x-ms-page-write": "clear"}, b"", 400, "MissingRequiredHeader"),
        ({"x-ms-page-write": "shred", "x-ms-range": "bytes=0-511"}, b"", 400, "InvalidHeaderValue"),
        ({"x-ms-range": "bytes=0-511"}, b"", 400, "MissingRequiredHeader"),
    ],
)
async def test_pages_that_are_not_written(headers: dict[str, str], body: bytes, status: int, code: str) -> None:
    async with open_door() as at_hand:
        await open_box(at_hand)
        assert (await at_hand.send("PUT", "box/p?comp=page", body, headers)).outcome == (status, code)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"x-ms-blob-content-length": "100"}, 400, "InvalidHeaderValue"),
        ({"x-ms-blob-content-length": HUGE}, 400, "InvalidHeaderValue"),
        ({"x-ms-sequence-number-action": "update"}, 400, "MissingRequiredHeader"),
        ({"x-ms-sequence-number-action": "update", "x-ms-blob-sequence-number": HUGE}, 400, "InvalidHeaderValue"),
        ({"x-ms-sequence-number-action": "increment", "x-ms-blob-sequence-number": "1"}, 400, "InvalidHeaderValue"),
        ({"x-ms-sequence-number-action": "double"}, 400, "InvalidHeaderValue"),
    ],
)
async def test_sizes_and_sequence_numbers_that_are_refused(headers: dict[str, str], status: int, code: str) -> None:
    async with open_door() as at_hand:
        await open_box(at_hand)
        assert (await at_hand.send("PUT", "box/p?comp=properties", headers=headers)).outcome == (status, code)


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("box/b?comp=query", b"<x/>", 400, "InvalidXmlDocument"),
        ("box/b?comp=query", b"<!DOCTYPE a><x/>", 400, "InvalidXmlDocument"),
        (
            "box/p?comp=query",
            b"<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT _1 FROM b</Expression></QueryRequest>",
            409,
            "InvalidBlobType",
        ),
        (
            "box/b?comp=query",
            b"<QueryRequest><QueryType>SQL</QueryType><Expression>SELEC</Expression></QueryRequest>",
            400,
            "InvalidInput",
        ),
    ],
)
async def test_queries_that_are_refused(path: str, body: bytes, status: int, code: str) -> None:
    async with open_door() as at_hand:
        await open_box(at_hand)
        assert (await at_hand.send("POST", path, body)).outcome == (status, code)

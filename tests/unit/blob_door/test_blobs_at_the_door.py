"""Block and append blobs at the door: what is written is read, whole, by ranges and under conditions."""

from __future__ import annotations

import base64
import hashlib

import pytest

from asterism.apis.blob.spec import BlobSettings
from asterism.values.crc64 import crc64, crc64_bytes
from tests.unit.blob_door.blob_door_at_hand import BlobDoorAtHand, open_door

DATA = bytes(range(256)) * 40


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def with_blob(at_hand: BlobDoorAtHand, data: bytes = DATA) -> None:
    await at_hand.make_container("box")
    assert (await at_hand.put("box/b", data)).status == 201


async def test_a_blob_is_read_back_with_its_properties() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        written = await at_hand.put(
            "box/a%20name/%C3%A9", DATA, {"x-ms-blob-content-type": "text/plain", "x-ms-meta-color": "blue"}
        )
        md5 = base64_text(hashlib.md5(DATA).digest())
        assert written.headers["content-md5"] == md5
        read = await at_hand.send("GET", "box/a%20name/%C3%A9")
        assert (read.status, read.body) == (200, DATA)
        assert read.headers["etag"] == written.headers["etag"]
        assert read.headers["content-type"] == "text/plain"
        assert read.headers["content-md5"] == md5
        assert read.headers["x-ms-meta-color"] == "blue"
        assert read.headers["x-ms-blob-type"] == "BlockBlob"
        head = await at_hand.send("HEAD", "box/a%20name/%C3%A9")
        assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(DATA)))


@pytest.mark.parametrize(
    ("asked", "shown", "part"),
    [
        ("bytes=0-3", "bytes 0-3/10240", DATA[:4]),
        ("bytes=10000-", "bytes 10000-10239/10240", DATA[10000:]),
        ("bytes=10200-99999", "bytes 10200-10239/10240", DATA[10200:]),
    ],
)
async def test_a_range_is_answered_with_its_bytes(asked: str, shown: str, part: bytes) -> None:
    async with open_door() as at_hand:
        await with_blob(at_hand)
        read = await at_hand.send("GET", "box/b", headers={"x-ms-range": asked, "x-ms-range-get-content-md5": "true"})
        assert (read.status, read.headers["content-range"], read.body) == (206, shown, part)
        assert read.headers["content-md5"] == base64_text(hashlib.md5(part).digest())
        assert read.headers["x-ms-blob-content-md5"] == base64_text(hashlib.md5(DATA).digest())


async def test_a_range_behind_the_end_is_refused_with_the_size() -> None:
    async with open_door() as at_hand:
        await with_blob(at_hand, b"")
        read = await at_hand.send("GET", "box/b", headers={"x-ms-range": "bytes=0-33554431"})
        assert read.outcome == (416, "InvalidRange")
        assert read.headers["content-range"] == "bytes */0"


@pytest.mark.parametrize(
    ("header", "value", "code"),
    [
        ("content-md5", base64_text(hashlib.md5(b"else").digest()), "Md5Mismatch"),
        ("content-md5", "AAAA", "InvalidMd5"),
        ("x-ms-content-crc64", base64_text(crc64_bytes(crc64(b"else"))), "Crc64Mismatch"),
        ("x-ms-content-crc64", "no base64", "InvalidHeaderValue"),
    ],
)
@pytest.mark.parametrize("path", ["box/b", "box/b?comp=block&blockid=AAAA", "box/a?comp=appendblock"])
async def test_data_that_do_not_fit_their_checksum_leave_everything_as_it_was(
    path: str, header: str, value: str, code: str
) -> None:
    async with open_door() as at_hand:
        await with_blob(at_hand, b"before")
        await at_hand.put("box/a", headers={"x-ms-blob-type": "AppendBlob"})
        assert (await at_hand.put(path, DATA, {header: value})).outcome == (400, code)
        assert (await at_hand.send("GET", "box/b")).body == b"before"
        assert (await at_hand.send("GET", "box/a")).body == b""
        listed = await at_hand.send("GET", "box/b?comp=blocklist&blocklisttype=uncommitted")
        assert listed.xml.find("UncommittedBlocks/Block") is None


async def test_blocks_answer_their_crc64_and_the_md5_that_was_sent() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        put = await at_hand.put("box/b?comp=block&blockid=AAAA", DATA)
        assert put.headers["x-ms-content-crc64"] == base64_text(crc64_bytes(crc64(DATA)))
        md5 = base64_text(hashlib.md5(DATA).digest())
        put = await at_hand.put("box/b?comp=block&blockid=AAAB", DATA, {"content-md5": md5})
        assert put.headers["content-md5"] == md5


async def test_a_list_of_blocks_becomes_the_blob() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        await at_hand.put("box/b?comp=block&blockid=AAAA", b"one ")
        await at_hand.put("box/b?comp=block&blockid=AAAB", b"two ")
        body = b"<BlockList><Latest>AAAB</Latest><Uncommitted>AAAA</Uncommitted><Latest>AAAB</Latest></BlockList>"
        committed = await at_hand.send("PUT", "box/b?comp=blocklist", body, {"x-ms-blob-content-type": "text/x"})
        assert committed.status == 201
        read = await at_hand.send("GET", "box/b")
        assert (read.body, read.headers["content-type"]) == (b"two one two ", "text/x")
        listed = await at_hand.send("GET", "box/b?comp=blocklist&blocklisttype=all")
        assert [name.text for name in listed.xml.iterfind("CommittedBlocks/Block/Name")] == ["AAAB", "AAAA", "AAAB"]
        assert listed.headers["x-ms-blob-content-length"] == "12"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<BlockList><Latest>ZZZZ</Latest></BlockList>", "InvalidBlockList"),
        (b"<BlockList><Latest>AAAA</Latest>", "InvalidXmlDocument"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><BlockList/>', "InvalidXmlDocument"),
    ],
)
async def test_a_list_that_cannot_be_committed_changes_nothing(body: bytes, code: str) -> None:
    async with open_door() as at_hand:
        await with_blob(at_hand)
        assert (await at_hand.send("PUT", "box/b?comp=blocklist", body)).outcome == (400, code)
        assert (await at_hand.send("GET", "box/b")).body == DATA


async def test_conditions_decide_on_reads_and_writes() -> None:
    async with open_door() as at_hand:
        await with_blob(at_hand)
        etag = (await at_hand.send("HEAD", "box/b")).headers["etag"]
        unchanged = await at_hand.send("GET", "box/b", headers={"if-none-match": etag})
        assert (unchanged.status, unchanged.body) == (304, b"")
        assert (await at_hand.send("GET", "box/b", headers={"if-match": '"0x1"'})).outcome == (412, "ConditionNotMet")
        assert (await at_hand.put("box/b", b"", {"if-none-match": "*"})).outcome == (409, "BlobAlreadyExists")
        assert (await at_hand.put("box/b", b"", {"if-match": '"0x1"'})).outcome == (412, "ConditionNotMet")
        assert (await at_hand.put("box/b", b"", {"if-match": etag})).status == 201


async def test_a_lease_guards_a_blob() -> None:
    async with open_door() as at_hand:
        await with_blob(at_hand)
        acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
        acquired = await at_hand.send("PUT", "box/b?comp=lease", headers=acquire)
        lease = {"x-ms-lease-id": acquired.headers["x-ms-lease-id"]}
        assert (await at_hand.put("box/b", b"")).outcome == (412, "LeaseIdMissing")
        other = {"x-ms-lease-id": "11111111-0000-4000-8000-000000000000"}
        assert (await at_hand.put("box/b", b"", other)).outcome == (412, "LeaseIdMismatchWithBlobOperation")
        assert (await at_hand.put("box/b", b"", lease)).status == 201
        head = await at_hand.send("HEAD", "box/b")
        assert (head.headers["x-ms-lease-state"], head.headers["x-ms-lease-status"]) == ("leased", "locked")
        broken = await at_hand.send(
            "PUT", "box/b?comp=lease", headers={"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"}
        )
        assert (broken.status, broken.headers["x-ms-lease-time"]) == (202, "0")
        short = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "14"}
        assert (await at_hand.send("PUT", "box/b?comp=lease", headers=short)).outcome == (400, "InvalidHeaderValue")


async def test_appended_blocks_follow_each_other() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        await at_hand.put("box/a", headers={"x-ms-blob-type": "AppendBlob"})
        first = await at_hand.put("box/a?comp=appendblock", b"one ")
        second = await at_hand.put("box/a?comp=appendblock", b"two", {"x-ms-blob-condition-appendpos": "4"})
        offsets = [reply.headers["x-ms-blob-append-offset"] for reply in (first, second)]
        assert offsets == ["0", "4"]
        late = await at_hand.put("box/a?comp=appendblock", b"x", {"x-ms-blob-condition-appendpos": "4"})
        assert late.outcome == (412, "AppendPositionConditionNotMet")
        large = await at_hand.put("box/a?comp=appendblock", b"x", {"x-ms-blob-condition-maxsize": "7"})
        assert large.outcome == (412, "MaxBlobSizeConditionNotMet")
        assert (await at_hand.send("GET", "box/a")).body == b"one two"


async def test_a_snapshot_keeps_what_the_blob_was() -> None:
    async with open_door() as at_hand:
        await with_blob(at_hand)
        snapshot = (await at_hand.send("PUT", "box/b?comp=snapshot")).headers["x-ms-snapshot"]
        await at_hand.put("box/b", b"later")
        assert (await at_hand.send("GET", f"box/b?snapshot={snapshot}")).body == DATA
        assert (await at_hand.send("DELETE", "box/b")).outcome == (409, "SnapshotsPresent")
        deleted = await at_hand.send("DELETE", "box/b", headers={"x-ms-delete-snapshots": "include"})
        assert deleted.status == 202
        assert (await at_hand.send("GET", f"box/b?snapshot={snapshot}")).outcome == (404, "BlobNotFound")
        assert (await at_hand.send("GET", "box/b?snapshot=yesterday")).outcome == (400, "InvalidQueryParameterValue")


async def test_tags_tier_and_headers_are_changed() -> None:
    async with open_door() as at_hand:
        await with_blob(at_hand)
        body = b"<Tags><TagSet><Tag><Key>kind</Key><Value>note</Value></Tag></TagSet></Tags>"
        assert (await at_hand.send("PUT", "box/b?comp=tags", body)).status == 204
        tags = await at_hand.send("GET", "box/b?comp=tags")
        assert [value.text for value in tags.xml.iterfind("TagSet/Tag/Value")] == ["note"]
        found = await at_hand.send("GET", "?comp=blobs&where=%22kind%22%3D%27note%27")
        assert [name.text for name in found.xml.iterfind("Blobs/Blob/Name")] == ["b"]
        unmet = await at_hand.send("GET", "box/b", headers={"x-ms-if-tags": "\"kind\" = 'letter'"})
        assert unmet.outcome == (412, "ConditionNotMet")
        assert (await at_hand.send("PUT", "box/b?comp=tier", headers={"x-ms-access-tier": "Archive"})).status == 200
        assert (await at_hand.send("GET", "box/b")).outcome == (409, "BlobArchived")
        assert (await at_hand.send("PUT", "box/b?comp=tier", headers={"x-ms-access-tier": "Hot"})).status == 202
        await at_hand.send("PUT", "box/b?comp=properties", headers={"x-ms-blob-content-language": "fi"})
        head = await at_hand.send("HEAD", "box/b")
        assert head.headers["content-language"] == "fi"
        assert head.headers["content-type"] == "application/octet-stream"
        assert head.headers["x-ms-archive-status"] == "rehydrate-pending-to-hot"


async def test_a_blob_with_a_snapshot_and_versions_is_overwritten() -> None:
    async with open_door(BlobSettings(versioned_accounts=("*",))) as at_hand:
        await with_blob(at_hand, b"first")
        taken = await at_hand.send("PUT", "box/b?comp=snapshot")
        assert (await at_hand.put("box/b", b"second")).status == 201
        snapshot, version = taken.headers["x-ms-snapshot"], taken.headers["x-ms-version-id"]
        assert (await at_hand.send("GET", f"box/b?snapshot={snapshot}")).body == b"first"
        assert (await at_hand.send("GET", f"box/b?versionid={version}")).body == b"first"
        assert (await at_hand.send("GET", "box/b")).body == b"second"

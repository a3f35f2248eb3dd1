"""Containers, listings and batches at the door, and who may read what."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from asterism.access.keys import DEVELOPMENT_ACCOUNT
from asterism.apis.blob.spec import BlobSettings
from tests.unit.blob_door.blob_door_at_hand import BlobDoorAtHand, Reply, open_door

LISTING = "box?restype=container&comp=list"


def names(reply: Reply) -> list[str | None]:
    return [name.text for name in reply.xml.iterfind("Blobs/*/Name")]


async def with_blobs(at_hand: BlobDoorAtHand, *blobs: str, headers: dict[str, str] | None = None) -> None:
    await at_hand.make_container("box", headers)
    for name in blobs:
        assert (await at_hand.put(f"box/{name}", name.encode(), {"x-ms-meta-of": "a<b"})).status == 201


async def test_a_container_tells_its_properties() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box", {"x-ms-meta-a": "1", "x-ms-blob-public-access": "blob"})
        read = await at_hand.send("GET", "box?restype=container")
        assert read.status == 200
        assert read.headers["x-ms-meta-a"] == "1"
        assert read.headers["x-ms-blob-public-access"] == "blob"
        assert read.headers["x-ms-lease-state"] == "available"
        assert read.headers["x-ms-has-legal-hold"] == "false"
        again = await at_hand.send("PUT", "box?restype=container")
        assert again.outcome == (409, "ContainerAlreadyExists")
        assert (await at_hand.send("GET", "none?restype=container")).outcome == (404, "ContainerNotFound")


async def test_metadata_and_policies_are_replaced_as_a_whole() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box", {"x-ms-meta-a": "1"})
        await at_hand.send("PUT", "box?restype=container&comp=metadata", headers={"x-ms-meta-b": "2"})
        read = await at_hand.send("GET", "box?restype=container&comp=metadata")
        assert [name for name in read.headers if name.startswith("x-ms-meta-")] == ["x-ms-meta-b"]
        policies = (
            b"<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Expiry>2030-01-01</Expiry>"
            b"<Permission>r</Permission></AccessPolicy></SignedIdentifier>"
            b"<SignedIdentifier><Id>q</Id></SignedIdentifier></SignedIdentifiers>"
        )
        assert (await at_hand.send("PUT", "box?restype=container&comp=acl", policies)).status == 200
        read = await at_hand.send("GET", "box?restype=container&comp=acl")
        assert [found.text for found in read.xml.iterfind("SignedIdentifier/Id")] == ["p", "q"]
        assert read.xml.findtext("SignedIdentifier/AccessPolicy/Permission") == "r"
        assert (await at_hand.send("PUT", "box?restype=container&comp=acl")).status == 200
        assert not list((await at_hand.send("GET", "box?restype=container&comp=acl")).xml)


async def test_leases_of_containers_have_codes_of_their_own() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
        acquired = await at_hand.send("PUT", "box?restype=container&comp=lease", headers=acquire)
        assert acquired.status == 201
        other = {"x-ms-lease-id": "11111111-0000-4000-8000-000000000000"}
        wrong = await at_hand.send("DELETE", "box?restype=container", headers=other)
        assert wrong.outcome == (412, "LeaseIdMismatchWithContainerOperation")
        assert (await at_hand.send("DELETE", "box?restype=container")).outcome == (412, "LeaseIdMissing")
        lease = {"x-ms-lease-id": acquired.headers["x-ms-lease-id"]}
        assert (await at_hand.send("DELETE", "box?restype=container", headers=lease)).status == 202


async def test_a_listing_continues_where_it_stopped() -> None:
    async with open_door() as at_hand:
        await with_blobs(at_hand, "a/1", "a/2", "b", "c/3")
        first = await at_hand.send("GET", f"{LISTING}&maxresults=2")
        assert names(first) == ["a/1", "a/2"]
        marker = first.xml.findtext("NextMarker")
        await at_hand.send("DELETE", "box/b")
        second = await at_hand.send("GET", f"{LISTING}&maxresults=2&marker={marker}")
        assert (names(second), second.xml.findtext("NextMarker")) == (["c/3"], "")
        assert (await at_hand.send("GET", f"{LISTING}&marker=xyz")).outcome == (400, "InvalidQueryParameterValue")
        assert (await at_hand.send("GET", f"{LISTING}&maxresults=0")).code == "OutOfRangeQueryParameterValue"
        assert (await at_hand.send("GET", f"{LISTING}&include=everything")).code == "InvalidQueryParameterValue"


async def pages_of_containers(at_hand: BlobDoorAtHand, query: str, *, pages_max: int = 10) -> list[list[str]]:
    """Return the names of containers, and the versions of deleted ones, page by page; `pages_max` ends a loop."""
    pages: list[list[str]] = []
    marker: str | None = ""
    while marker is not None and len(pages) < pages_max:
        listed = await at_hand.send("GET", f"?comp=list&{query}&marker={quote(marker)}")
        found = listed.xml.iterfind("Containers/Container")
        pages.append([f"{each.findtext('Name')} {each.findtext('Version', '')}".rstrip() for each in found])
        marker = listed.xml.findtext("NextMarker") or None
    return pages


async def test_containers_of_the_system_take_no_place_in_a_page() -> None:
    async with open_door() as at_hand:
        for name in ("$blobchangefeed", "$logs", "$web", "one", "two"):
            await at_hand.world.blobs.create_container(DEVELOPMENT_ACCOUNT, name)
        assert await pages_of_containers(at_hand, "maxresults=1") == [["$web"], ["one"], ["two"]]
        everything = [["$blobchangefeed", "$logs"], ["$web", "one"], ["two"]]
        assert await pages_of_containers(at_hand, "maxresults=2&include=system") == everything


async def test_a_listing_of_deleted_containers_of_one_name_comes_to_its_end() -> None:
    async with open_door(BlobSettings(container_retention=((DEVELOPMENT_ACCOUNT, 7),))) as at_hand:
        for _ in range(3):
            await at_hand.make_container("box")
            assert (await at_hand.send("DELETE", "box?restype=container")).status == 202
        for name in ("box", "next"):
            await at_hand.make_container(name)
        (whole,) = await pages_of_containers(at_hand, "include=deleted")
        assert [entry.partition(" ")[0] for entry in whole] == ["box", "box", "box", "box", "next"]
        for size in (1, 2, 3, 4):
            pages = await pages_of_containers(at_hand, f"include=deleted&maxresults={size}")
            assert [entry for page in pages for entry in page] == whole


async def test_a_hierarchy_shows_prefixes_in_place_of_what_is_below_them() -> None:
    async with open_door() as at_hand:
        await with_blobs(at_hand, "a/1", "a/2", "b", "c/3")
        listed = await at_hand.send("GET", f"{LISTING}&delimiter=/")
        assert [found.text for found in listed.xml.iterfind("Blobs/BlobPrefix/Name")] == ["a/", "c/"]
        assert [found.text for found in listed.xml.iterfind("Blobs/Blob/Name")] == ["b"]
        below = await at_hand.send("GET", f"{LISTING}&delimiter=/&prefix=a/")
        assert names(below) == ["a/1", "a/2"]


async def test_a_listing_includes_what_was_asked_for() -> None:
    async with open_door() as at_hand:
        await with_blobs(at_hand, "b")
        await at_hand.send("PUT", "box/b?comp=snapshot")
        await at_hand.put("box/u?comp=block&blockid=AAAA", b"x")
        assert names(await at_hand.send("GET", LISTING)) == ["b"]
        listed = await at_hand.send("GET", f"{LISTING}&include=snapshots,metadata,uncommittedblobs")
        assert names(listed) == ["b", "b", "u"]
        assert listed.xml.findtext("Blobs/Blob/Metadata/of") == "a<b"
        assert listed.xml.find("Blobs/Blob/Snapshot") is not None


async def test_public_access_is_for_what_it_names() -> None:
    async with open_door() as at_hand:
        await with_blobs(at_hand, "b", headers={"x-ms-blob-public-access": "blob"})
        assert (await at_hand.send("GET", "box/b", signed=False)).body == b"b"
        assert (await at_hand.send("GET", LISTING, signed=False)).status == 401
        assert (await at_hand.send("PUT", "box/b?comp=metadata", signed=False)).status == 401
        await at_hand.send("PUT", "box?restype=container&comp=acl", headers={"x-ms-blob-public-access": "container"})
        assert names(await at_hand.send("GET", LISTING, signed=False)) == ["b"]
        await at_hand.send("PUT", "box?restype=container&comp=acl")
        assert (await at_hand.send("GET", "box/b", signed=False)).status == 401


async def test_soft_deleted_blobs_are_listed_and_restored() -> None:
    async with open_door(BlobSettings(soft_delete=(("*", 7),))) as at_hand:
        await with_blobs(at_hand, "b")
        deleted = await at_hand.send("DELETE", "box/b")
        assert deleted.headers["x-ms-delete-type-permanent"] == "false"
        listed = await at_hand.send("GET", f"{LISTING}&include=deleted")
        assert listed.xml.findtext("Blobs/Blob/Deleted") == "true"
        assert listed.xml.findtext("Blobs/Blob/Properties/RemainingRetentionDays") in ("6", "7")
        assert (await at_hand.send("PUT", "box/b?comp=undelete")).status == 200
        assert (await at_hand.send("GET", "box/b")).body == b"b"


async def test_deleted_containers_are_restored_within_their_retention() -> None:
    async with open_door(BlobSettings(container_retention=(("*", 7),))) as at_hand:
        await with_blobs(at_hand, "b")
        await at_hand.send("DELETE", "box?restype=container")
        listed = await at_hand.send("GET", "?comp=list&include=deleted")
        version = listed.xml.findtext("Containers/Container/Version") or ""
        headers = {"x-ms-deleted-container-name": "box", "x-ms-deleted-container-version": version}
        restored = await at_hand.send("PUT", "box?restype=container&comp=undelete", headers=headers)
        assert restored.status == 201
        assert (await at_hand.send("GET", "box/b")).body == b"b"


@pytest.mark.parametrize(
    ("method", "path", "outcome"),
    [
        ("PUT", "box?resource=filesystem", (400, "NotImplemented")),
        ("GET", "box/b?comp=nothing", (400, "InvalidQueryParameterValue")),
        ("PATCH", "box/b", (405, "UnsupportedHttpVerb")),
        ("PUT", "box/b", (400, "MissingRequiredHeader")),
        ("PUT", "Box?restype=container", (400, "InvalidResourceName")),
        ("PUT", "bo?restype=container", (400, "OutOfRangeInput")),
        ("PUT", "$logs?restype=container", (400, "InvalidResourceName")),
        ("PUT", "$blobchangefeed?restype=container", (400, "InvalidResourceName")),
        ("PUT", "$logs?restype=container&comp=undelete", (400, "InvalidResourceName")),
        ("GET", "box/missing", (404, "BlobNotFound")),
        ("GET", "none/missing", (404, "ContainerNotFound")),
        ("GET", "box/b?comp=tags", (404, "BlobNotFound")),
        ("POST", "?comp=batch", (400, "InvalidInput")),
    ],
)
async def test_a_request_that_makes_no_sense_has_the_code_of_the_service(
    method: str, path: str, outcome: tuple[int, str]
) -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        assert (await at_hand.send(method, path)).outcome == outcome


async def test_a_batch_answers_each_of_its_parts() -> None:
    async with open_door() as at_hand:
        await with_blobs(at_hand, "b", headers={"x-ms-blob-public-access": "blob"})
        part = "--x\r\nContent-Type: application/http\r\nContent-ID: {id}\r\n\r\n{line} HTTP/1.1\r\n\r\n\r\n"
        lines = ["DELETE /devstoreaccount1/box/b", "GET /devstoreaccount1/box/b"]
        body = "".join(part.format(id=number, line=line) for number, line in enumerate(lines)) + "--x--\r\n"
        answer = await at_hand.send(
            "POST", "?comp=batch", body.encode(), {"content-type": "multipart/mixed; boundary=x"}
        )
        assert answer.status == 202
        assert b"HTTP/1.1 401" in answer.body
        assert b"Content-ID: 1" in answer.body
        assert b"InvalidInput" in answer.body
        assert (await at_hand.send("GET", "box/b")).body == b"b"

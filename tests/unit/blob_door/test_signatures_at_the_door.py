"""The limits of shared access signatures and of public access: each permits what it names, and nothing besides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from azure.storage.blob import generate_blob_sas, generate_container_sas

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asterism.apis.blob.spec import BlobSettings
from tests.unit.blob_door.blob_door_at_hand import BlobDoorAtHand, Reply, open_door

TOMORROW = datetime.now(UTC) + timedelta(days=1)
ALL = "racwdxyltfmei"
DATA = b"data"


def signature(permission: str = ALL, name: str = "b", **fields: object) -> str:
    return generate_blob_sas(
        DEVELOPMENT_ACCOUNT,
        "box",
        name,
        account_key=DEVELOPMENT_KEY,
        permission=permission,
        expiry=TOMORROW,
        **fields,  # type: ignore[arg-type] # any fields
    )


def of_container(permission: str) -> str:
    return generate_container_sas(
        DEVELOPMENT_ACCOUNT, "box", account_key=DEVELOPMENT_KEY, permission=permission, expiry=TOMORROW
    )


async def with_blob(at_hand: BlobDoorAtHand) -> None:
    await at_hand.make_container("box")
    assert (await at_hand.put("box/b", DATA)).status == 201


async def with_snapshot(at_hand: BlobDoorAtHand) -> str:
    """Return the snapshot of a block blob that was changed since, as parameters with a signature for it alone."""
    await at_hand.make_container("box")
    assert (await at_hand.put("box/b", b"earlier", {"x-ms-tags": "kind=note"})).status == 201
    snapshot = (await at_hand.send("PUT", "box/b?comp=snapshot")).headers["x-ms-snapshot"]
    assert (await at_hand.put("box/b", DATA, {"x-ms-tags": "kind=note"})).status == 201
    return f"snapshot={snapshot}&{signature(snapshot=snapshot)}"


SOURCE = "http://127.0.0.1:10000/devstoreaccount1/box/"
COPY = {"x-ms-copy-source": f"{SOURCE}b"}


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", {"x-ms-blob-type": "BlockBlob"}),
        ("", COPY),
        ("", {**COPY, "x-ms-blob-type": "BlockBlob"}),
        ("comp=block&blockid=AAAA", {}),
        ("comp=block&blockid=AAAA", COPY),
        ("comp=blocklist", {}),
        ("comp=appendblock", {}),
        ("comp=page", {"x-ms-page-write": "clear", "x-ms-range": "bytes=0-511"}),
        ("comp=seal", {}),
        ("comp=metadata", {"x-ms-meta-a": "b"}),
        ("comp=properties", {"x-ms-blob-content-type": "text/plain"}),
        ("comp=properties", {"x-ms-blob-content-length": "512"}),
        ("comp=snapshot", {}),
        ("comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}),
        ("comp=undelete", {}),
        ("comp=expiry", {"x-ms-expiry-option": "NeverExpire"}),
    ],
)
@pytest.mark.parametrize("parameter", ["snapshot", "versionid"])
async def test_an_operation_on_the_blob_itself_refuses_the_name_of_a_snapshot(
    query: str, headers: dict[str, str], parameter: str
) -> None:
    async with open_door() as at_hand:
        named = (await with_snapshot(at_hand)).replace("snapshot=", f"{parameter}=")
        before = await at_hand.send("HEAD", "box/b")
        refused = await at_hand.send("PUT", f"box/b?{named.partition('&')[0]}&{query}", b"x", headers)
        assert refused.outcome == (400, "InvalidQueryParameterValue")
        assert f"<QueryParameterName>{parameter}</QueryParameterName>".encode() in refused.body
        after = await at_hand.send("HEAD", "box/b")
        assert (after.headers["etag"], after.headers["x-ms-lease-state"]) == (before.headers["etag"], "available")


async def test_a_snapshots_signature_permits_to_change_that_snapshot_only() -> None:
    async with open_door() as at_hand:
        named = await with_snapshot(at_hand)
        refused = await at_hand.send("PUT", f"box/b?{named}", b"x", {"x-ms-blob-type": "BlockBlob"}, signed=False)
        assert refused.outcome == (400, "InvalidQueryParameterValue")
        for query in ("", "comp=metadata&", "comp=tags&", "comp=blocklist&", "restype=account&comp=properties&"):
            assert (await at_hand.send("GET", f"box/b?{query}{named}", signed=False)).status == 200
        tier = {"x-ms-access-tier": "Cool"}
        assert (await at_hand.send("PUT", f"box/b?comp=tier&{named}", headers=tier, signed=False)).status == 200
        assert (await at_hand.send("DELETE", f"box/b?{named}", signed=False)).status == 202
        assert (await at_hand.send("GET", "box/b")).body == DATA


# --- tags and holds ---------------------------------------------------------------------------------------------------

COPIES_TAGS = {"x-ms-copy-source-tag-option": "COPY"}
AT_ONCE = {"x-ms-requires-sync": "true"}
PUT_FROM_URL = {"x-ms-blob-type": "BlockBlob"}


def source(permission: str) -> dict[str, str]:
    return {"x-ms-copy-source": f"{SOURCE}b?{signature(permission)}", **COPIES_TAGS}


@pytest.mark.parametrize("kind", [{}, AT_ONCE, PUT_FROM_URL])
async def test_tags_are_copied_with_the_permission_to_read_and_to_write_them(kind: dict[str, str]) -> None:
    async with open_door() as at_hand:
        await with_snapshot(at_hand)
        unwritable = await at_hand.send(
            "PUT", f"box/c?{signature('cw', 'c')}", headers={**source("rt"), **kind}, signed=False
        )
        assert unwritable.outcome == (403, "AuthorizationPermissionMismatch")
        unreadable = await at_hand.send("PUT", "box/c", headers={**source("r"), **kind})
        assert unreadable.outcome == (403, "CannotVerifyCopySource")
        assert unreadable.headers["x-ms-copy-source-error-code"] == "AuthorizationPermissionMismatch"
        assert (await at_hand.send("GET", "box/c")).status == 404
        copied = await at_hand.send(
            "PUT", f"box/c?{signature('cwt', 'c')}", headers={**source("rt"), **kind}, signed=False
        )
        assert copied.status in (201, 202)
        tags = await at_hand.send("GET", "box/c?comp=tags")
        assert [value.text for value in tags.xml.iterfind("TagSet/Tag/Value")] == ["note"]


async def test_tags_of_a_public_source_are_not_public() -> None:
    async with open_door() as at_hand:
        await with_snapshot(at_hand)
        await at_hand.send("PUT", "box?restype=container&comp=acl", headers={"x-ms-blob-public-access": "blob"})
        refused = await at_hand.send("PUT", "box/c", headers={**COPY, **COPIES_TAGS, **AT_ONCE})
        assert refused.outcome == (401, "CannotVerifyCopySource")
        # Copy Blob may read all of the account whose key has signed it.
        assert (await at_hand.send("PUT", "box/c", headers={**COPY, **COPIES_TAGS})).status == 202


@pytest.mark.parametrize(
    "held",
    [{"x-ms-legal-hold": "true"}, {"x-ms-immutability-policy-until-date": format_datetime(TOMORROW, usegmt=True)}],
)
async def test_a_blob_is_made_with_a_hold_with_the_permission_to_set_it(held: dict[str, str]) -> None:
    async with open_door(BlobSettings(immutable_accounts=("*",))) as at_hand:
        await at_hand.make_container("box")
        headers = {"x-ms-blob-type": "BlockBlob", **held}
        refused = await at_hand.send("PUT", f"box/b?{signature('cw')}", DATA, headers, signed=False)
        assert refused.outcome == (403, "AuthorizationPermissionMismatch")
        assert (await at_hand.send("PUT", f"box/b?{signature('cwi')}", DATA, headers, signed=False)).status == 201


# --- what is not public -----------------------------------------------------------------------------------------------


async def test_only_what_is_committed_and_not_deleted_is_public() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box", {"x-ms-blob-public-access": "container"})
        assert (await at_hand.put("box/b", DATA)).status == 201
        assert (await at_hand.put("box/b?comp=block&blockid=AAAA", b"x")).status == 201
        blocks, blobs = "box/b?comp=blocklist", "box?restype=container&comp=list"
        for path in (f"{blocks}&blocklisttype=committed", f"{blobs}&include=snapshots,metadata"):
            assert (await at_hand.send("GET", path, signed=False)).status == 200
        for path in (
            *(f"{blocks}&blocklisttype={kind}" for kind in ("uncommitted", "all")),
            *(f"{blobs}&include={kind}" for kind in ("uncommittedblobs", "Deleted", "metadata,deletedwithversions")),
        ):
            refused = await at_hand.send("GET", path, signed=False)
            assert refused.outcome == (401, "NoAuthenticationInformation")
            assert (await at_hand.send("GET", path)).status == 200


async def test_a_directorys_signature_finds_no_blobs_by_tags() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        assert (await at_hand.put("box/other/b", DATA, {"x-ms-tags": "kind=note"})).status == 201
        of_directory = signature("rlf", "a", is_directory=True, sdd=1)
        for query in ("comp=list", "comp=list&delimiter=/"):
            listed = await at_hand.send("GET", f"box?restype=container&{query}&prefix=a/&{of_directory}", signed=False)
            assert listed.status == 200
        search = "comp=blobs&where=%22kind%22%3D%27note%27"
        found = await at_hand.send("GET", f"box?restype=container&{search}&prefix=a/&{of_directory}", signed=False)
        assert found.outcome == (403, "AuthenticationFailed")
        granted = await at_hand.send("GET", f"box?restype=container&{search}&{of_container('f')}", signed=False)
        assert [name.text for name in granted.xml.iterfind("Blobs/Blob/Name")] == ["other/b"]


# --- batches ----------------------------------------------------------------------------------------------------------


async def delete_in_batch(at_hand: BlobDoorAtHand, path: str, *names: str) -> Reply:
    """Send a batch that deletes blobs of the box, each with a signature that permits it."""
    part = "--x\r\nContent-Type: application/http\r\n\r\nDELETE /{}/box/{}?{} HTTP/1.1\r\n\r\n\r\n"
    body = "".join(part.format(DEVELOPMENT_ACCOUNT, name, of_container("d")) for name in names) + "--x--\r\n"
    return await at_hand.send("POST", path, body.encode(), {"content-type": "multipart/mixed; boundary=x"})


async def test_a_batch_of_a_container_is_about_its_own_blobs() -> None:
    async with open_door() as at_hand:
        await with_blob(at_hand)
        await at_hand.make_container("other")
        answer = await delete_in_batch(at_hand, "other?restype=container&comp=batch", "b")
        assert (answer.status, b"InvalidInput" in answer.body) == (202, True)
        assert (await at_hand.send("GET", "box/b")).status == 200
        await delete_in_batch(at_hand, "box?restype=container&comp=batch", "b")
        assert (await at_hand.send("GET", "box/b")).status == 404


async def test_a_batch_with_a_name_that_is_not_utf8_deletes_nothing() -> None:
    async with open_door() as at_hand:
        await with_blob(at_hand)
        assert (await delete_in_batch(at_hand, "?comp=batch", "b", "%FF")).outcome == (400, "InvalidUri")
        assert (await at_hand.send("GET", "box/b")).body == DATA


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["%FF", "%FE", "%C3%28", "%ED%A0%80", "a/%EF%BF%BD"])
async def test_a_name_that_may_not_be_utf8_is_refused_unless_its_very_bytes_are_signed(name: str) -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box", {"x-ms-blob-public-access": "container"})
        block_blob = {"x-ms-blob-type": "BlockBlob"}
        refused = await at_hand.send("PUT", f"box/{name}?{of_container('cw')}", b"x", block_blob, signed=False)
        assert refused.outcome == (400, "InvalidUri")
        assert (await at_hand.send("GET", f"box/{name}", signed=False)).outcome == (400, "InvalidUri")
        listed = await at_hand.send("GET", "box?restype=container&comp=list")
        assert listed.xml.findall("Blobs/Blob") == []


async def test_the_replacement_character_is_one_of_a_name() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        assert (await at_hand.put("box/%EF%BF%BD", DATA)).status == 201
        named = await at_hand.send("GET", f"box/%EF%BF%BD?{signature('r', chr(0xFFFD))}", signed=False)
        assert named.body == DATA
        # The signature is over other bytes than the name as it arrives here.
        assert (await at_hand.put("box/%FF", b"x")).outcome == (403, "AuthenticationFailed")


async def test_a_source_that_is_not_utf8_is_refused() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        assert (await at_hand.put("box/%EF%BF%BD", DATA)).status == 201
        refused = await at_hand.put("box/b", headers={"x-ms-copy-source": f"{SOURCE}%FF?{of_container('r')}"})
        assert refused.outcome == (400, "CannotVerifyCopySource")
        assert refused.headers["x-ms-copy-source-error-code"] == "InvalidUri"


async def test_a_name_in_the_root_container_has_no_slash() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("$root")
        assert (await at_hand.put("$root/a/b", DATA)).outcome == (400, "InvalidResourceName")
        assert (await at_hand.put("$root/a", DATA)).status == 201
        assert (await at_hand.send("GET", "a")).body == DATA


# --- permanent deletion -----------------------------------------------------------------------------------------------

RETENTION = (
    "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>"
    "<AllowPermanentDelete>{}</AllowPermanentDelete></DeleteRetentionPolicy></StorageServiceProperties>"
)


async def keep_deleted(at_hand: BlobDoorAtHand, *, permits_permanent: str) -> None:
    body = RETENTION.format(permits_permanent).encode()
    assert (await at_hand.send("PUT", "?restype=service&comp=properties", body)).status == 202


async def test_only_what_is_deleted_already_is_removed_for_good() -> None:
    async with open_door() as at_hand:
        snapshot = (await with_snapshot(at_hand)).partition("&")[0]
        await keep_deleted(at_hand, permits_permanent="true")
        permanent = f"deletetype=permanent&{signature('y')}"
        of_snapshot = f"{snapshot}&deletetype=permanent&{signature('y', snapshot=snapshot.removeprefix('snapshot='))}"
        for query in (permanent, of_snapshot):
            refused = await at_hand.send("DELETE", f"box/b?{query}", signed=False)
            assert refused.outcome == (409, "BlobSnapshotNotSoftDeleted")
        assert (await at_hand.send("GET", f"box/b?{snapshot}")).body == b"earlier"
        assert (await at_hand.send("DELETE", f"box/b?{snapshot}")).status == 202
        removed = await at_hand.send("DELETE", f"box/b?{of_snapshot}", signed=False)
        assert (removed.status, removed.headers["x-ms-delete-type-permanent"]) == (202, "true")
        assert (await at_hand.send("PUT", "box/b?comp=undelete")).status == 200
        assert (await at_hand.send("GET", f"box/b?{snapshot}")).status == 404
        assert (await at_hand.send("GET", "box/b")).body == DATA


async def test_nothing_is_removed_for_good_unless_the_account_permits_it() -> None:
    async with open_door() as at_hand:
        snapshot = (await with_snapshot(at_hand)).partition("&")[0]
        await keep_deleted(at_hand, permits_permanent="false")
        assert (await at_hand.send("DELETE", f"box/b?{snapshot}")).status == 202
        refused = await at_hand.send("DELETE", f"box/b?deletetype=permanent&{snapshot}")
        assert refused.outcome == (409, "PermanentDeleteNotEnabled")
        assert (await at_hand.send("PUT", "box/b?comp=undelete")).status == 200
        assert (await at_hand.send("GET", f"box/b?{snapshot}")).body == b"earlier"

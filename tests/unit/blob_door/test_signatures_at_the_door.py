"""The limits of shared access signatures and of public access: each permits what it names, and nothing besides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import generate_blob_sas, generate_container_sas

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from tests.unit.blob_door.blob_door_at_hand import BlobDoorAtHand, open_door

TOMORROW = datetime.now(UTC) + timedelta(days=1)
ALL = "racwdxyltfmei"
DATA = b"data"


def signature(permission: str = ALL, name: str = "b", **fields: str) -> str:
    return generate_blob_sas(
        DEVELOPMENT_ACCOUNT,
        "box",
        name,
        account_key=DEVELOPMENT_KEY,
        permission=permission,
        expiry=TOMORROW,
        **fields,  # type: ignore[arg-type] # texts only
    )


def of_container(permission: str) -> str:
    return generate_container_sas(
        DEVELOPMENT_ACCOUNT, "box", account_key=DEVELOPMENT_KEY, permission=permission, expiry=TOMORROW
    )


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

"""Blobs that were written with a key or a scope of encryption, at the door."""

from __future__ import annotations

import base64
import hashlib

import pytest

from tests.unit.blob_door.blob_door_at_hand import open_door


def key_headers(key: bytes, prefix: str = "x-ms-") -> dict[str, str]:
    return {
        f"{prefix}encryption-key": base64.b64encode(key).decode(),
        f"{prefix}encryption-key-sha256": base64.b64encode(hashlib.sha256(key).digest()).decode(),
        f"{prefix}encryption-algorithm": "AES256",
    }


KEY = key_headers(b"k" * 32)
OTHER = key_headers(b"o" * 32)
SCOPE = {"x-ms-encryption-scope": "one"}


async def test_a_blob_is_read_with_its_key_only() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        written = await at_hand.put("box/b", b"secret", KEY)
        assert written.headers["x-ms-encryption-key-sha256"] == KEY["x-ms-encryption-key-sha256"]
        assert (await at_hand.send("GET", "box/b", headers=KEY)).body == b"secret"
        assert (await at_hand.send("GET", "box/b")).outcome == (409, "BlobUsesCustomerSpecifiedEncryption")
        assert (await at_hand.send("HEAD", "box/b")).outcome == (409, "BlobUsesCustomerSpecifiedEncryption")
        wrong = await at_hand.send("GET", "box/b", headers=OTHER)
        assert wrong.outcome == (409, "BlobCustomerSpecifiedEncryptionMismatch")


async def test_a_blob_without_a_key_takes_none() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        await at_hand.put("box/b", b"open")
        assert (await at_hand.send("GET", "box/b", headers=KEY)).code == "BlobDoesNotUseCustomerSpecifiedEncryption"


@pytest.mark.parametrize(
    ("path", "headers"),
    [("box/b?comp=metadata", {"x-ms-meta-a": "b"}), ("box/b?comp=snapshot", {})],
)
async def test_changes_need_the_key_or_the_scope_of_the_blob(path: str, headers: dict[str, str]) -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        for own in (KEY, SCOPE):
            await at_hand.put("box/b", b"data", own)
            assert (await at_hand.send("PUT", path, headers=headers)).status == 409
            assert (await at_hand.send("PUT", path, headers={**headers, **own})).status in (200, 201)


async def test_blocks_are_committed_with_the_key_that_they_were_put_with() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        await at_hand.put("box/b", b"before")
        await at_hand.send("PUT", "box/b?comp=block&blockid=MQ==", b"data", KEY)
        body = b"<BlockList><Latest>MQ==</Latest></BlockList>"
        assert (await at_hand.send("PUT", "box/b?comp=blocklist", body)).status == 409
        assert (await at_hand.send("PUT", "box/b?comp=blocklist", body, KEY)).status == 201
        assert (await at_hand.send("GET", "box/b", headers=KEY)).body == b"data"


async def test_a_copy_is_given_the_key_of_its_source_and_its_own() -> None:
    async with open_door() as at_hand:
        await at_hand.make_container("box", {"x-ms-blob-public-access": "blob"})
        await at_hand.put("box/b", b"secret", KEY)
        url = "http://127.0.0.1:10000/devstoreaccount1/box/b"
        asked = {"x-ms-copy-source": url, **OTHER}
        assert (await at_hand.put("box/c", headers=asked)).outcome == (409, "CannotVerifyCopySource")
        assert (await at_hand.put("box/c", headers={**asked, **key_headers(b"k" * 32, "x-ms-source-")})).status == 201
        assert (await at_hand.send("GET", "box/c", headers=OTHER)).body == b"secret"


async def test_the_default_scope_of_a_container_is_that_of_its_blobs() -> None:
    async with open_door() as at_hand:
        defaults = {"x-ms-default-encryption-scope": "own", "x-ms-deny-encryption-scope-override": "true"}
        await at_hand.make_container("box", defaults)
        assert (await at_hand.put("box/b", b"data")).headers["x-ms-encryption-scope"] == "own"
        refused = await at_hand.put("box/b", b"data", SCOPE)
        assert refused.outcome == (403, "RequestForbiddenByContainerEncryptionPolicy")
        assert (await at_hand.send("GET", "box/b")).headers["x-ms-encryption-scope"] == "own"

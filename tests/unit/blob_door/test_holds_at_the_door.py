"""Immutability policies, legal holds and expiry at the door."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from asterism.apis.blob.spec import BlobSettings
from tests.unit.blob_door.blob_door_at_hand import BlobDoorAtHand, open_door

IMMUTABLE = BlobSettings(immutable_accounts=("*",))


def in_an_hour() -> str:
    return formatdate(time.time() + 3600, usegmt=True)


async def with_blob(at_hand: BlobDoorAtHand) -> None:
    await at_hand.make_container("box")
    assert (await at_hand.put("box/b", b"data")).status == 201


async def test_a_policy_forbids_changes_until_it_is_deleted() -> None:
    async with open_door(IMMUTABLE) as at_hand:
        await with_blob(at_hand)
        until = in_an_hour()
        policy = {"x-ms-immutability-policy-until-date": until, "x-ms-immutability-policy-mode": "Unlocked"}
        answer = await at_hand.send("PUT", "box/b?comp=immutabilityPolicies", headers=policy)
        assert (answer.status, answer.headers["x-ms-immutability-policy-until-date"]) == (200, until)
        assert (await at_hand.send("HEAD", "box/b")).headers["x-ms-immutability-policy-mode"] == "Unlocked"
        assert (await at_hand.send("DELETE", "box/b")).outcome == (409, "BlobImmutableDueToPolicy")
        assert (await at_hand.send("DELETE", "box/b?comp=immutabilityPolicies")).status == 200
        assert (await at_hand.send("DELETE", "box/b")).status == 202


async def test_a_locked_policy_stays() -> None:
    async with open_door(IMMUTABLE) as at_hand:
        await with_blob(at_hand)
        policy = {"x-ms-immutability-policy-until-date": in_an_hour(), "x-ms-immutability-policy-mode": "locked"}
        answer = await at_hand.send("PUT", "box/b?comp=immutabilityPolicies", headers=policy)
        assert (answer.status, answer.headers["x-ms-immutability-policy-mode"]) == (200, "Locked")
        assert (await at_hand.send("DELETE", "box/b?comp=immutabilityPolicies")).status == 409


async def test_a_legal_hold_forbids_changes_until_it_is_cleared() -> None:
    async with open_door(IMMUTABLE) as at_hand:
        await with_blob(at_hand)
        answer = await at_hand.send("PUT", "box/b?comp=legalhold", headers={"x-ms-legal-hold": "true"})
        assert answer.headers["x-ms-legal-hold"] == "true"
        assert (await at_hand.put("box/b", b"other")).outcome == (409, "BlobImmutableDueToLegalHold")
        await at_hand.send("PUT", "box/b?comp=legalhold", headers={"x-ms-legal-hold": "false"})
        assert (await at_hand.put("box/b", b"other")).status == 201


async def test_a_policy_that_ends_in_the_past_is_refused() -> None:
    async with open_door(IMMUTABLE) as at_hand:
        await with_blob(at_hand)
        past = {"x-ms-immutability-policy-until-date": formatdate(time.time() - 3600, usegmt=True)}
        answer = await at_hand.send("PUT", "box/b?comp=immutabilityPolicies", headers=past)
        assert answer.outcome == (400, "InvalidHeaderValue")


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ({"x-ms-immutability-policy-until-date": "Mon, 16 Nov 2015 01:33:51 GMT"}, "InvalidHeaderValue"),
        ({"x-ms-immutability-policy-mode": "locked"}, "MissingRequiredHeader"),
    ],
)
async def test_a_blob_is_not_made_with_a_policy_that_ends_in_the_past_or_never(
    policy: dict[str, str], code: str
) -> None:
    async with open_door(IMMUTABLE) as at_hand:
        await at_hand.make_container("box")
        assert (await at_hand.put("box/b", b"data", policy)).outcome == (400, code)
        assert (await at_hand.send("GET", "box/b")).status == 404


async def test_other_containers_have_no_policies_of_single_blobs() -> None:
    async with open_door() as at_hand:
        await with_blob(at_hand)
        answer = await at_hand.send("PUT", "box/b?comp=legalhold", headers={"x-ms-legal-hold": "true"})
        assert answer.outcome == (409, "VersionLevelImmutabilityNotEnabled")


async def test_a_blob_is_made_with_a_hold_where_holds_are_permitted() -> None:
    held = {"x-ms-legal-hold": "true"}
    async with open_door() as at_hand:
        await at_hand.make_container("box")
        assert (await at_hand.put("box/b", b"data", held)).outcome == (409, "VersionLevelImmutabilityNotEnabled")
    async with open_door(IMMUTABLE) as at_hand:
        await at_hand.make_container("box")
        assert (await at_hand.put("box/b", b"data", held)).status == 201
        assert (await at_hand.send("DELETE", "box/b")).code == "BlobImmutableDueToLegalHold"


async def test_a_container_whose_blobs_can_be_held_is_deleted_once_it_is_empty() -> None:
    async with open_door(IMMUTABLE) as at_hand:
        await with_blob(at_hand)
        answer = await at_hand.send("DELETE", "box?restype=container")
        assert answer.outcome == (409, "ContainerImmutableStorageWithVersioningEnabled")
        await at_hand.send("DELETE", "box/b")
        assert (await at_hand.send("DELETE", "box?restype=container")).status == 202


async def test_a_blob_shows_when_it_expires() -> None:
    async with open_door() as at_hand:
        await with_blob(at_hand)
        expiry = {"x-ms-expiry-option": "Absolute", "x-ms-expiry-time": in_an_hour()}
        assert (await at_hand.send("PUT", "box/b?comp=expiry", headers=expiry)).status == 200
        assert (await at_hand.send("HEAD", "box/b")).headers["x-ms-expiry-time"] == expiry["x-ms-expiry-time"]
        await at_hand.send("PUT", "box/b?comp=expiry", headers={"x-ms-expiry-option": "NeverExpire"})
        assert "x-ms-expiry-time" not in (await at_hand.send("HEAD", "box/b")).headers

"""Tokens of administration requests, and shared access rules."""

from __future__ import annotations

import pytest

from asterism.models.namespaces.authorization import LISTEN, MANAGE, ROOT_RULE, SEND, AuthorizationRule
from tests.unit.messaging_administration.door_at_hand import HOST, DoorAtHand, bearer, entry, run, signature

QUEUE_ENTRY = entry("QueueDescription")
LIST = "$Resources/queues"


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "nonsense",
        "SharedAccessSignature sr=x",
        signature(key="another"),
        signature(rule="invalid"),
        signature(expires=1_000),
        signature("https://elsewhere.example"),
        signature(f"https://{HOST}/queue"),
        bearer(exp=1_000),
        bearer(aud="https://storage.azure.com"),
        bearer(nbf=4_000_000_000),
    ],
)
def test_a_request_needs_a_valid_token(authorization: str | None) -> None:
    async def test(door: DoorAtHand) -> None:
        refused = await door.send("GET", LIST, authorization=authorization)
        assert (refused.status, refused.detail[:14]) == (401, "SubCode=40100.")

    run(test)


@pytest.mark.parametrize(
    "authorization",
    [signature(), signature(f"sb://{HOST.upper()}/"), signature(f"http://{HOST}:5300/"), bearer()],
)
def test_tokens_of_the_namespace_are_taken(authorization: str) -> None:
    async def test(door: DoorAtHand) -> None:
        assert (await door.send("GET", LIST, authorization=authorization)).status == 200

    run(test)


def test_bearer_tokens_are_refused_where_the_key_is_secret() -> None:
    async def test(door: DoorAtHand) -> None:
        assert (await door.send("GET", LIST, authorization=bearer())).status == 401
        assert (await door.send("GET", LIST)).status == 200

    run(test, is_public=False)


def test_health_needs_no_token() -> None:
    async def test(door: DoorAtHand) -> None:
        healthy = await door.send("GET", "health", authorization=None)
        assert healthy.json == {"status": "healthy", "message": "Service is healthy."}

    run(test)


def test_web_pages_are_refused_while_the_key_is_public() -> None:
    page = {"Origin": "https://example.com"}

    async def refused(door: DoorAtHand) -> None:
        assert (await door.send("GET", LIST, headers=page)).status == 403

    async def allowed(door: DoorAtHand) -> None:
        assert (await door.send("GET", LIST, headers=page)).status == 200

    run(refused)
    run(allowed, is_public=False)


def test_only_rules_with_the_right_to_manage_may_administer() -> None:
    async def test(door: DoorAtHand) -> None:
        rules = door.services.rules
        for name, rights in (("reader", {LISTEN, SEND}), ("manager", {MANAGE})):
            await rules.put("asterism", AuthorizationRule(name, frozenset(rights), f"{name}-key", "second"))
        assert (await door.send("GET", LIST, authorization=signature(rule="reader", key="reader-key"))).status == 401
        for key in ("manager-key", "second"):
            assert (await door.send("GET", LIST, authorization=signature(rule="manager", key=key))).status == 200

    run(test)


def test_a_rule_of_an_entity_is_for_that_entity() -> None:
    async def test(door: DoorAtHand) -> None:
        for name in ("mine", "other"):
            await door.send("PUT", name, QUEUE_ENTRY)
        created = await door.arm("PUT", "queues/mine/authorizationRules/r", {"rights": ["Manage"]})
        assert created.json["properties"] == {"rights": ["Manage", "Send", "Listen"]}
        keys = (await door.arm("POST", "queues/mine/authorizationRules/r/listKeys")).json
        assert keys["primaryConnectionString"].endswith(f"SharedAccessKey={keys['primaryKey']};EntityPath=mine")
        own = signature(f"https://{HOST}/mine", rule="r", key=keys["primaryKey"])
        assert (await door.send("GET", "mine", authorization=own)).status == 200
        assert (await door.send("GET", "other", authorization=own)).status == 401
        everywhere = signature(rule="r", key=keys["primaryKey"])
        assert (await door.send("GET", LIST, authorization=everywhere)).status == 401

    run(test)


def test_rules_of_a_namespace_are_listed_changed_and_deleted() -> None:
    async def test(door: DoorAtHand) -> None:
        made = await door.arm("PUT", "authorizationRules/sender", {"rights": ["Send"]})
        assert (made.status, made.json["properties"]) == (200, {"rights": ["Send"]})
        before = (await door.arm("POST", "authorizationRules/sender/listKeys")).json
        await door.arm("PUT", "authorizationRules/Sender", {"rights": ["Send", "Listen"]})
        listed = (await door.arm("GET", "authorizationRules")).json["value"]
        assert [(rule["name"], rule["properties"]["rights"]) for rule in listed] == [
            (ROOT_RULE, ["Manage", "Send", "Listen"]),
            ("sender", ["Send", "Listen"]),
        ]
        # The same random numbers: what changes is the key that is given.
        given = b'{"keyType": "SecondaryKey", "key": "new"}'
        after = (await door.arm("POST", "authorizationRules/sender/regenerateKeys", body=given)).json
        assert (after["primaryKey"], after["secondaryKey"]) == (before["primaryKey"], "new")
        root = (await door.arm("POST", f"authorizationRules/{ROOT_RULE}/listKeys")).json
        assert root["primaryKey"] == "SAS_KEY_VALUE"
        assert (await door.arm("PUT", f"authorizationRules/{ROOT_RULE}", {"rights": ["Listen"]})).status == 400
        assert (await door.arm("DELETE", "authorizationRules/sender")).status == 200
        assert (await door.arm("DELETE", "authorizationRules/sender")).status == 404
        assert (await door.arm("GET", "authorizationRules/sender")).status == 404

    run(test)


@pytest.mark.parametrize("rights", [[], ["Nonsense"], "Send", None, [1]])
def test_a_rule_needs_rights(rights: object) -> None:
    async def test(door: DoorAtHand) -> None:
        refused = await door.arm("PUT", "authorizationRules/r", {"rights": rights})
        assert refused.json["error"]["code"] == "BadRequest"

    run(test)


def test_a_namespace_has_twelve_rules_at_most_beside_that_of_its_account() -> None:
    async def test(door: DoorAtHand) -> None:
        statuses = [
            (await door.arm("PUT", f"authorizationRules/r{number}", {"rights": ["Send"]})).status
            for number in range(13)
        ]
        assert statuses == [200] * 12 + [400]

    run(test)

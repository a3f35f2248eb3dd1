"""Resource tokens: self-contained, signed, bounded in time."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, AccountKeys
from asterism.access.resource_token import ResourceGrant, check_resource_token, keys_agree, make_resource_token
from asterism.errors import Forbidden, Unauthorized

KEYS = AccountKeys.complete(primary=WELL_KNOWN_EMULATOR_KEY)
OTHER_KEYS = AccountKeys.complete(primary="b3RoZXIga2V5")
GRANT = ResourceGrant("dbs/d/colls/c", is_read_only=True, partition_key=("a", 1), expires_at_wall_seconds=1000)

key_values = st.one_of(st.none(), st.booleans(), st.integers(-10, 10), st.text(max_size=5))


@given(st.text(max_size=30), st.booleans(), st.one_of(st.none(), st.lists(key_values, min_size=1).map(tuple)))
def test_a_token_returns_its_grant(resource: str, is_read_only: bool, partition_key: tuple[object, ...] | None) -> None:
    grant = ResourceGrant(resource, is_read_only, partition_key, 1000)
    token = make_resource_token(KEYS, grant)
    assert check_resource_token(KEYS, token, now_wall_seconds=999) == grant
    assert check_resource_token(KEYS, quote(token, safe=""), now_wall_seconds=999) == grant


def test_a_token_names_its_permission_and_its_container() -> None:
    for permission, container in ((b"user and number", b"database"), (b"", b""), (None, None)):
        grant = ResourceGrant("dbs/d/colls/c", True, None, 1000, permission, container)
        assert check_resource_token(KEYS, make_resource_token(KEYS, grant), now_wall_seconds=0) == grant


def test_a_token_has_the_services_form() -> None:
    assert make_resource_token(KEYS, GRANT).startswith("type=resource&ver=1.0&sig=")


def test_an_expired_token_is_forbidden() -> None:
    token = make_resource_token(KEYS, GRANT)
    with pytest.raises(Forbidden, match="expired"):
        check_resource_token(KEYS, token, now_wall_seconds=1000)


def test_a_token_of_another_account_is_not_accepted() -> None:
    with pytest.raises(Unauthorized):
        check_resource_token(KEYS, make_resource_token(OTHER_KEYS, GRANT), now_wall_seconds=0)


def test_a_token_stays_valid_when_its_key_has_become_the_secondary() -> None:
    token = make_resource_token(OTHER_KEYS, GRANT)
    rotated = AccountKeys.complete(primary=WELL_KNOWN_EMULATOR_KEY, secondary=OTHER_KEYS.primary)
    assert check_resource_token(rotated, token, now_wall_seconds=0) == GRANT


def test_a_read_only_key_makes_no_tokens() -> None:
    forged = make_resource_token(AccountKeys.complete(primary=KEYS.primary_readonly), GRANT)
    with pytest.raises(Unauthorized):
        check_resource_token(KEYS, forged, now_wall_seconds=0)


@given(st.integers(min_value=0), st.characters(codec="ascii", exclude_characters="%"))
def test_no_character_of_a_token_can_be_changed(offset: int, character: str) -> None:
    token = make_resource_token(KEYS, GRANT)
    start = len("type=resource&ver=1.0&sig=")
    at = start + offset % (len(token) - start - 1)
    changed = token[:at] + character + token[at + 1 :]
    assume(changed != token)
    with pytest.raises(Unauthorized):
        check_resource_token(KEYS, changed, now_wall_seconds=0)


@pytest.mark.parametrize("token", ["", "type=resource", "type=resource&ver=1.0&sig=", "type=resource&ver=1.0&sig=é.é"])
def test_other_texts_are_not_accepted(token: str) -> None:
    with pytest.raises(Unauthorized):
        check_resource_token(KEYS, token, now_wall_seconds=0)


@pytest.mark.parametrize(
    ("granted", "asked", "agree"),
    [
        (None, None, True),
        (None, ["x"], True),
        (["a"], ["a"], True),
        (["a"], ["b"], False),
        (["a"], None, False),
        (["a"], [], False),
        ([1], [1.0], True),
        ([1], [True], False),
        ([None], [None], True),
        ([{}], [{}], True),
        (["a"], ["a", "b"], True),
        (["a", "b"], ["a"], False),
    ],
)
def test_a_key_is_within_the_granted_one_or_not(
    granted: list[object] | None, asked: list[object] | None, agree: bool
) -> None:
    assert keys_agree(granted, asked) is agree

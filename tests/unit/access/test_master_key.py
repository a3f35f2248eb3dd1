from __future__ import annotations

import base64
import hashlib
import hmac
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.access.keys import (
    WELL_KNOWN_EMULATOR_KEY,
    AccountKeys,
    Grant,
    derive_readonly_key,
    derive_secondary_key,
    grant_allows,
)
from asterism.access.master_key import check_master_key, signature
from asterism.errors import Unauthorized

KEYS = AccountKeys.complete(primary=WELL_KNOWN_EMULATOR_KEY)
DATE = "Sun, 15 Nov 2026 12:00:00 GMT"
DATE_WALL_SECONDS = 1794744000.0
LINK = "dbs/Db/colls/Coll"


def token(key: str, *, verb: str = "POST", resource_type: str = "docs", link: str = LINK, date: str = DATE) -> str:
    made = signature(base64.b64decode(key), verb=verb, resource_type=resource_type, link=link, date=date)
    return f"type=master&ver=1.0&sig={made}"


def check(
    authorization: str,
    *,
    verb: str = "POST",
    resource_type: str = "docs",
    links: tuple[str, ...] = (LINK,),
    date: str = DATE,
    now_wall_seconds: float = DATE_WALL_SECONDS,
) -> Grant:
    return check_master_key(
        KEYS,
        authorization=authorization,
        verb=verb,
        resource_type=resource_type,
        links=links,
        date=date,
        now_wall_seconds=now_wall_seconds,
    )


def test_a_signature_covers_verb_type_link_and_date() -> None:
    text = "get\ncolls\ndbs/Db/colls/Coll\nsun, 15 nov 2026 12:00:00 gmt\n\n"
    digest = hmac.new(b"key", text.encode(), hashlib.sha256).digest()
    made = signature(b"key", verb="GET", resource_type="colls", link=LINK, date=DATE)
    assert made == base64.b64encode(digest).decode()


@pytest.mark.parametrize(
    ("key", "grant"),
    [
        (KEYS.primary, Grant.FULL),
        (KEYS.secondary, Grant.FULL),
        (KEYS.primary_readonly, Grant.READ_ONLY),
        (KEYS.secondary_readonly, Grant.READ_ONLY),
    ],
)
def test_each_key_grants_what_it_is_for(key: str, grant: Grant) -> None:
    assert check(quote(token(key), safe="")) is grant


@given(st.text("abc/%+é ", min_size=1, max_size=20), st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]))
def test_every_way_of_encoding_the_header_is_accepted(link: str, verb: str) -> None:
    plain = token(KEYS.primary, link=link, verb=verb)
    lower_case = plain.replace("=", "%3d").replace("&", "%26").replace("+", "%2b").replace("/", "%2f")
    for authorization in (quote(plain, safe=""), quote(plain, safe="-_.!~*'()"), plain, lower_case):
        assert check(authorization, links=(link,), verb=verb) is Grant.FULL


def test_every_candidate_link_is_tried() -> None:
    authorization = token(KEYS.primary, link="kqejamcdzqk=")
    assert check(authorization, links=("dbs/kQEJAA==/colls/kQEJAMcDZQk=", "kqejamcdzqk=")) is Grant.FULL


def test_the_account_is_read_with_an_empty_type_and_link() -> None:
    authorization = token(KEYS.primary, verb="GET", resource_type="", link="")
    assert check(authorization, verb="GET", resource_type="", links=("",)) is Grant.FULL


@pytest.mark.parametrize(
    "signed_otherwise",
    [
        token(KEYS.primary, verb="GET"),
        token(KEYS.primary, resource_type="colls"),
        token(KEYS.primary, link="dbs/db/colls/Coll"),
        token(KEYS.primary, date="Sun, 15 Nov 2026 12:00:01 GMT"),
        token(base64.b64encode(b"another key").decode()),
    ],
)
def test_a_signature_of_something_else_is_refused_and_the_signed_text_is_shown(signed_otherwise: str) -> None:
    with pytest.raises(Unauthorized) as refusal:
        check(signed_otherwise)
    assert r"'post\ndocs\ndbs/Db/colls/Coll\nsun, 15 nov 2026 12:00:00 gmt\n\n'" in refusal.value.reason


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "nonsense",
        "type=master&ver=1.0",
        "type=master&ver=1.0&sig=",
        "type=resource&ver=1.0&sig=AAAA",
        "type%3Dmaster%26ver%3D1.0%26sig%3D",
        "type%3Dmaster%26ver%3D1.0%26sig%3D%zz",
        "type=master&ver=1.0&sig=é",
        "type=master&ver=1.0&sig=AAAA",
        token(KEYS.primary) + "AAAA",
    ],
)
def test_a_header_without_a_signature_is_refused(authorization: str) -> None:
    with pytest.raises(Unauthorized):
        check(authorization)


@pytest.mark.parametrize("skew_seconds", [-900, 0, 900])
def test_dates_within_fifteen_minutes_are_accepted(skew_seconds: int) -> None:
    assert check(token(KEYS.primary), now_wall_seconds=DATE_WALL_SECONDS + skew_seconds) is Grant.FULL


@pytest.mark.parametrize("skew_seconds", [-901, 901])
def test_dates_further_away_are_refused(skew_seconds: int) -> None:
    with pytest.raises(Unauthorized, match="not valid at the current time"):
        check(token(KEYS.primary), now_wall_seconds=DATE_WALL_SECONDS + skew_seconds)


@pytest.mark.parametrize("date", ["", "yesterday", "2026-11-15T12:00:00Z", "Sun, 99 Nov 2026 12:00:00 GMT"])
def test_a_date_that_cannot_be_read_is_refused(date: str) -> None:
    with pytest.raises(Unauthorized, match="x-ms-date"):
        check(token(KEYS.primary, date=date), date=date)


def test_a_date_without_a_zone_is_greenwich_time() -> None:
    date = "Sun, 15 Nov 2026 12:00:00"
    assert check(token(KEYS.primary, date=date), date=date) is Grant.FULL


@pytest.mark.parametrize("text", ["", "not base64!", "AAA"])
def test_a_key_that_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="account key"):
        AccountKeys(primary=text, secondary="AAAA", primary_readonly="AAAA", secondary_readonly="AAAA")


def test_missing_keys_are_derived_the_same_way_every_time_and_all_differ() -> None:
    again = AccountKeys.complete(primary=WELL_KNOWN_EMULATOR_KEY)
    assert again == KEYS
    assert len({KEYS.primary, KEYS.secondary, KEYS.primary_readonly, KEYS.secondary_readonly}) == 4
    assert derive_secondary_key(KEYS.primary) == KEYS.secondary
    assert derive_readonly_key(KEYS.primary) == KEYS.primary_readonly
    assert derive_readonly_key(KEYS.secondary) == KEYS.secondary_readonly
    assert {len(base64.b64decode(key)) for key in (KEYS.secondary, KEYS.primary_readonly)} == {64}


def test_configured_keys_are_kept() -> None:
    keys = AccountKeys.complete(primary="AAAA", secondary="BBBB", primary_readonly="CCCC", secondary_readonly="DDDD")
    assert keys == AccountKeys(primary="AAAA", secondary="BBBB", primary_readonly="CCCC", secondary_readonly="DDDD")


def test_keys_do_not_show_in_logs() -> None:
    assert KEYS.primary not in repr(KEYS)
    assert repr(KEYS.decoded[0][0]) not in repr(KEYS)


@pytest.mark.parametrize(
    ("grant", "verb", "is_query", "allowed"),
    [
        (Grant.FULL, "DELETE", False, True),
        (Grant.READ_ONLY, "GET", False, True),
        (Grant.READ_ONLY, "head", False, True),
        (Grant.READ_ONLY, "POST", True, True),
        (Grant.READ_ONLY, "POST", False, False),
        (Grant.READ_ONLY, "PUT", False, False),
        (Grant.READ_ONLY, "PATCH", False, False),
        (Grant.READ_ONLY, "DELETE", False, False),
    ],
)
def test_a_read_only_key_reads_and_queries(grant: Grant, verb: str, is_query: bool, allowed: bool) -> None:
    assert grant_allows(grant, verb=verb, is_query=is_query) is allowed

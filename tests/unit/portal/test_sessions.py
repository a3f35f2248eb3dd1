"""Sessions: genuine texts are read back, everything else is not a session."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.access.keys import Grant
from asterism.apis.portal.sessions import Session, csrf_token, read_session, sign_session

KEYS = {"asterism": b"k" * 64, "blue": b"b" * 64}
NOW = 1_800_000_000

sessions = st.builds(
    Session,
    account=st.sampled_from(sorted(KEYS)),
    grant=st.sampled_from(Grant),
    id=st.text(min_size=1, max_size=30),
    expires_at=st.integers(NOW + 1, NOW + 10**6),
)


def read(token: str, *, now: float = NOW, keys: dict[str, bytes] = KEYS) -> Session | None:
    return read_session(token, key_of=keys.get, operator="asterism", now_wall_seconds=now)


@given(sessions)
def test_a_signed_session_is_read_back(session: Session) -> None:
    found = read(sign_session(session, KEYS[session.account]))
    assert found is not None
    assert (found.account, found.grant, found.id, found.expires_at) == (
        session.account,
        session.grant,
        session.id,
        session.expires_at,
    )
    assert found.is_operator is (session.account == "asterism")


@given(sessions, st.data())
def test_a_changed_text_is_no_session(session: Session, data: st.DataObject) -> None:
    token = sign_session(session, KEYS[session.account])
    # The last character of either part has bits that decoding ignores.
    head, _, tail = token.partition(".")
    place = data.draw(st.integers(0, len(token) - 1).filter(lambda at: at not in (len(head) - 1, len(token) - 1)))
    other = data.draw(st.characters(codec="ascii").filter(lambda character: character != token[place]))
    assert tail
    assert read(token[:place] + other + token[place + 1 :]) is None


@given(st.text(max_size=200))
def test_any_other_text_is_no_session(token: str) -> None:
    assert read(token) is None


def test_a_session_ends_with_its_time_its_key_and_its_account() -> None:
    session = Session("blue", Grant.FULL, "id", NOW + 10)
    token = sign_session(session, KEYS["blue"])
    assert read(token, now=NOW + 9) is not None
    assert read(token, now=NOW + 10) is None
    assert read(token, keys={**KEYS, "blue": b"another" * 10}) is None
    assert read(token, keys={"asterism": KEYS["asterism"]}) is None


def test_a_key_of_an_account_signs_no_session_of_another() -> None:
    forged = sign_session(Session("asterism", Grant.FULL, "id", NOW + 10), KEYS["blue"])
    assert read(forged) is None


@pytest.mark.parametrize("other", [Session("blue", Grant.FULL, "other", NOW), Session("blue", Grant.FULL, "ID", NOW)])
def test_tokens_of_forms_belong_to_one_session(other: Session) -> None:
    session = Session("blue", Grant.FULL, "id", NOW)
    assert csrf_token(session, KEYS["blue"]) != csrf_token(other, KEYS["blue"])
    assert csrf_token(session, KEYS["blue"]) != csrf_token(session, KEYS["asterism"])

"""Credentials of a login: SASL PLAIN, Basic, and the link of a graph as the user."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.gremlin.sasl import Credentials, read_basic, read_graph_link, read_sasl


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.mark.parametrize("name", ["sasl", "SASL", "Sasl"])
def test_sasl_plain_has_user_and_password_behind_zeros(name: str) -> None:
    assert read_sasl({name: "AC9kYnMvZGIvY29sbHMvZwBrZXk9PQ=="}) == Credentials("/dbs/db/colls/g", "key==")


def test_the_identity_to_act_as_does_not_matter() -> None:
    assert read_sasl({"sasl": encoded(b"other\0user\0password")}) == Credentials("user", "password")
    assert read_sasl({"sasl": b"\0user\0password"}) == Credentials("user", "password")


@pytest.mark.parametrize("given_", [None, 5, "", "%%%", encoded(b"user"), encoded(b"\0user"), encoded(b"\0\xff\0x")])
def test_other_forms_are_no_credentials(given_: Any) -> None:
    assert read_sasl({"sasl": given_}) is None


def test_the_basic_scheme_has_them_around_a_colon() -> None:
    assert read_basic(f"Basic {encoded(b'/dbs/a/colls/b:k:ey')}") == Credentials("/dbs/a/colls/b", "k:ey")
    assert read_basic(None) is None
    assert read_basic("Bearer x") is None
    assert read_basic("Basic x") is None


def test_credentials_do_not_show_the_password() -> None:
    assert "secret" not in repr(Credentials("user", "secret"))


@pytest.mark.parametrize(
    ("user", "link"),
    [
        ("/dbs/a/colls/b", ("a", "b")),
        ("dbs/a/colls/b/", ("a", "b")),
        ("/DBS/a/Colls/b", ("a", "b")),
        ("/dbs/a%20b/colls/c", ("a b", "c")),
        ("/dbs/a", None),
        ("/dbs//colls/b", None),
        ("a/b", None),
        ("", None),
    ],
)
def test_the_user_is_the_link_of_a_graph(user: str, link: tuple[str, str] | None) -> None:
    assert read_graph_link(user) == link


@given(st.text())
def test_any_text_is_credentials_or_not(text: str) -> None:
    read_sasl({"sasl": text})
    read_basic(text)
    read_graph_link(text)

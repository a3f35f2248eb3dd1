"""Which link a client signs for a path, by names and by resource ids."""

from __future__ import annotations

import pytest

from asterism.apis.nosql.auth import signed_links, token_form


@pytest.mark.parametrize(
    ("path", "resource_type", "links"),
    [
        ("", "", [""]),
        ("dbs", "dbs", [""]),
        ("offers", "offers", [""]),
        ("dbs/My Db", "dbs", ["dbs/My Db"]),
        ("dbs/d/colls", "colls", ["dbs/d"]),
        ("dbs/d/colls/C", "colls", ["dbs/d/colls/C"]),
        ("dbs/d/colls/C/docs", "docs", ["dbs/d/colls/C"]),
        ("dbs/d/colls/C/docs/docs", "docs", ["dbs/d/colls/C/docs/docs"]),
        ("dbs/d/colls/C/pkranges", "pkranges", ["dbs/d/colls/C"]),
        ("dbs/d/colls/C/operations/partitionkeydelete", "colls", ["dbs/d/colls/C"]),
        ("offers/aBcD", "offers", ["abcd", "offers/aBcD"]),
        ("dbs/F6JkzA==", "dbs", ["f6jkza==", "dbs/F6JkzA=="]),
        ("dbs/F6JkzA==/colls", "colls", ["f6jkza==", "dbs/F6JkzA=="]),
        ("dbs/F6JkzA==/colls/F6JkzLEWPko=", "colls", ["f6jkzlewpko=", "dbs/F6JkzA==/colls/F6JkzLEWPko="]),
        ("dbs/F6JkzA==/colls/F6JkzLEWPko=/docs", "docs", ["f6jkzlewpko=", "dbs/F6JkzA==/colls/F6JkzLEWPko="]),
    ],
)
def test_a_path_gives_the_links_that_clients_sign(path: str, resource_type: str, links: list[str]) -> None:
    assert signed_links(path, path.split("/"), resource_type) == links


@pytest.mark.parametrize(
    ("token", "form"),
    [
        ("type=aad&ver=1.0&sig=a.b.c", "type=aad"),
        ("type%3dresource%26ver%3d1%26sig%3dx", "type=resource"),
        ("type%3DRESOURCE%26ver%3D1.0%26sig%3Dx", "type=resource"),
        ("Bearer abc", "bearer abc"),
        ("", ""),
    ],
)
def test_the_form_of_a_token_shows_whether_it_was_encoded_or_not(token: str, form: str) -> None:
    assert token_form(token) == form

"""Which link a client signs for a path, by names and by resource ids."""

from __future__ import annotations

import pytest

from asterism.apis.nosql.auth import refuse_other_tokens, signed_links
from asterism.errors import Unauthorized


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


@pytest.mark.parametrize("token", ["type=aad&ver=1.0&sig=a.b.c", "type%3Dresource%26ver%3D1%26sig%3Dx"])
def test_other_kinds_of_tokens_are_refused_with_a_reason(token: str) -> None:
    with pytest.raises(Unauthorized) as refused:
        refuse_other_tokens(token)
    assert "account key" in refused.value.reason

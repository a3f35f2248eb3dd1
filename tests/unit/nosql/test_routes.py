"""The table of routes: complete, without two lines for one thing, and found by the shape of a path."""

from __future__ import annotations

import pytest

from asterism.apis.nosql.routes import BY_KEY, ROUTES, UNAVAILABLE, refusal_for, route_key


def test_every_route_has_a_key_of_its_own() -> None:
    assert len({route.key for route in (*ROUTES, *UNAVAILABLE)}) == len(ROUTES) + len(UNAVAILABLE)


def test_every_route_has_a_sentence_of_help() -> None:
    assert [route.path for route in ROUTES if not route.help.endswith(".")] == []


@pytest.mark.parametrize(
    ("method", "path", "template"),
    [
        ("GET", "", ""),
        ("POST", "dbs", "dbs"),
        ("GET", "dbs/docs", "dbs/{database}"),
        ("GET", "dbs/a/colls/b/docs/colls", "dbs/{database}/colls/{container}/docs/{item}"),
        ("POST", "dbs/a/colls/b/docs", "dbs/{database}/colls/{container}/docs"),
        ("GET", "dbs/a/colls/b/pkranges", "dbs/{database}/colls/{container}/pkranges"),
        ("PUT", "offers/abcd", "offers/{offer}"),
    ],
)
def test_a_path_finds_its_route_whatever_the_names_in_it_are(method: str, path: str, template: str) -> None:
    assert BY_KEY[route_key(method, path.split("/"))].path == template


@pytest.mark.parametrize("path", ["x", "dbs/a/b", "dbs/a/colls/b/docs/c/d/e/f", "colls/a", "dbs/a/users/b/docs"])
def test_an_unknown_path_is_not_found(path: str) -> None:
    assert route_key("GET", path.split("/")) not in BY_KEY
    assert refusal_for("GET", path.split("/")).status == 404


@pytest.mark.parametrize(("method", "path"), [("PUT", "dbs"), ("DELETE", ""), ("HEAD", "dbs/a"), ("POST", "dbs/a")])
def test_a_known_path_with_another_method_says_so(method: str, path: str) -> None:
    assert refusal_for(method, path.split("/")).status == 405


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "dbs/a/colls/b/docs/c/attachments"),
        ("GET", "dbs/a/clientencryptionkeys"),
    ],
)
def test_a_feature_that_is_not_available_is_a_route_with_a_message(method: str, path: str) -> None:
    route = BY_KEY[route_key(method, path.split("/"))]
    assert route in UNAVAILABLE
    assert "not available" in route.help

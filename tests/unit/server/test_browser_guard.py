"""Which requests are taken for those of a web page that has no business here."""

from __future__ import annotations

import pytest

from asterism.apis.browser_guard import BrowserGuard
from asterism.server.config import StartRefused, parse_allowed_hosts

OWN = "localhost:8081"


@pytest.mark.parametrize(
    "authority",
    [
        "",
        "localhost",
        "LOCALHOST:8081",
        "localhost.:8081",
        "127.0.0.1:8081",
        "192.0.2.7",
        "[::1]:8081",
        "[2001:db8::7]",
        "cosmos:8081",
        "my_database",
        "host.docker.internal:8081",
        "account.table.localhost:10002",
        "db.default.svc:8081",
        "db.default.svc.cluster.local",
    ],
)
def test_names_that_a_stranger_cannot_own_are_answered(authority: str) -> None:
    assert BrowserGuard().host_refusal(authority) is None


@pytest.mark.parametrize(
    "authority",
    [
        "evil.example",
        "evil.example:8081",
        "evil.example.",
        "localhost.evil.example",
        "notlocalhost.com",
        "127.0.0.1.evil.example:8081",
        "localhost@evil.example",
        "evilinternal.com",
    ],
)
def test_other_names_are_refused_with_a_sentence_that_says_what_to_do(authority: str) -> None:
    reason = BrowserGuard().host_refusal(authority)
    assert reason is not None
    assert "--allowed-host" in reason


@pytest.mark.parametrize("allowed", ["db.example", "*.example", "*"])
def test_a_name_that_the_operator_allows_is_answered(allowed: str) -> None:
    guard = BrowserGuard([allowed])
    assert guard.host_refusal("DB.example:8081") is None
    assert guard.host_refusal("db.example:8081") is None


def test_allowing_a_name_allows_only_that_name() -> None:
    assert BrowserGuard(["db.example"]).host_refusal("evil.example") is not None
    assert BrowserGuard(["*.db.example"]).host_refusal("evildb.example") is not None


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://localhost:8081"},
        {"origin": "http://LOCALHOST:8081", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"},
        {"sec-fetch-mode": "cors"},
    ],
)
def test_programs_and_pages_of_the_server_itself_are_answered(headers: dict[str, str]) -> None:
    assert BrowserGuard().refusal(headers, OWN) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000", "sec-fetch-site": "same-site"},
        {"origin": "localhost:8081"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    ],
)
def test_pages_of_other_origins_are_refused(headers: dict[str, str]) -> None:
    reason = BrowserGuard(["*"]).refusal(headers, OWN)
    assert reason is not None
    assert "CORS" in reason


def test_the_allowed_hosts_are_names() -> None:
    assert parse_allowed_hosts(["db.example, *.Test", "*"]) == ("db.example", "*.test", "*")
    for wrong in ("http://db.example", "db.example:8081", "a b", "*.*"):
        with pytest.raises(StartRefused, match="is no host name"):
            parse_allowed_hosts([wrong])

"""Tokens for messaging: signatures over parts of a namespace, and tokens of a directory service."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.access.messaging_token import (
    Resource,
    check_directory_token,
    is_below,
    is_shared_access,
    parse_shared_access,
    resource_of,
)
from asterism.apis.amqp.engine.tokens import TokenGrant, TokenTable
from asterism.apis.amqp.nodes import AmqpError, Right
from asterism.errors import Unauthorized
from tests.unit.amqp_engine.tokens import EARLIER, LATER, directory_token, shared_access
from tests.unit.amqp_engine.toy_host import KEY

NOW = 2_000_000_000.0


@pytest.mark.parametrize(
    ("uri", "host", "path"),
    [
        ("sb://Host.example:5671/Queue/", "host.example", "queue"),
        ("amqps://host/a/b", "host", "a/b"),
        ("https://host", "host", ""),
        ("host/queue", "host", "queue"),
        ("http://host/a%20b", "host", "a b"),
        ("sb://[::1]:5672/queue", "::1", "queue"),
    ],
)
def test_a_uri_names_a_part_of_a_namespace(uri: str, host: str, path: str) -> None:
    assert resource_of(uri) == Resource(host, path)


@pytest.mark.parametrize("uri", ["ftp://host/queue", "sb://[host/queue"])
def test_other_uris_name_none(uri: str) -> None:
    with pytest.raises(ValueError, match=r"scheme|IPv6"):
        resource_of(uri)


@pytest.mark.parametrize(
    ("path", "scope", "expected"),
    [("a/b", "", True), ("a/b", "a", True), ("a", "a", True), ("ab", "a", False), ("a", "a/b", False)],
)
def test_paths_are_compared_by_whole_segments(path: str, scope: str, expected: bool) -> None:
    assert is_below(path, scope) is expected


def test_a_signature_covers_what_lies_below_its_resource() -> None:
    resource = parse_shared_access(shared_access("https://Host/Queue")).resource
    assert resource.covers(resource_of("sb://host:5672/queue/$deadletterqueue"))
    assert not resource.covers(resource_of("sb://host/queue2"))
    assert not resource.covers(resource_of("sb://other/queue"))


@pytest.mark.parametrize("uri", ["sb://host/queue", "https://host/a b/ü", "amqps://host:5671/$management"])
def test_a_signature_is_checked_with_any_key_of_its_rule(uri: str) -> None:
    token = parse_shared_access(shared_access(uri))
    token.check(["another", KEY], now_wall_seconds=NOW)
    for keys in ([], ["another"], [""]):
        with pytest.raises(Unauthorized):
            token.check(keys, now_wall_seconds=NOW)


def test_a_signature_expires() -> None:
    with pytest.raises(Unauthorized, match="expired"):
        parse_shared_access(shared_access("sb://host", expires=int(NOW))).check([KEY], now_wall_seconds=NOW)


@given(st.text(max_size=100) | st.text(max_size=60).map(lambda text: f"SharedAccessSignature sr={text}&se=1&sig=&skn="))
def test_any_text_is_a_token_or_refused(text: str) -> None:
    for parse in (
        parse_shared_access,
        lambda token: check_directory_token(token, audience=Resource("h", ""), now_wall_seconds=NOW),
    ):
        with contextlib.suppress(Unauthorized):
            parse(text)


@given(st.data())
def test_a_changed_signature_is_refused(data: st.DataObject) -> None:
    text = shared_access("sb://host/queue")
    position = data.draw(st.integers(len("SharedAccessSignature "), text.index("&skn")))
    changed = text[:position] + data.draw(st.characters(codec="ascii")) + text[position + 1 :]
    with contextlib.suppress(Unauthorized):
        token = parse_shared_access(changed)
        token.check([KEY], now_wall_seconds=NOW)
        assert token == parse_shared_access(text)


@pytest.mark.parametrize(
    "audience", ["https://servicebus.azure.net/", "https://eventhubs.azure.net", "https://host/", ["x", "sb://host"]]
)
def test_a_token_of_a_directory_is_for_messaging(audience: object) -> None:
    wanted = resource_of("sb://host/queue")
    expires = check_directory_token(directory_token(aud=audience), audience=wanted, now_wall_seconds=NOW)
    assert expires > LATER


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b",
        "a.b.c",
        directory_token(aud="https://storage.azure.com"),
        directory_token(aud=None),
        directory_token(aud="sb://other"),
        directory_token(exp=EARLIER),
        directory_token(exp="later"),
        directory_token(exp=float("nan")),
        directory_token(nbf=LATER),
    ],
)
def test_other_tokens_are_refused(token: str) -> None:
    assert not is_shared_access(token)
    with pytest.raises(Unauthorized):
        check_directory_token(token, audience=resource_of("sb://host/queue"), now_wall_seconds=NOW)


# --- grants ---------------------------------------------------------------------------------------------------------


def test_a_table_gives_what_its_grants_give() -> None:
    table = TokenTable(tokens_max=10)
    table.put("a", TokenGrant("queue", frozenset({Right.SEND}), 100.0), now_wall_seconds=0)
    table.require("Queue/$DeadLetterQueue/", Right.SEND, now_wall_seconds=99)
    for path, right, now in [("queue", Right.LISTEN, 0), ("queue2", Right.SEND, 0), ("queue", Right.SEND, 100)]:
        with pytest.raises(AmqpError) as refused:
            table.require(path, right, now_wall_seconds=now)
        assert refused.value.condition == "amqp:unauthorized-access"
    assert not table.drop_expired(now_wall_seconds=99)
    assert table.drop_expired(now_wall_seconds=100)
    table.put("a", TokenGrant("", frozenset({Right.MANAGE}), 200.0), now_wall_seconds=100)
    for right in Right:
        table.require("any", right, now_wall_seconds=150)
    assert not table.drop_expired(now_wall_seconds=150)


def test_a_table_forgets_expired_grants_when_it_is_full() -> None:
    table = TokenTable(tokens_max=2)
    everything = frozenset(Right)
    table.put("a", TokenGrant("a", everything, 10.0), now_wall_seconds=0)
    table.put("b", TokenGrant("b", everything, 20.0), now_wall_seconds=0)
    with pytest.raises(AmqpError, match="at most 2"):
        table.put("c", TokenGrant("c", everything, 20.0), now_wall_seconds=9)
    table.put("b", TokenGrant("b", everything, 30.0), now_wall_seconds=9)
    table.put("c", TokenGrant("c", everything, 20.0), now_wall_seconds=10)
    table.require("c", Right.SEND, now_wall_seconds=11)

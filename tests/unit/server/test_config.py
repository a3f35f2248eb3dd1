"""Options as an operator writes them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from asterism.apis.nosql.spec import parse_consistency
from asterism.apis.storage.accounts import parse_accounts
from asterism.apis.table.spec import TableSettings
from asterism.limits import DEFAULT_LIMITS, GIB, KIB, MIB, Limits
from asterism.server.config import ServerConfig, StartRefused, account_keys, check_account, check_ports
from asterism.server.configure import configured, parse_apis
from asterism.server.doors import DOORS
from asterism.server.greeting import endpoint, greeting
from asterism.server.limit_options import limit_names, parse_limits

HTTP_PORT = DOORS[0].ports[0]


def config_with(**values: Any) -> ServerConfig:
    """The configuration of a server that was started with these options."""
    return configured(values)


def table_settings(config: ServerConfig) -> TableSettings:
    settings = next(door.settings for door in config.doors if door.spec.name == "table")
    assert isinstance(settings, TableSettings)
    return settings


def test_every_limit_has_a_name_on_the_command_line() -> None:
    assert set(limit_names().values()) == {field.name for field in fields(Limits)}
    assert limit_names()["logical-partition-bytes"] == "logical_partition_bytes_max"
    assert limit_names()["throughput-ru-per-second-min"] == "throughput_ru_per_second_min"


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("logical-partition-bytes=65536", 65536),
        ("logical-partition-bytes-max=65536", 65536),
        ("logical-partition-bytes=64KB", 64 * KIB),
        ("logical-partition-bytes = 3 mb", 3 * MIB),
        ("logical-partition-bytes=1GB", GIB),
        ("logical-partition-bytes=7B", 7),
    ],
)
def test_bytes_may_carry_a_unit(given: str, value: int) -> None:
    assert parse_limits([given]) == DEFAULT_LIMITS.with_changes(logical_partition_bytes_max=value)


def test_the_last_of_several_values_counts() -> None:
    assert parse_limits(["item-bytes=1KB", "item-bytes=2KB"]).item_bytes_max == 2 * KIB


# S2 of asterism/server/DESIGN.md.
@pytest.mark.parametrize(
    "given",
    [
        "item-bytes",
        "item-bytes=",
        "=1KB",
        "item-bytes=1TB",
        "item-bytes=-1",
        "item-bytes=1.5KB",
        "item-bytes=0",
        "item-bytes=99999999999999999999",
        "item-bytes=8MB",
        "throughput-ru-per-second-min=1KB",
        "throughput-ru-per-second-max=100",
        "nothing=1",
    ],
)
def test_an_invalid_limit_is_refused_in_one_line(given: str) -> None:
    with pytest.raises(StartRefused) as refused:
        parse_limits([given])
    assert len(str(refused.value).splitlines()) == 1


def test_consistency_levels_are_found_whatever_their_case() -> None:
    assert parse_consistency("boundedstaleness") == "BoundedStaleness"
    with pytest.raises(StartRefused, match="Strong, BoundedStaleness"):
        parse_consistency("weak")


# S3 of asterism/server/DESIGN.md.
@pytest.mark.parametrize("key", ["not base64!", "", "schlüssel"])
def test_a_key_that_is_not_base64_is_refused_without_telling_it(key: str) -> None:
    with pytest.raises(StartRefused) as refused:
        account_keys(ServerConfig(key=key))
    assert "schlüssel" not in str(refused.value)


# S3 of asterism/server/DESIGN.md.
def test_the_key_is_in_no_text_of_the_configuration() -> None:
    assert "c2VjcmV0" not in repr(ServerConfig(key="c2VjcmV0"))
    assert "c2VjcmV0" not in greeting(ServerConfig(key="c2VjcmV0"))


def test_a_server_that_listens_everywhere_is_reached_by_its_local_name() -> None:
    assert endpoint(ServerConfig(host="0.0.0.0"), HTTP_PORT, 8081).url == "http://localhost:8081/"
    assert endpoint(ServerConfig(host="::1", https=True), HTTP_PORT, 443).url == "https://[::1]:443/"


def test_the_well_known_key_on_an_open_address_is_warned_of() -> None:
    assert "Warning" in greeting(ServerConfig(host="0.0.0.0"))
    assert "Warning" not in greeting(ServerConfig(host="127.0.0.2"))
    own: dict[str, Any] = {"host": "0.0.0.0", "key": "c2VjcmV0"}
    assert "--messaging-namespace" in greeting(config_with(**own))
    own["messaging_namespace"] = ["shop:c2VjcmV0"]
    assert "Warning" not in greeting(config_with(**own, table_account=["shop:c2VjcmV0"]))
    assert "--storage-account" in greeting(config_with(**own))
    assert "Warning" not in greeting(config_with(**own, apis="nosql"))


def test_the_greeting_tells_the_endpoints_of_the_protocols_that_are_served() -> None:
    assert "http://127.0.0.1:10002/devstoreaccount1" in greeting(ServerConfig())
    assert "10002" not in greeting(config_with(apis="nosql"))
    assert "AccountEndpoint" not in greeting(config_with(apis="table"))


def test_the_greeting_names_the_accounts_of_tables() -> None:
    text = greeting(config_with(table_account=["shop:c2VjcmV0", "depot:c2VjcmV0"]))
    assert "http://127.0.0.1:10002/shop\n" in text
    assert "Other accounts     depot\n" in text


def test_an_account_that_is_given_twice_is_refused() -> None:
    with pytest.raises(StartRefused, match=r"shop.*twice"):
        parse_accounts(("shop:c2VjcmV0", "depot:c2VjcmV0", "shop:YW5vdGhlcg=="))


# S2 of asterism/server/DESIGN.md.
@pytest.mark.parametrize(
    "config",
    [
        config_with(table_port=9000, cosmos_table_port=9000),
        config_with(port=9000, table_port=9000),
        config_with(port=9000, cosmos_table_port=9000),
    ],
)
def test_two_protocols_on_one_port_are_refused(config: ServerConfig) -> None:
    with pytest.raises(StartRefused, match="share the port 9000"):
        check_ports(config)


def test_ports_of_protocols_that_are_not_served_do_not_matter_and_zero_is_any() -> None:
    check_ports(config_with(apis="table", port=9000, table_port=9000))
    check_ports(config_with(apis="nosql", table_port=9000, cosmos_table_port=9000))
    check_ports(config_with(port=0, table_port=0, cosmos_table_port=0))


@pytest.mark.parametrize("name", ["asterism", "localhost", "Shop-1", "a.b_c", "a" * 64])
def test_an_account_may_have_a_name_that_stands_in_an_address(name: str) -> None:
    check_account(ServerConfig(account=name))


@pytest.mark.parametrize("name", ["", "a/b", "a b", "a?b", "a#b", "ä", "a\n", "..", "-a", "a:b", "a@b", "a" * 65])
def test_an_account_whose_name_cannot_stand_in_an_address_is_refused(name: str) -> None:
    with pytest.raises(StartRefused, match="the account cannot be named"):
        check_account(ServerConfig(account=name))


def test_the_keys_of_table_accounts_are_not_shown() -> None:
    config = config_with(table_account=["shop:c2VjcmV0"], cosmos_table_account=["shop:c2VjcmV0"])
    assert "c2VjcmV0" not in repr(config)
    assert "secret" not in repr(config)
    assert "c2VjcmV0" not in greeting(config)


def test_the_development_account_is_there_until_others_are_given() -> None:
    assert list(table_settings(ServerConfig()).accounts) == ["devstoreaccount1"]
    config = config_with(table_account=["shop:c2VjcmV0"], cosmos_table_account=["more:a2V5", "shop:a2V5"])
    assert list(table_settings(config).accounts) == ["shop"]
    cosmos = table_settings(config).cosmos_accounts
    assert {name: account.keys for name, account in cosmos.items()} == {"shop": (b"key",), "more": (b"key",)}


def test_a_malformed_table_account_prevents_the_start() -> None:
    with pytest.raises(StartRefused, match="write NAME:KEY"):
        config_with(table_account=["shop"])


def test_protocols_are_chosen_by_name() -> None:
    assert parse_apis("table, NoSQL") == ("nosql", "table")
    assert parse_apis("table") == ("table",)
    for text in ("", ",", "cassandra", "table,x"):
        with pytest.raises(StartRefused, match="the protocols are nosql, table"):
            parse_apis(text)

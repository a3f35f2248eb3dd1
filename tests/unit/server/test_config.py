"""Options as an operator writes them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from asterism.limits import DEFAULT_LIMITS, GIB, KIB, MIB, Limits
from asterism.server.config import (
    ServerConfig,
    StartRefused,
    account_keys,
    limit_names,
    parse_consistency,
    parse_limits,
)
from asterism.server.greeting import endpoint, greeting


def test_every_limit_has_a_name_on_the_command_line() -> None:
    assert set(limit_names().values()) == {one.name for one in fields(Limits)}
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
def test_a_limit_that_makes_no_sense_is_refused_in_one_line(given: str) -> None:
    with pytest.raises(StartRefused) as refused:
        parse_limits([given])
    assert len(str(refused.value).splitlines()) == 1


def test_consistency_levels_are_found_whatever_their_case() -> None:
    assert parse_consistency("boundedstaleness") == "BoundedStaleness"
    with pytest.raises(StartRefused, match="Strong, BoundedStaleness"):
        parse_consistency("weak")


@pytest.mark.parametrize("key", ["not base64!", "", "schlüssel"])
def test_a_key_that_is_not_base64_is_refused_without_telling_it(key: str) -> None:
    with pytest.raises(StartRefused) as refused:
        account_keys(ServerConfig(key=key))
    assert "schlüssel" not in str(refused.value)


def test_the_key_is_in_no_text_of_the_configuration() -> None:
    assert "c2VjcmV0" not in repr(ServerConfig(key="c2VjcmV0"))
    assert "c2VjcmV0" not in greeting(ServerConfig(key="c2VjcmV0"), 8081)


def test_a_server_that_listens_everywhere_is_reached_by_its_local_name() -> None:
    assert endpoint(ServerConfig(host="0.0.0.0"), 8081) == "http://localhost:8081/"
    assert endpoint(ServerConfig(host="::1", https=True), 443) == "https://[::1]:443/"


def test_the_well_known_key_on_an_open_address_is_warned_of() -> None:
    assert "Warning" in greeting(ServerConfig(host="0.0.0.0"), 8081)
    assert "Warning" not in greeting(ServerConfig(host="127.0.0.2"), 8081)
    assert "Warning" not in greeting(ServerConfig(host="0.0.0.0", key="c2VjcmV0", data=Path("d")), 8081)

"""fleet.toml as an operator writes it, and what is said when it is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asterism.partitioning.placement import NO_RULES, Rules
from asterism.server.config import StartRefused
from asterism.server.fleet.config import FleetConfig, fleet_of_stores, parse_fleet, read_fleet
from asterism.server.store_address import check_address, without_password

WHOLE = """
[fleet]
name = "shop"
catalog = "b"

[[node]]
name = "a"
dsn = "postgresql://me:secret@db1:5432,db1b/shop"
labels = ["ssd"]
regions = ["westeurope"]

[[node]]
name = "b"
dsn = "lmdb:disk2/store"

[placement]
spread = true

[[placement.rule]]
containers = "shop/eu-*"
regions = ["westeurope"]
"""


def read(tmp_path: Path, text: str) -> FleetConfig:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    return read_fleet(path)


def test_a_whole_file_is_understood(tmp_path: Path) -> None:
    fleet = read(tmp_path, WHOLE)
    assert (fleet.name, fleet.catalog) == ("shop", "b")
    assert [(node.name, node.labels) for node in fleet.nodes] == [("a", {"ssd", "westeurope"}), ("b", frozenset())]
    assert fleet.nodes[1].dsn == f"lmdb:{tmp_path.resolve()}/disk2/store"


def test_the_first_rule_that_fits_a_container_counts_and_else_the_fleets_own(tmp_path: Path) -> None:
    fleet = read(tmp_path, WHOLE)
    assert fleet.rules_for("shop", "eu-orders") == Rules(frozenset({"westeurope"}))
    assert fleet.rules_for("shop", "orders") == Rules(spread=True)


def test_the_catalog_is_on_the_first_node_unless_told(tmp_path: Path) -> None:
    fleet = read(tmp_path, '[[node]]\nname="x"\ndsn="lmdb:x"\n[[node]]\nname="y"\ndsn="lmdb:y"')
    assert (fleet.catalog, fleet.default_rules) == ("x", NO_RULES)


def test_a_fleet_survives_its_json(tmp_path: Path) -> None:
    fleet = read(tmp_path, WHOLE)
    assert parse_fleet(json.loads(json.dumps(fleet.to_json())), directory=tmp_path) == fleet


def test_stores_on_the_command_line_are_a_fleet() -> None:
    fleet = fleet_of_stores(["postgresql://db1/shop", "postgres://db2/shop"])
    assert [(node.name, node.dsn) for node in fleet.nodes] == [
        ("node1", "postgresql://db1/shop"),
        ("node2", "postgres://db2/shop"),
    ]
    assert fleet.catalog == "node1"


# S3 of asterism/server/DESIGN.md.
def test_a_password_is_never_shown() -> None:
    assert without_password("postgresql://me:secret@db1:5432,db1b/shop?x=y") == "postgresql://me@db1:5432,db1b/shop"


@pytest.mark.parametrize("sign", ["/", "?", "#", "[", "]", "@", ":", " @", "1/"])
def test_a_password_that_makes_an_address_fall_apart_is_refused_and_no_part_of_it_is_shown(sign: str) -> None:
    address = f"postgresql://me:begin{sign}ending@db1:5432/shop"
    with pytest.raises(StartRefused, match="%40 %2F") as refused:
        fleet_of_stores([address])
    assert "begin" not in str(refused.value)
    assert "ending" not in str(refused.value)
    assert without_password(address) == ""


@pytest.mark.parametrize(
    "address",
    [
        "postgresql:///shop?host=/run/postgresql&user=me",
        "postgresql://me:p%40ss%2Fword@db1:5432,[::1]:5433,db3/shop?sslmode=require&target_session_attrs=read-write",
        "postgresql://me@/shop?host=db1,db2&port=5432,5433&password=s@cret",
        "postgres://db1",
    ],
)
def test_every_usual_form_of_an_address_is_taken_as_it_is(tmp_path: Path, address: str) -> None:
    assert check_address(address, tmp_path) == address
    assert "p%40ss" not in without_password(address)
    assert "s@cret" not in without_password(address)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"there is no \[\[node\]\]"),
        ("[[node", "is not TOML"),
        ('[[node]]\ndsn = "lmdb:x"', "node 1 has no name"),
        ('[[node]]\nname = "a"', "node 1 has no dsn"),
        ('[[node]]\nname = "7"\ndsn = "lmdb:x"', "has a letter"),
        ('[[node]]\nname = "a"\ndsn = "mysql://x:secret@y/z"', "node 1: 'mysql://x@y/z' is not a store address"),
        ('[[node]]\nname = "a"\ndsn = "host=db1 password=secret"', "node 1: not a store address; write"),
        ('[[node]]\nname = "a"\ndsn = "postgresql://me:se/secret@y/z"', "node 1: the address is not of the form"),
        ('[[node]]\nname = "a"\ndsn = "lmdb:"', "lmdb:DIR"),
        ('[[node]]\nname = "a"\ndsn = "lmdb:x"\n[[node]]\nname = "a"\ndsn = "lmdb:y"', "two nodes have the name 'a'"),
        ('[fleet]\ncatalog = "z"\n[[node]]\nname = "a"\ndsn = "lmdb:x"', "which is not a node; the nodes are a"),
        ('[[node]]\nname = "a"\ndsn = "lmdb:x"\nregion = "eu"', "node 1 has 'region'; known are dsn, labels"),
        ('[[node]]\nname = "a"\ndsn = "lmdb:x"\nlabels = "eu"', "labels must be a list of words"),
        ('[placement]\nspread = 1\n[[node]]\nname = "a"\ndsn = "lmdb:x"', "spread must be true or false"),
        (
            '[[node]]\nname = "a"\ndsn = "lmdb:x"\n[[placement.rule]]\ncontainers = "orders"',
            "write DATABASE/CONTAINER",
        ),
        ('node = 3\n[fleet]\nname = "x"', "must be a list of tables"),
    ],
)
def test_an_error_is_reported_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(StartRefused, match=said) as refused:
        read(tmp_path, text)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match=r"nowhere.toml cannot be read"):
        read_fleet(tmp_path / "nowhere.toml")

"""The table of doors: rows that fit together, and what is read from them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from asterism.apis.door_spec import DoorSpec, Encryption, Endpoint, Surroundings
from asterism.apis.settings import options_of
from asterism.apis.storage.settings import StorageSettings
from asterism.apis.transports.http import Door, Request
from asterism.limits import KIB, MIB, Limits, limit_helps
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig
from asterism.server.configure import configured, serve_options
from asterism.server.data_directory import DataDirectory
from asterism.server.door_listeners import door_ports
from asterism.server.doors import DOORS
from asterism.server.greeting import endpoint, greeting
from asterism.server.limit_options import all_limits, limit_names, read_limits
from tests.support.server import PROJECT
from tests.toy_door.spec import SPEC as ECHO
from tests.toy_door.spec import EchoSettings

ALL = (*DOORS, ECHO)
HEADING_CHARACTERS_MAX = 18


def test_no_two_options_have_one_name() -> None:
    names = [option.name for option in serve_options(ALL)]
    assert len(set(names)) == len(names)


def test_an_option_that_several_doors_share_stands_where_the_first_has_it() -> None:
    flags = [option.flag for option in serve_options(ALL)]
    assert flags.count("--storage-account") == 1
    assert flags.index("--storage-account") == flags.index("--cosmos-table-port") + 1


def test_an_account_is_given_once_for_all_storage_doors() -> None:
    doors = configured({"storage_account": ["shop:a2V5"], "table_account": ["depot:a2V5"]}).doors
    named = [list(door.settings.accounts) for door in doors if isinstance(door.settings, StorageSettings)]
    assert named == [["depot", "shop"]] * len(named)
    assert named


def test_no_two_ports_have_one_name_or_one_default() -> None:
    ports = [port for door in ALL for port in door.ports]
    assert len({port.name for port in ports}) == len({port.default for port in ports}) == len(ports)


def test_no_two_limits_have_one_name() -> None:
    declared = [*limit_names(), *(name for door in ALL for name in limit_names(door.settings))]
    assert len(all_limits(ALL)) == len(declared)


@pytest.mark.parametrize("door", ALL, ids=lambda door: door.name)
def test_the_limits_of_a_port_are_declared(door: DoorSpec[Any]) -> None:
    known = {**limit_helps(Limits), **door.limits}
    named = {
        limit for port in door.ports for limit in (port.request_limit, port.streamed_request_limit, port.idle_limit)
    }
    assert named - {None} - set(known) == set()


@pytest.mark.parametrize("declared_in", [Limits, *(door.settings for door in ALL)], ids=lambda kind: kind.__name__)
def test_every_field_of_settings_is_an_option_or_a_limit(declared_in: type[Any]) -> None:
    assert is_dataclass(declared_in)
    assert {*options_of(declared_in), *limit_helps(declared_in)} == {field.name for field in fields(declared_in)}


@pytest.mark.parametrize("door", ALL, ids=lambda door: door.name)
def test_a_greeting_fits_its_column_and_names_every_port(door: DoorSpec[Any]) -> None:
    endpoints = {port.name: Endpoint("db.test", 4000 + at, "http", False) for at, port in enumerate(door.ports)}
    surroundings = Surroundings(endpoints, is_local=True, account="shop", key="a2V5", key_is_public=False)
    lines = door.greeting(door.settings(), surroundings).lines
    assert max(len(heading) for heading, _ in lines) <= HEADING_CHARACTERS_MAX
    assert [name for name, endpoint in endpoints.items() if endpoint.address not in str(lines)] == []


def test_values_of_options_become_settings_of_their_door() -> None:
    values = {"echo_prefix": "> ", "echo_port": 5, "apis": "echo", "limit": ["echo-request-bytes=7"]}
    nosql, *_, echo = configured(values, ALL).doors
    assert echo.settings == EchoSettings(prefix=b"> ", echo_request_bytes_max=7)
    assert (echo.ports["echo"], echo.is_served, nosql.is_served) == (5, True, False)
    assert echo.limit("echo_request_bytes_max", Limits()) == 7
    assert echo.limit("request_bytes_max", Limits(request_bytes_max=9)) == 9


def test_without_values_everything_has_its_default() -> None:
    assert configured({}) == ServerConfig()


def test_the_values_that_the_command_line_has_without_options_are_the_defaults() -> None:
    assert configured({option.name: option.default for option in serve_options()}) == ServerConfig()


def test_a_limit_of_a_door_leaves_those_of_the_database_alone() -> None:
    given = read_limits(["echo-request-bytes=7", "item-bytes=5"], ALL)
    assert given.limits == Limits(item_bytes_max=5)
    assert given.of_doors == {
        "nosql": {},
        "table": {},
        "queue": {},
        "blob": {},
        "amqp": {},
        "mongo": {},
        "gremlin": {},
        "portal": {},
        "echo": {"echo_request_bytes_max": 7},
    }


async def test_each_port_of_the_doors_that_are_served_is_opened_as_its_row_says(tmp_path: Path) -> None:
    config = configured({"apis": "table,echo", "limit": ["echo-stream-bytes=9KB", "echo-idle-seconds=8"]}, ALL)
    async with assembled(config, DataDirectory(tmp_path)) as assembly:
        table, cosmos_table, echo, websocket, tcp = door_ports(config, assembly)
    assert [port.port for port in (table, cosmos_table, echo, websocket, tcp)] == [10002, 8902, 7007, 7008, 7009]
    assert (table.transport, echo.transport, websocket.transport, tcp.transport) == (
        "http",
        "http",
        "http+websocket",
        "tcp",
    )
    assert (table.limits.body_bytes_max, echo.limits.body_bytes_max) == (16 * MIB, 64 * KIB)
    assert (echo.limits.streamed_body_bytes_max, websocket.limits.streamed_body_bytes_max) == (None, 9 * KIB)
    assert (websocket.limits.idle_seconds_max, tcp.limits.idle_seconds_max) == (180, 8)
    assert (table.is_tls, table.has_optional_tls, tcp.is_tls, tcp.has_optional_tls) == (None, False, None, True)


@pytest.mark.parametrize(
    ("encryption", "https", "is_tls", "is_shown"),
    [
        ("with --https", True, None, True),
        ("with --https", False, None, False),
        ("always", False, True, True),
        ("never", True, False, False),
        ("optional", False, None, False),
    ],
)
async def test_a_port_is_encrypted_when_its_row_says_so(
    tmp_path: Path, encryption: Encryption, https: bool, is_tls: bool | None, is_shown: bool
) -> None:
    port = replace(ECHO.ports[0], encryption=encryption)
    doors = (replace(ECHO, ports=(port,)),)
    config = configured({"https": https, "apis": "echo"}, doors)
    async with assembled(config, DataDirectory(tmp_path)) as assembly:
        (opened,) = door_ports(config, assembly)
    assert opened.is_tls is is_tls
    assert endpoint(config, port, 1).is_encrypted is is_shown
    assert ("Certificate" in greeting(config)) is is_shown


async def test_requests_of_all_doors_are_counted_and_slow_ones_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with assembled(configured({"slow_log_ms": 0.0}), DataDirectory(tmp_path)) as assembly:
        over_http = [door for port, door in assembly.doors.items() if port != "mongo"]
        doors = [cast(Door, door) for door in (*over_http, assembly.operator_door)]
        for door in doors:
            await door.answer(Request("GET", "/", "", {}, b"", "http", "localhost"))
        counted = assembly.services.usage.requests.to_json()
    over_web = {"nosql", "table", "cosmos-table", "queue", "blob", "mongo", "gremlin", "portal", "messaging"}
    assert set(counted) == {*over_web, "amqp", "admin"}
    assert len([record for record in caplog.records if record.name == "asterism.slow"]) == len(doors)


# S1 of asterism/server/DESIGN.md.
def test_the_table_of_doors_loads_no_door() -> None:
    """Every command reads the table; `serve` has to start quickly."""
    code = "import sys, asterism.server.configure; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, check=True
    ).stdout
    heavy = ("asterism.apis.nosql.door", "asterism.apis.table.door", "asterism.models", "asterism.keyspaces", "granian")
    assert [name for name in heavy if name in loaded.split()] == []


def test_workers_import_nothing_that_their_parent_could_have_loaded_for_all(tmp_path: Path) -> None:
    """Modules that are loaded before the fork are in memory once, and a worker that is replaced is back sooner."""
    code = """
import asyncio, pathlib, sys
import asterism.server.run
from asterism.server.assemble import assembled, load_doors
from asterism.server.configure import configured
from asterism.server.data_directory import DataDirectory
from tests.toy_door.spec import SPEC

async def serve(config):
    async with assembled(config, DataDirectory(pathlib.Path(sys.argv[1]))):
        print(*[name for name in sys.modules if name not in known and name.startswith(("asterism", "tests"))])

config = configured({}, (*asterism.server.configure.DOORS, SPEC))
load_doors(config)
known = set(sys.modules)
asyncio.run(serve(config))
"""
    run = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(run, capture_output=True, text=True, cwd=PROJECT, check=True).stdout.split() == []

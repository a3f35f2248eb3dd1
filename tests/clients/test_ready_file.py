"""`--ready-file`: how a script in any language learns that the server is ready, and where it is."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from asterism.server.doors import DOORS
from tests.support.server import (
    ALL_DOORS,
    PROGRAM,
    WAIT_SECONDS_MAX,
    RunningServer,
    environment,
    refused_start,
    running_program,
    running_server,
)

KEY = "c2VjcmV0IG9mIGEgdGVzdA=="
ANY_PORTS = [text for door in DOORS for port in door.ports for text in (port.flag, "0")]


def report_of(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def test_all_ports_may_be_0_and_stand_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    command = [*PROGRAM, "serve", "--data", str(tmp_path / "data"), *ANY_PORTS, "--ready-file", str(file)]
    with running_program(command, {**environment(), "ASTERISM_APIS": ",".join(ALL_DOORS)}) as program:
        report = report_of(file)
        assert report["pid"] == program.process.pid
        assert list(report["ports"]) == [port.name for door in DOORS for port in door.ports]
        assert all(str(port) in program.greeting for port in report["ports"].values())
        assert len(set(report["ports"].values())) == len(report["ports"])
        with CosmosClient.from_connection_string(report["connection_strings"]["nosql"]) as client:
            assert list(client.list_databases()) == []
        program.process.terminate()
        program.process.wait()
        assert not file.exists()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_file_is_there_while_the_server_is(tmp_path: Path, workers: str) -> None:
    file = tmp_path / "ready.json"
    file.write_text("left by a server that was killed")
    options = ["--workers", workers, "--ready-file", str(file)]
    with running_server(tmp_path / "data", *options, alone=True, embedded=True) as server:
        assert report_of(file)["endpoints"] == {"nosql": server.endpoint}
        assert server.end()[0] == 0
    assert list(tmp_path.iterdir()) == [tmp_path / "data"]


def test_the_file_of_another_server_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    with running_server(tmp_path / "data", "--ready-file", str(file)) as server:
        file.write_text('{"pid": 1}')
        server.end()
    assert report_of(file) == {"pid": 1}


def keys_shown(server: RunningServer, file: Path) -> bool:
    return KEY in file.read_text() or KEY in server.greeting


def test_the_file_tells_no_key_that_is_not_public(tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    options = ["--key", KEY, "--table-account", f"shop:{KEY}", "--ready-file", str(file)]
    with running_server(tmp_path / "data", *options, doors=("nosql", "table")) as server:
        assert not keys_shown(server, file)
        assert "AccountKey=********;" in report_of(file)["connection_strings"]["table"]


def test_a_file_that_cannot_be_written_is_a_reason_not_to_start(tmp_path: Path) -> None:
    missing = tmp_path / "no" / "such" / "folder"
    assert f"the ready file {missing} cannot be written" in refused_start(tmp_path, "--ready-file", str(missing))


@pytest.mark.parametrize("options", [["--workers", "2"], ["--store", "lmdb:elsewhere"]])
def test_test_controls_need_a_single_process(tmp_path: Path, options: list[str]) -> None:
    assert "--test-controls need a single process" in refused_start(tmp_path / "data", "--test-controls", *options)


def answer_to(server: RunningServer, verb: str, name: str, body: str = "{}", *, key: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_SECONDS_MAX)
    connection.request(verb, f"/_asterism/{name}", body, {"authorization": f"Bearer {key}"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


def test_any_program_with_a_full_key_has_the_controls(tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "data", "--test-controls", alone=True, embedded=True) as server,
        server.client() as client,
    ):
        key, readonly_key = WELL_KNOWN_EMULATOR_KEY, derive_readonly_key(WELL_KNOWN_EMULATOR_KEY)
        assert answer_to(server, "POST", "testing/fail-next", '{"status": 429}', key=readonly_key)[0] == 403
        assert answer_to(server, "POST", "testing/fail-next", '{"status": 429}', key="c29tZQ==")[0] == 401
        asked = '{"status": 429, "times": 2, "operation": "create_database"}'
        status, state = answer_to(server, "POST", "testing/fail-next", asked, key=key)
        assert (status, [fault["times"] for fault in state["faults"]]) == (200, [2])
        client.create_database("shop")
        status, state = answer_to(server, "POST", "testing/clock-skew", '{"seconds": 60}', key=key)
        assert (status, state) == (200, {"faults": [], "clock_skew_seconds": 60.0})
        assert answer_to(server, "POST", "testing/reset", key=key)[0] == 200
        assert list(client.list_databases()) == []


def test_a_shift_that_is_no_number_of_seconds_is_refused(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--test-controls", alone=True, embedded=True) as server:
        for body in ('{"seconds": "soon"}', "{}", '{"seconds": 1e300}', "[]"):
            assert answer_to(server, "POST", "testing/clock-skew", body, key=WELL_KNOWN_EMULATOR_KEY)[0] == 400


def test_a_server_that_was_not_started_for_tests_has_no_controls(server: RunningServer) -> None:
    for name in ("testing/fail-next", "testing/clock-skew", "testing/reset"):
        assert answer_to(server, "POST", name, key=WELL_KNOWN_EMULATOR_KEY)[0] == 404
    assert answer_to(server, "GET", "testing", key=WELL_KNOWN_EMULATOR_KEY)[0] == 404

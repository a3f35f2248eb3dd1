"""`asterism synthetic-key` as its user meets it."""

from __future__ import annotations

import json
import subprocess

from azure.cosmos import DatabaseProxy

from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment

ITEM = {"id": "1", "device": "d-7", "at": "2026-01-31T09:30:00Z"}


def run(server: RunningServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "synthetic-key", *arguments],
        capture_output=True,
        text=True,
        env={**environment(), "ASTERISM_ENDPOINT": server.endpoint},
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )


def test_a_key_is_declared_explained_and_raised(server: RunningServer, database: DatabaseProxy) -> None:
    rule = ("--path", "/pk", "--part", "/device", "--part", "/at:day", "--hash", "10", "--of", "/id")
    made = run(server, "create", database.id, "readings", *rule, "--ru", "12000")
    assert (made.returncode, made.stderr) == (0, "")
    container = database.get_container_client("readings")
    key = container.create_item(ITEM)["pk"]
    assert key.startswith("d-7-2026-01-31.")
    shown = run(server, "show", database.id, "readings")
    assert shown.stdout == "/pk: device + '-' + day of at, then one of 10 suffixes by the hash of id\n"
    explained = run(server, "explain", database.id, "readings", "--item", json.dumps(ITEM))
    assert f'keys: ["{key}"]' in explained.stdout
    assert "physical partition: " in explained.stdout
    assert run(server, "raise", database.id, "readings", "--count", "20").returncode == 0
    assert container.read_item("1", ["d-7", ITEM["at"], "1"])["pk"] == key
    lowered = run(server, "raise", database.id, "readings", "--count", "5")
    assert lowered.returncode == 1
    assert "cannot be lowered from 20 to 5" in lowered.stderr
    as_json = json.loads(run(server, "show", database.id, "readings", "--format", "json").stdout)
    assert as_json["synthetic"]["/pk"]["suffix"]["earlierCounts"] == [10]


def test_a_rule_is_explained_before_a_container_has_it(server: RunningServer) -> None:
    explained = run(server, "explain", "--part", "/at:month", "--random", "400", "--item", json.dumps(ITEM))
    assert explained.returncode == 0
    assert '["2026-01.1"]' in explained.stdout
    assert "asks all 400" in explained.stdout


def test_bad_rules_are_refused_in_one_line(server: RunningServer, database: DatabaseProxy) -> None:
    refused = [
        ("explain", "--part", "/a", "--random", "0"),
        ("explain", "--part", "/a", "--random", "1000000"),
        ("explain", "--part", "/a", "--random", "2", "--hash", "2", "--of", "/b"),
        ("explain", "--part", "/a", "--hash", "2"),
        ("explain", "--part", "/a:week"),
        ("explain", "--rule", "{"),
        ("explain", "--part", "/a", "--item", "[]"),
        ("explain", "--part", "/a", "--item", '{"a": {}}'),
        ("create", database.id, "x", "--path", "/pk", "--part", "/pk"),
        ("show", database.id, "nowhere"),
        ("raise", database.id, "nowhere", "--count", "5"),
    ]
    for arguments in refused:
        done = run(server, *arguments)
        assert done.returncode == 1, arguments
        assert done.stderr.startswith("asterism: "), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr

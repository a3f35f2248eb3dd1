"""The examples of docs/guides/tables.md, run with the official client."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.table_server import TableServer
from tests.support.server import PROGRAM, PROJECT, environment

EXPECTED = {
    "customers_by_city": """\
point query: Jan Ritter
one partition: ['Mira Vogel', 'Jan Ritter']
a range of partitions: ['Bonn c-0003', 'Bonn c-0021', 'Brno c-0008']
by the index table: [('Delft', 'c-0011', 'saskia@example.com')]
""",
    "products_by_category": """\
below 1000: [('b-100', 449.1), ('b-200', 809.1)]
first buyer: sold
second buyer: too late, read again
operation 1 failed: EntityAlreadyExists
helmets: ['h-010']
""",
    "orders_by_date": """\
orders of a day: 6
orders of a week: 42
orders of a morning: ['08:30:00-0012', '10:30:00-0002']
orders of a day, spread: 6
pages: [10, 10, 10, 6]
""",
}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment())


def run_example(name: str, tables: TableServer) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, str(PROJECT / "examples" / "tables" / f"{name}.py"), tables.connection_string)


@pytest.mark.parametrize("name", list(EXPECTED))
def test_an_example_does_what_it_says(name: str, tables: TableServer) -> None:
    done = run_example(name, tables)
    assert (done.stdout, done.returncode) == (EXPECTED[name], 0), done.stderr


def test_the_command_shows_the_ranges_of_a_table(tables: TableServer) -> None:
    endpoint = tables.running.endpoint
    assert run_example("orders_by_date", tables).returncode == 0
    done = run(*PROGRAM, "partitions", "--table", "ordersbydate", "--details", "--endpoint", endpoint)
    assert done.returncode == 0, done.stderr
    assert "(start)" in done.stdout
    assert "(end)" in done.stdout
    assert '["2026-11-03"]' in done.stdout
    shown = json.loads(
        run(*PROGRAM, "partitions", "--table", "OrdersByDate", "--format", "json", "--endpoint", endpoint).stdout
    )
    (only,) = shown["partitions"]
    assert (only["items"], only["start_key"], only["end_key"]) == (60, None, None)


@pytest.mark.parametrize("arguments", [["partitions"], ["partitions", "db"], ["partitions", "db", "c", "--table", "t"]])
def test_the_command_wants_a_container_or_a_table(arguments: list[str]) -> None:
    done = run(*PROGRAM, *arguments)
    assert done.returncode == 2
    assert "--table NAME" in done.stderr


def test_the_guide_names_every_example() -> None:
    guide = (PROJECT / "docs" / "guides" / "tables.md").read_text()
    examples = {path.stem for path in Path(PROJECT / "examples" / "tables").glob("*.py")}
    assert examples == set(EXPECTED)
    assert all(f"{name}.py" in guide for name in examples)

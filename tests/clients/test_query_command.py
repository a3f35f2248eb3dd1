"""`asterism query` as its user meets it, on data that the official client has written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment

# Of this module alone, on the server that it shares with others.
DATABASE = "query-command"
ITEM_COUNT = 30


@pytest.fixture(scope="module")
def filled(server: RunningServer, client: CosmosClient) -> Iterator[RunningServer]:
    """Thirty orders of five customers in two partitions."""
    database = client.create_database(DATABASE)
    orders = database.create_container("orders", PartitionKey("/customer"), offer_throughput=12_000)
    for number in range(ITEM_COUNT):
        orders.create_item({"id": f"o{number:02d}", "customer": f"c{number % 5}", "total": number, "tags": ["[x]"]})
    yield server
    client.delete_database(database)


def run_query(server: RunningServer, *arguments: str, database: str = DATABASE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "query", database, "orders", *arguments],
        capture_output=True,
        text=True,
        env={**environment(), "ASTERISM_ENDPOINT": server.endpoint},
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )


def results_of(server: RunningServer, *arguments: str) -> list[object]:
    finished = run_query(server, *arguments, "--format", "json")
    assert (finished.returncode, finished.stderr) == (0, "")
    return [json.loads(line) for line in finished.stdout.splitlines()]


def test_results_are_a_line_of_json_each(filled: RunningServer) -> None:
    totals = results_of(filled, "SELECT VALUE c.total FROM c ORDER BY c.total DESC")
    assert totals == list(range(ITEM_COUNT))[::-1]


@pytest.mark.parametrize(
    "given",
    [
        ["--parameters", '{"@customer": "c3", "@least": 20}'],
        ["-p", "customer=c3", "-p", "@least=20"],
        ["-p", '@customer="c3"', "-p", '{"least": 20}'],
    ],
)
def test_parameters_come_as_pairs_or_as_json(filled: RunningServer, given: list[str]) -> None:
    text = "SELECT VALUE c.total FROM c WHERE c.customer = @customer AND c.total >= @least"
    assert results_of(filled, text, *given) == [23, 28]


def test_no_more_results_are_fetched_than_the_limit_says(filled: RunningServer) -> None:
    assert results_of(filled, "SELECT VALUE c.total FROM c ORDER BY c.total", "--limit", "4") == [0, 1, 2, 3]


def test_a_table_has_the_properties_as_columns_and_leaves_out_the_servers_own(filled: RunningServer) -> None:
    finished = run_query(filled, "SELECT * FROM c WHERE c.total < 2")
    assert (finished.returncode, finished.stderr) == (0, "")
    for word in ("id", "customer", "total", "o00", "o01", '["[x]"]'):
        assert word in finished.stdout
    assert "_etag" not in finished.stdout


def test_values_and_mixed_results_are_one_column(filled: RunningServer) -> None:
    assert "60" in run_query(filled, "SELECT VALUE SUM(c.total) FROM c WHERE c.total > 28 OR c.total IN (3, 28)").stdout


def test_no_results_are_said_to_be_none(filled: RunningServer) -> None:
    assert run_query(filled, "SELECT * FROM c WHERE c.total = -1").stdout == "No results.\n"


def test_explain_tells_partitions_indexes_items_and_cost_beside_the_results(filled: RunningServer) -> None:
    finished = run_query(filled, "SELECT VALUE c.id FROM c WHERE c.total = 7", "--explain", "--format", "json")
    assert finished.stdout == '"o07"\n'
    for words in ("/total/?", "(of 2)", "items loaded", "scanned", "request units"):
        assert words in finished.stderr


def test_a_fault_in_the_query_is_marked_under_its_text(filled: RunningServer) -> None:
    finished = run_query(filled, "SELECT *\nFORM c")
    first, line, mark = finished.stderr.splitlines()
    assert finished.returncode == 1
    assert first.startswith("asterism: SC1001: ")
    assert (line, mark) == ("  FORM c", "  ^^^^")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["SELECT * FROM c WHERE c.total = 1", "-p", "x"], "neither NAME=VALUE nor a JSON object"),
        (["SELECT * FROM c WHERE c.total = 1", "-p", "{"], "the parameters are not JSON"),
        (["SELECT * FROM c ORDER BY c.total, c.id"], "composite index"),
    ],
)
def test_a_query_that_fails_is_one_line_and_status_1(filled: RunningServer, arguments: list[str], message: str) -> None:
    finished = run_query(filled, *arguments)
    (line,) = finished.stderr.splitlines()
    assert finished.returncode == 1
    assert message in line


def test_a_database_that_is_not_there_is_named(filled: RunningServer) -> None:
    finished = run_query(filled, "SELECT * FROM c", database="nowhere")
    assert finished.stderr == "asterism: There is no database 'nowhere'.\n"

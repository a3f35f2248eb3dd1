"""Replays of a workload into scratch containers of a running server."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.cosmos import DatabaseProxy, PartitionKey

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.advisor.candidate_keys import CandidateKey
from asterism.advisor.captured_request import CapturedRequest
from asterism.cli.advise_replay import ReplaySettings, replay_keys, throw_away_server
from asterism.cli.failure import CommandFailed
from asterism.cli.replay_report import Replay, describe_replay, print_replay
from asterism.cli.scratch_containers import Server
from asterism.partitioning.synthetic_key import KeyRule
from tests.clients.test_advise import run_program
from tests.support.replays import BY_CITY, BY_ID, LONG_SECONDS, PRESENT, SETTINGS, items, requests
from tests.support.scratch import scratch_databases, wait_for_replay
from tests.support.server import WAIT_SECONDS_MAX, RunningServer

RANDOM = CandidateKey.of_rule(KeyRule.parse({"parts": ["/city"], "suffix": {"kind": "random", "count": 3}}))


def replay(server: RunningServer, *keys: CandidateKey, seconds: float = 20.0) -> Replay:
    address = Server(server.endpoint, WELL_KNOWN_EMULATOR_KEY)
    workload = requests(seconds=seconds)
    return replay_keys(address, keys, present=PRESENT, items=items(), requests=workload, settings=SETTINGS)


def test_each_key_is_measured_and_nothing_is_left(server: RunningServer) -> None:
    found = replay(server, PRESENT, BY_ID, BY_CITY, RANDOM)
    assert scratch_databases(server.client()) == []
    present, by_id, by_city, by_random = (describe_replay(found)["keys"][place]["measured"] for place in range(4))
    assert present["charges"]["read"] == by_id["charges"]["read"] == 1.0
    assert by_city["charges"]["read"] > 2 * 2.25
    assert by_id["charges"]["query"] > present["charges"]["query"]
    assert [each["refused"] for each in (present, by_id, by_city, by_random)] == [{}, {}, {}, {}]
    assert sum(present["shares_of_partitions"]) == pytest.approx(1.0, abs=0.01)


def test_a_report_has_predicted_figures_beside_the_measured(
    server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    found = replay(server, PRESENT, BY_ID)
    print_replay(found)
    for described in describe_replay(found)["keys"]:
        assert described["ru_error"] < 0.05
        assert described["predicted"]["throttled_share"] == described["measured"]["throttled_share"] == 0.0
    printed = capsys.readouterr().out
    assert "0.0% → 0.0%" in printed
    assert "60 of 60 requests with 30 items" in printed


def test_a_workload_beyond_the_budget_of_a_partition_is_throttled() -> None:
    writes = [
        CapturedRequest(n / 100, "create", item_id=f"w{n}", key=("c0",), values={"/customer": "c0"}, size_bytes=900)
        for n in range(600)
    ]
    # Four: so far apart are the two keys that a replay may be held up for some seconds.
    settings = ReplaySettings(ru_per_second=100, partitions=4)
    with throw_away_server() as server:
        found = replay_keys(server, [PRESENT, BY_ID], present=PRESENT, items=[], requests=writes, settings=settings)
    one_key, by_id = (each.measured.throttled_share for each in found.keys)
    assert one_key > 0.5
    assert by_id < one_key


def test_a_container_that_is_deleted_meanwhile_ends_the_replay_in_one_line(server: RunningServer) -> None:
    client = server.client()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(replay, server, PRESENT, seconds=LONG_SECONDS)
        client.get_database_client(wait_for_replay(client)).delete_container("key-1")
        with pytest.raises(CommandFailed) as failed:
            running.result(WAIT_SECONDS_MAX)
    assert str(failed.value).endswith("was deleted during the replay; start it again")
    assert scratch_databases(client) == []


def test_a_captured_workload_is_replayed_on_its_server(server: RunningServer, database: DatabaseProxy) -> None:
    container = database.create_container("orders", PartitionKey("/customer"), offer_throughput=12_000)
    for item in items(40):
        container.upsert_item(item)
    run_program(server, "capture", "start", database.id, "orders", "--sample", "1")
    for number in range(20):
        container.read_item(f"i{number}", f"c{number % 3}")
    by_city = "SELECT * FROM c WHERE c.city = 't1' ORDER BY c.total"
    for _ in range(5):
        assert len(list(container.query_items(by_city, enable_cross_partition_query=True))) == 20
    run_program(server, "capture", "stop", database.id, "orders")
    done = run_program(server, "advise", database.id, "orders", "--replay", "1", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["requests"] == report["replay"]["requests"] == 25
    assert "/customer" in [key["key"] for key in report["replay"]["keys"]]
    assert all(key["ru_error"] < 0.1 for key in report["replay"]["keys"])
    assert scratch_databases(server.client()) == []

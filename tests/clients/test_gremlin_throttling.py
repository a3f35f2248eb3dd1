"""Request units of graphs: a spent budget in the service's words, and traversals written whole or not at all."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from azure.cosmos import PartitionKey
from gremlin_python.driver.client import Client
from gremlin_python.driver.protocol import GremlinServerError

from tests.clients.gremlin_door import Door, results
from tests.support.server import RunningServer, running_server

REQUESTS_MAX = 2_000
ADD = "addV('n').property('pk', 'p').property('body', body)"
BODY = "x" * 20_000
# For 1,260 request units, as many as the graph has in three seconds.
SPEND = (
    "g.inject(ids).unfold().as('i').addV('n').property('pk', 'spent').property('body', body)"
    ".property('id', select('i')).count()"
)


@pytest.fixture(scope="module")
def throttling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    data = tmp_path_factory.mktemp("throttling") / "data"
    with running_server(data, doors=("nosql", "gremlin"), alone=True) as running:
        yield running


@pytest.fixture
def client(throttling: RunningServer) -> Iterator[Client]:
    """A client of a graph that has no reserve for bursts: while it has, only 3,000 RU in a second are too many."""
    name = f"d-{uuid.uuid4()}"
    with throttling.client() as cosmos, Door(throttling, name, "g").client() as connected:
        container = cosmos.create_database(name).create_container("g", PartitionKey("/pk"), offer_throughput=4_000)
        assert results(connected, "g.V().count()") == [0]
        # So much throughput has no reserve.
        container.replace_throughput(400)
        yield connected


def seconds_to_wait(problem: GremlinServerError) -> float:
    """Read the time that the server wants its client to wait, as users of the service do."""
    text = problem.status_attributes["x-ms-retry-after-ms"]
    found = re.fullmatch(r"(\d\d):(\d\d):(\d\d(?:\.\d{1,7})?)", text)
    assert found is not None, text
    return int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3])


def is_throttled(problem: GremlinServerError) -> bool:
    return bool(problem.status_attributes["x-ms-status-code"] == 429)


def submit_with_retries(client: Client, text: str, bindings: dict[str, Any]) -> list[Any]:
    for _ in range(REQUESTS_MAX):
        try:
            return results(client, text, bindings)
        except GremlinServerError as problem:
            if not is_throttled(problem):
                raise
            time.sleep(seconds_to_wait(problem))
    raise AssertionError("the request was throttled for ever")


def spend(client: Client) -> None:
    """Take from the budget of the graph, and leave it in debt for a second if it had little."""
    try:
        results(client, SPEND, {"body": BODY, "ids": [str(uuid.uuid4()) for _ in range(90)]})
    except GremlinServerError as problem:
        if not is_throttled(problem):
            raise


def first_throttled(client: Client, text: str) -> tuple[dict[str, Any], GremlinServerError]:
    """Send a text with ever new ids until the budget is spent; return its bindings, and the refusal."""
    for number in range(REQUESTS_MAX):
        spend(client)
        bindings = {"body": BODY, "a": f"{number}-a", "b": f"{number}-b", "c": f"{number}-c"}
        try:
            results(client, text, bindings)
        except GremlinServerError as problem:
            return bindings, problem
    raise AssertionError("the budget was never spent")


def test_a_spent_budget_is_told_as_the_service_tells_it(client: Client) -> None:
    text = f"g.{ADD}.property('id', a)"
    bindings, refused = first_throttled(client, text)
    attributes = refused.status_attributes
    assert (refused.status_code, attributes["x-ms-status-code"]) == (500, 429)
    assert attributes["x-ms-substatus-code"] == 3200
    assert seconds_to_wait(refused) > 0
    assert attributes["x-ms-total-request-charge"] >= 0
    assert "ExceptionType : RequestRateTooLargeException" in refused.status_message
    time.sleep(seconds_to_wait(refused))
    (vertex,) = submit_with_retries(client, text, bindings)
    assert vertex["id"] == bindings["a"]


def test_a_traversal_that_is_throttled_leaves_nothing_of_its_partition(client: Client) -> None:
    text = f"g.{ADD}.property('id', a).as('a').{ADD}.property('id', b).addE('e').to('a').outV().{ADD}.property('id', c)"
    bindings, refused = first_throttled(client, text)
    assert is_throttled(refused)
    ids = {name: bindings[name] for name in "abc"}
    assert submit_with_retries(client, "g.V(['p', a], ['p', b], ['p', c]).count()", ids) == [0]
    submit_with_retries(client, text, bindings)
    assert submit_with_retries(client, "g.V(['p', a], ['p', b], ['p', c]).count()", ids) == [3]


def test_a_client_that_waits_as_long_as_it_is_asked_to_writes_everything(client: Client) -> None:
    text = f"g.{ADD}.property('id', a)"
    first_throttled(client, text.replace("'p'", "'q'"))
    for number in range(20):
        submit_with_retries(client, text, {"body": BODY, "a": f"{number}"})
    assert submit_with_retries(client, "g.V().has('pk', 'p').count()", {}) == [20]

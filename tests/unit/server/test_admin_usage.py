"""Usage over time at the operator's door, and its metrics for machines, over a real store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from asterism.keyspaces.processes.usage_history import SLOT_SECONDS
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory
from tests.unit.server.test_admin_door import PROJECT, Operator, make_request, operator

__all__ = ["operator"]

NAMES = "database=shop&container=orders"
DASHBOARD = PROJECT / "docs" / "grafana" / "asterism.json"
BEARER = {"authorization": f"Bearer {WELL_KNOWN_EMULATOR_KEY}"}
# As Prometheus 3 sends it.
PROMETHEUS_ACCEPTS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


async def scrape(operator: Operator, accept: str = "*/*") -> tuple[str, str]:
    """Return the content type and the text of the page of metrics."""
    request = make_request("GET", "/_asterism/metrics", "", {**BEARER, "accept": accept})
    response = await operator.assembly.operator_door.answer(request)
    assert response.status == 200, response.body
    return dict(response.headers)["content-type"], response.body.decode()


# --- usage over time ------------------------------------------------------------------------------------------------


async def test_usage_is_shown_by_partition_over_time(operator: Operator) -> None:
    history = operator.assembly.services.history
    await history.sample()
    shown = await operator.get("usage")
    assert (shown["step_seconds"], shown["history_seconds"], shown["ru_share"]) == (SLOT_SECONDS, 6 * 3600.0, 400)
    assert shown["until"] - shown["from"] == pytest.approx(3600)
    (partition,) = shown["partitions"]
    assert (partition["id"], partition["is_current"]) == ("0", True)
    assert (len(partition["ru"]), sum(partition["requests"]), sum(partition["throttled"])) == (360, 40, 0)
    usage = next(iter(operator.assembly.services.documents.catalog.keyspaces.values())).usage[0]
    assert sum(partition["ru"]) == pytest.approx(usage.request_units, abs=0.01)


async def test_points_and_seconds_choose_the_steps(operator: Operator) -> None:
    shown = await operator.get("usage", f"{NAMES}&seconds=600&points=7")
    assert (shown["step_seconds"], len(shown["partitions"][0]["ru"])) == (90.0, 7)
    longest = await operator.get("usage", f"{NAMES}&seconds=9999999&points=1")
    assert longest["step_seconds"] == longest["history_seconds"]


async def test_ranges_that_were_split_come_last(operator: Operator) -> None:
    history = operator.assembly.services.history
    await history.sample()
    await operator.reshape("split", range="0")
    partitions = (await operator.get("usage"))["partitions"]
    assert [(shown["id"], shown["is_current"], sum(shown["requests"])) for shown in partitions] == [
        ("1", True, 0),
        ("2", True, 0),
        ("0", False, 40),
    ]


async def test_keys_that_grow_are_shown(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    services = operator.assembly.services
    store, history = services.documents, services.history
    container = store.container(store.database("asterism", "shop"), "orders")
    seconds = services.clock.monotonic_seconds()
    for minute in range(2):
        await container.create_item({"id": f"large {minute}", "customer": "grows", "text": "x" * 60_000}, None)
        await history.sample()
        monkeypatch.setattr(history, "_clock", fixed_clock(services.clock, seconds + 60 * minute))
        await history.measure_growth()
    (growing,) = (await operator.get("usage"))["growing"]
    assert re.fullmatch("[0-9A-F]{32}", growing["effective_key"])
    assert growing["bytes"] > 120_000
    assert 1000 < growing["bytes_per_second"] < 1100


def fixed_clock(clock: Any, monotonic_seconds: float) -> Any:
    return type(clock)(wall_seconds=clock.wall_seconds, monotonic_seconds=lambda: monotonic_seconds)


async def test_a_read_only_key_may_look_at_the_usage(operator: Operator) -> None:
    visitor = Operator(operator.assembly, derive_readonly_key(WELL_KNOWN_EMULATOR_KEY))
    assert (await visitor.ask("GET", "usage", query=NAMES)).status == 200


@pytest.mark.parametrize(
    "wish",
    [
        "seconds=9",
        "seconds=x",
        "seconds=-60",
        "seconds=1e9",
        "seconds=99999999999999999999",
        "points=0",
        "points=10001",
    ],
)
async def test_bounds_are_checked_and_named(operator: Operator, wish: str) -> None:
    response = await operator.ask("GET", "usage", query=f"{NAMES}&{wish}")
    answer = json.loads(response.body)
    assert response.status == 400
    assert re.search(r"must be a whole number from \d+ to \d+", answer["message"])


async def test_a_server_without_a_history_says_so(tmp_path: Path) -> None:
    async with assembled(ServerConfig(metrics_history_hours=0.0), DataDirectory(tmp_path)) as assembly:
        store = assembly.services.documents
        database = await store.create_database("asterism", "shop", None)
        properties = {"id": "orders", "partitionKey": {"paths": ["/customer"], "kind": "Hash", "version": 2}}
        await store.create_container(database, properties, None)
        shown = await Operator(assembly).get("usage")
    assert (shown["history_seconds"], shown["partitions"][0]["requests"]) == (0.0, [0])


# --- metrics --------------------------------------------------------------------------------------------------------


async def test_finished_splits_and_merges_are_counted(operator: Operator) -> None:
    await operator.reshape("split", range="0")
    await operator.reshape("merge", ranges=["1", "2"])
    await operator.reshape("split", range="3")
    _, text = await scrape(operator)
    counts = re.findall(r'^asterism_reshapes_total\{kind="(\w+)"\} (\d+)$', text, re.MULTILINE)
    assert counts == [("split", "2"), ("merge", "1"), ("move", "0")]


async def test_commits_of_the_store_are_counted(operator: Operator) -> None:
    def commits(text: str) -> int:
        (count,) = re.findall(r"^asterism_store_commits_total (\d+)$", text, re.MULTILINE)
        return int(count)

    before = commits((await scrape(operator))[1])
    store = operator.assembly.services.documents
    container = store.container(store.database("asterism", "shop"), "orders")
    await container.create_item({"id": "another", "customer": "c"}, None)
    assert commits((await scrape(operator))[1]) > before


async def test_the_page_is_openmetrics_for_clients_that_prefer_it(operator: Operator) -> None:
    await operator.reshape("split", range="0")
    content_type, text = await scrape(operator, PROMETHEUS_ACCEPTS)
    assert content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    families = {family.name: family for family in parse_openmetrics(text)}
    assert families["asterism_requests"].type == "counter"
    assert families["asterism_door_request_seconds"].type == "histogram"
    assert {sample.name for sample in families["asterism_reshapes"].samples} == {"asterism_reshapes_total"}
    assert sum(sample.value for sample in families["asterism_partition_items"].samples) == 40


async def test_both_formats_have_the_same_samples(operator: Operator) -> None:
    _, plain = await scrape(operator)
    _, open_text = await scrape(operator, PROMETHEUS_ACCEPTS)

    def series(families: Iterator[Any]) -> set[tuple[str, frozenset[tuple[str, str]]]]:
        return {
            (sample.name, frozenset(sample.labels.items()))
            for family in families
            for sample in family.samples
            if sample.labels.get("operation") != "get_metrics"
        }

    assert series(parse_openmetrics(open_text)) == series(parse_prometheus(plain))


async def test_containers_of_equal_names_in_another_account_are_series_of_their_own(operator: Operator) -> None:
    store = operator.assembly.services.documents
    assert (await operator.ask("POST", "accounts", body={"name": "blue", "kind": "cosmos"})).status == 201
    for name in ("one", "two"):
        database = await store.create_database("blue", name, None)
        properties = {"id": "same", "partitionKey": {"paths": ["/customer"], "kind": "Hash", "version": 2}}
        await store.create_container(database, properties, None)
    _, text = await scrape(operator, PROMETHEUS_ACCEPTS)
    # It refuses a series that occurs twice.
    families = {family.name: family for family in parse_openmetrics(text)}
    databases = {sample.labels["database"] for sample in families["asterism_partition_items"].samples}
    assert databases == {"shop", "blue/one", "blue/two"}


# --- the dashboard --------------------------------------------------------------------------------------------------


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
    return found


def queries() -> list[str]:
    """Return every query of the dashboard: of its panels and of its variables."""
    board = dashboard()
    of_panels = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    return of_panels + [
        variable["query"]["query"] for variable in board["templating"]["list"] if variable["type"] == "query"
    ]


async def test_every_metric_of_the_dashboard_is_in_the_page(operator: Operator) -> None:
    await scrape(operator)
    # Of the first page, which has been answered.
    _, text = await scrape(operator)
    shown = {sample.name for family in parse_prometheus(text) for sample in family.samples}
    named = {name for query in queries() for name in re.findall(r"\basterism_\w+", query)}
    assert named
    assert named <= shown


def test_panels_of_the_dashboard_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    ids = [panel["id"] for panel in panels]
    assert len(set(ids)) == len(ids)

    def cells(panel: dict[str, Any]) -> set[tuple[int, int]]:
        place = panel["gridPos"]
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= 24
        return {(place["x"] + right, place["y"] + down) for right in range(place["w"]) for down in range(place["h"])}

    assert all(not cells(first) & cells(second) for first, second in combinations(panels, 2))


def test_panels_of_the_dashboard_ask_the_data_source_that_the_user_chooses() -> None:
    board = dashboard()
    assert [variable["name"] for variable in board["templating"]["list"] if variable["type"] == "datasource"] == [
        "datasource"
    ]
    charts = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert {panel["datasource"]["uid"] for panel in charts} == {"${datasource}"}
    assert all(panel["title"] and panel["description"] for panel in charts)


def test_panels_of_the_dashboard_stand_in_the_order_of_their_rows() -> None:
    tops = [panel["gridPos"]["y"] for panel in dashboard()["panels"]]
    assert all(above <= below for above, below in pairwise(tops))

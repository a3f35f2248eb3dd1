"""The picture of a container's partitions: totals, keys that stand out, jobs with their progress, a verdict."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from asterism.apis.admin import logical_partitions, sizes
from asterism.apis.admin.job_progress import PERCENT_MAX, estimate_percent
from asterism.errors import StorageUnavailable
from asterism.keyspaces.reshaping.job import Progress, Step
from asterism.keyspaces.routing.statistics import first_item
from asterism.models.documents.container import Container
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory
from asterism.throughput.budgets import Manual
from tests.unit.server.test_admin_door import Operator

ITEMS = 200


@pytest.fixture
async def operator(tmp_path: Path) -> AsyncIterator[Operator]:
    """A server with a container of three partitions, most of whose items have one date."""
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        store = assembly.services.documents
        database = await store.create_database("asterism", "shop", None)
        properties = {"id": "orders", "partitionKey": {"paths": ["/date"], "kind": "Hash", "version": 2}}
        container = await store.create_container(database, properties, Manual(18_000))
        for number in range(ITEMS):
            date = "2026-11-18" if number >= 20 else f"2026-10-{number + 1:02}"
            await container.create_item({"id": str(number), "date": date}, None)
        yield Operator(assembly)


def orders(operator: Operator) -> Container:
    store = operator.assembly.services.documents
    return store.container(store.database("asterism", "shop"), "orders")


async def shown(operator: Operator, more: str = "") -> dict[str, Any]:
    return await operator.get("partitions", f"database=shop&container=orders{more}")


async def test_totals_are_the_sums_of_the_partitions(operator: Operator) -> None:
    answer = await shown(operator)
    totals = answer["totals"]
    assert (totals["items"], totals["logical_partitions"], totals["throttled"]) == (ITEMS, 21, 0)
    assert totals["bytes"] == sum(partition["bytes"] for partition in answer["partitions"])
    assert totals["is_partial"] is False
    assert answer["throughput"] == {"mode": "manual", "ru": 18_000}
    assert answer["limits"] == {
        "logical_partition_bytes_max": 20 * 1024**3,
        "physical_partition_bytes_max": 50 * 1024**3,
    }


async def test_the_largest_and_hottest_keys_of_all_partitions_come_with_their_partition(operator: Operator) -> None:
    answer = await shown(operator)
    large, hot = answer["largest"][0], answer["hottest"][0]
    assert large["partition_key"] == hot["partition_key"] == ["2026-11-18"]
    assert large["items"] == ITEMS - 20
    fullest = max(answer["partitions"], key=lambda partition: partition["bytes"])
    assert large["partition"] == hot["partition"] == fullest["id"]
    assert len(answer["largest"]) == 10


async def test_keys_on_a_node_that_does_not_answer_are_not_read_for_their_names(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise StorageUnavailable(reason="away")

    monkeypatch.setattr(sizes, "partition_size", refuse)
    # A read would wait for the node, and so would the operator.
    monkeypatch.setattr(logical_partitions, "first_item", lambda *_: pytest.fail("a key was read"))
    answer = await shown(operator)
    assert [set(hot) >= {"effective_key"} and "partition_key" not in hot for hot in answer["hottest"][:1]] == [True]


async def test_as_many_keys_of_each_partition_are_named_as_asked_for(operator: Operator) -> None:
    counts = [len(partition["largest"]) for partition in (await shown(operator, "&top=2"))["partitions"]]
    assert max(counts) == 2
    assert (await operator.ask("GET", "partitions", query="database=shop&container=orders&top=0")).status == 400
    assert (await operator.ask("GET", "partitions", query="database=shop&container=orders&top=51")).status == 400


async def test_without_details_there_are_totals_hot_keys_and_a_verdict(operator: Operator) -> None:
    answer = await shown(operator, "&details=false")
    assert "largest" not in answer
    assert (answer["totals"]["items"], answer["totals"]["logical_partitions"]) == (ITEMS, None)
    assert answer["hottest"][0]["partition_key"] == ["2026-11-18"]
    assert answer["verdict"]["kind"] == "skewed storage"


async def test_a_date_as_key_is_judged_and_named(operator: Operator) -> None:
    verdict = (await shown(operator))["verdict"]
    assert verdict["kind"] == "skewed storage"
    assert "the key date=2026-11-18" in verdict["sentence"]
    assert verdict["findings"][0]["key"] == "date=2026-11-18"
    assert verdict["figures"]["storage_skew"] > 2


async def test_a_key_with_the_load_of_the_last_minutes_is_hot(operator: Operator) -> None:
    container, history = orders(operator), operator.assembly.services.history
    for _ in range(700):
        await container.read_item(b"100", ("2026-11-18",))
    await history.sample()
    verdict = (await shown(operator))["verdict"]
    assert verdict["kind"] == "hot key"
    assert verdict["figures"]["hottest_key"] == "date=2026-11-18"


async def test_more_logical_partitions_than_are_surveyed_make_a_partial_answer(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logical_partitions, "SURVEYED_MAX", 3)
    answer = await shown(operator)
    assert answer["totals"]["is_partial"] is True
    assert {partition["logical_partitions"] for partition in answer["partitions"]} == {3}


async def test_a_partition_that_is_split_shows_its_job(operator: Operator) -> None:
    partitions = (await shown(operator))["partitions"]
    assert [partition["job"] for partition in partitions] == [None, None, None]
    reshaper = operator.assembly.services.documents.services.reshaper
    job = await reshaper.split(orders(operator).keyspace, 0)
    by_id = {partition["id"]: partition for partition in (await shown(operator, "&details=false"))["partitions"]}
    await reshaper.finished(job)
    assert (by_id["0"]["job"]["kind"], by_id["0"]["job"]["ranges"]) == ("split", ["0"])
    assert by_id["0"]["job"]["percent"] is not None
    assert by_id["1"]["job"] is None


async def test_the_entries_of_an_item_are_counted_for_the_progress_of_a_split(operator: Operator) -> None:
    container, reshaper = orders(operator), operator.assembly.services.documents.services.reshaper
    partition = max((await shown(operator))["partitions"], key=lambda partition: partition["items"])
    job = await reshaper.split(container.keyspace, int(partition["id"]))
    progress = reshaper.progress[job.id]
    await reshaper.finished(job)
    entries_per_item = container.entry_count(await first_stored_item(operator))
    # The sizes of a few logical partitions are copied too.
    assert progress.entries_copied == pytest.approx(partition["items"] * entries_per_item, rel=0.1)


async def first_stored_item(operator: Operator) -> bytes:
    container = orders(operator)
    point = container.planner.point(("2026-11-18",))
    stored = await first_item(operator.assembly.services.documents.services.router, container.keyspace, point)
    assert stored is not None
    return stored


@pytest.mark.parametrize(
    ("copied", "expected", "percent"), [(0, 100, 0), (50, 100, 50), (100, 100, PERCENT_MAX), (7, 0, PERCENT_MAX)]
)
def test_a_job_is_never_said_to_be_done_before_it_is(copied: int, expected: int, percent: int) -> None:
    assert estimate_percent(copied=copied, expected=expected) == percent


async def test_a_job_that_has_copied_everything_is_nearly_done(operator: Operator) -> None:
    reshaper = operator.assembly.services.documents.services.reshaper
    job = await reshaper.split(orders(operator).keyspace, 0)
    reshaper.progress[job.id + 1] = Progress(job, Step.CAUGHT_UP)
    percents = {entry["percent"] for entry in (await operator.get("jobs", ""))["jobs"]}
    del reshaper.progress[job.id + 1]
    await reshaper.finished(job)
    assert PERCENT_MAX in percents

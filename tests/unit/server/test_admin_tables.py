"""Tables as an operator sees them, through the admin door and the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from asterism.cli.partitions import _load_mark
from asterism.models.tables.entities import EntityWrite, WriteKind
from asterism.models.tables.table import Table
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory
from tests.unit.server.test_admin_door import Operator

ASKED = "account=acct&table=Cities"


async def fill(table: Table, names: list[str]) -> None:
    for name in names:
        await table.apply([EntityWrite(WriteKind.INSERT, name, "r", b'"a":1')])


async def test_a_table_is_shown_as_ranges_of_its_keys(tmp_path: Path) -> None:
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        operator = Operator(assembly)
        table = await assembly.services.tables.create_table("acct", "cities", kind="storage")
        await fill(table, ["Aarhus", "Bonn", "Córdoba", "Delft"])
        response = await operator.ask("POST", "split", body={"account": "acct", "table": "cities", "range": "0"})
        assert response.status == 202
        for progress in list(operator.assembly.services.documents.services.reshaper.progress.values()):
            await assembly.services.documents.services.reshaper.finished(progress.job)
        shown = await operator.get("partitions", ASKED)
        assert shown["partition_key"]["kind"] == "Range"
        low, high = shown["partitions"]
        assert (low["start_key"], low["end_key"]) == (None, "Córdoba")
        assert (high["start_key"], high["end_key"]) == ("Córdoba", None)
        assert (low["items"], high["items"]) == (2, 2)
        assert high["largest"][0]["partition_key"] in (["Córdoba"], ["Delft"])
        assert (await operator.get("history", ASKED))["history"][0]["kind"] == "split"
        metrics = await operator.ask("GET", "metrics")
        assert b'database="table:acct",container="cities"' in metrics.body


async def test_a_cosmos_table_is_shown_as_ranges_of_hashes_with_readable_keys(tmp_path: Path) -> None:
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        table = await assembly.services.tables.create_table("acct", "Cities", kind="cosmos")
        await fill(table, ["Aarhus"])
        shown = await Operator(assembly).get("partitions", ASKED)
        assert shown["partitions"][0]["largest"][0]["partition_key"] == ["Aarhus"]
        assert "start_key" not in shown["partitions"][0]


async def test_rising_keys_are_said_to_be_a_hotspot_at_the_end_of_the_line(tmp_path: Path) -> None:
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        table = await assembly.services.tables.create_table("acct", "Cities", kind="storage")
        names = [f"2026-11-16T{number:05}" for number in range(400)]
        load = assembly.services.load
        for name in names:
            await table.get(name, "r")
        await load.look()
        (partition,) = (await Operator(assembly).get("partitions", ASKED))["partitions"]
        assert partition["drift"] == "rising"
        assert "upper end of the line" in partition["says"]
        assert partition["ru_per_second"] > 0
        assert "hotspot, keys rising" in _load_mark(partition)


async def test_a_table_that_is_not_there_is_said_not_to_be(tmp_path: Path) -> None:
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        operator = Operator(assembly)
        assert (await operator.ask("GET", "partitions", query=ASKED)).status == 404
        assert (await operator.ask("GET", "partitions", query="table=Cities")).status == 400


@pytest.mark.parametrize(
    ("hot", "drift", "mark"),
    [(False, "none", "-"), (True, "none", "HOT"), (True, "falling", "HOT, hotspot, keys falling")],
)
def test_the_mark_of_a_range_tells_its_load(hot: bool, drift: str, mark: str) -> None:
    assert _load_mark({"hot": hot, "drift": drift}) == mark

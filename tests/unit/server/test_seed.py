"""Seed files: what they may say, and how a mistake in them is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asterism.apis.nosql.seed import SeedDatabase
from asterism.models.documents.pages import range_scope, scan_items
from asterism.partitioning.key_range import FULL
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig, StartRefused
from asterism.server.data_directory import DataDirectory
from asterism.server.doors import DOORS
from asterism.server.seed import apply_seed, read_seed
from asterism.throughput.budgets import Autoscale, Manual
from asterism.values.json.text import loads

SEEDS = [door.seed for door in DOORS if door.seed is not None]


def read_databases(file: Path) -> list[SeedDatabase]:
    ((_, databases),) = read_seed(file, SEEDS)
    return databases


def write_seed(folder: Path, content: object) -> Path:
    file = folder / "seed.json"
    file.write_text(json.dumps(content))
    return file


def shop(**container: Any) -> dict[str, Any]:
    return {"databases": [{"id": "shop", "containers": [{"id": "orders", "partitionKey": "/pk", **container}]}]}


@pytest.mark.parametrize(
    ("partition_key", "kind"),
    [
        ("/a", "Hash"),
        (["/a"], "Hash"),
        (["/a", "/b"], "MultiHash"),
        ({"paths": ["/a"], "kind": "Hash", "version": 1}, "Hash"),
    ],
)
def test_a_partition_key_may_be_a_path_several_paths_or_a_definition(
    tmp_path: Path, partition_key: object, kind: str
) -> None:
    (database,) = read_databases(write_seed(tmp_path, shop(partitionKey=partition_key)))
    assert database.containers[0].properties["partitionKey"]["kind"] == kind


def test_throughput_is_manual_or_autoscale(tmp_path: Path) -> None:
    manual = read_databases(write_seed(tmp_path, shop(throughput=500)))[0].containers[0]
    autoscale = read_databases(write_seed(tmp_path, shop(autoscaleMaxThroughput=4000)))[0].containers[0]
    assert (manual.throughput, autoscale.throughput) == (Manual(500), Autoscale(4000))


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ([], "seed.json: a JSON object"),
        ({}, "seed.json: databases must be a list"),
        ({"databases": [{}]}, r"databases\[0\]: id is missing"),
        ({"databases": [{"id": "a", "collections": []}]}, r"databases\[0\]: there is no property 'collections'"),
        ({"databases": [{"id": "a", "containers": [7]}]}, r"databases\[0\].containers\[0\]: a JSON object"),
        ({"databases": [{"id": "a", "containers": [{"id": "c"}]}]}, r"containers\[0\]: partitionKey is missing"),
        (shop(items=[{"id": "1"}, {"pk": "x"}]), r"containers\[0\].items\[1\]: id is missing"),
        (shop(throughput="400"), r"containers\[0\]: throughput must be a whole number"),
        (shop(throughput=400, autoscaleMaxThroughput=1000), r"containers\[0\]: give throughput or"),
    ],
)
def test_a_mistake_names_its_place(tmp_path: Path, content: object, place: str) -> None:
    with pytest.raises(StartRefused, match=place):
        read_databases(write_seed(tmp_path, content))


def test_a_file_that_is_not_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "seed.json").write_text("{")
    with pytest.raises(StartRefused, match="not valid JSON"):
        read_databases(tmp_path / "seed.json")


async def seed_once(folder: Path, content: object) -> str:
    """Return the message for the operator."""
    directory = DataDirectory(folder)
    async with assembled(ServerConfig(), directory) as assembly:
        file = write_seed(folder, content)
        return await apply_seed(file, SEEDS, assembly.services, directory)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (shop(throughput=7), r"containers\[0\]: .*400"),
        (shop(partitionKey="pk"), r"containers\[0\]: "),
        (shop(items=[{"id": "a/b", "pk": "x"}]), r"items\[0\]: "),
    ],
)
async def test_a_refusal_by_the_database_names_its_place_too(tmp_path: Path, content: object, place: str) -> None:
    with pytest.raises(StartRefused, match=place):
        await seed_once(tmp_path, content)
    assert not DataDirectory(tmp_path).seeded_marker.exists()


# S12 of asterism/server/DESIGN.md.
async def test_a_seed_is_applied_once_and_completed_when_it_was_interrupted(tmp_path: Path) -> None:
    content = shop(items=[{"id": str(number), "pk": "a"} for number in range(50)])
    first = await seed_once(tmp_path, content)
    again = await seed_once(tmp_path, content)
    DataDirectory(tmp_path).seeded_marker.unlink()
    completed = await seed_once(tmp_path, content)
    assert first == completed
    assert first.endswith("1 databases, 1 containers, 50 items.")
    assert "not applied again" in again


@pytest.mark.parametrize("suffix", [{"kind": "hash", "path": "/id", "count": 9}, {"kind": "random", "count": 9}])
async def test_seeded_items_get_their_synthetic_keys_and_get_them_once(tmp_path: Path, suffix: object) -> None:
    rule = {"parts": ["/customer"], "suffix": suffix}
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2, "synthetic": {"/pk": rule}}
    content = shop(partitionKey=key, items=[{"id": str(number), "customer": "ada"} for number in range(20)])
    await seed_once(tmp_path, content)
    DataDirectory(tmp_path).seeded_marker.unlink()
    await seed_once(tmp_path, content)
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        store = assembly.services.documents
        container = store.container(store.database(assembly.services.account, "shop"), "orders")
        pieces = scan_items(store.services.router, container, range_scope(FULL), position=None)
        items: list[Any] = [loads(body) async for piece in pieces for _, body in piece.items]
    assert sorted(int(item["id"]) for item in items) == list(range(20))
    assert all(item["pk"].startswith("ada.") for item in items)


async def test_a_bad_rule_of_a_synthetic_key_names_its_place(tmp_path: Path) -> None:
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2, "synthetic": {"/pk": {"parts": ["/pk"]}}}
    with pytest.raises(StartRefused, match=r"containers\[0\]: .*names itself"):
        await seed_once(tmp_path, shop(partitionKey=key))

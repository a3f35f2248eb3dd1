"""`asterism export` and `asterism import` of collections: every document comes back as the bytes that it was."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from bson import DatetimeMS, Decimal128, ObjectId, Regex, encode
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymongo import MongoClient
from pymongo.database import Database
from typer.testing import CliRunner, Result

from asterism.cli.main import app
from tests.support.server import RunningServer
from tests.unit.mongo.bson_values import DOCUMENTS

Documents = dict[str, Any]
RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
DOCUMENT_COUNT = 2500


@pytest.fixture(scope="module")
def mongo(server: RunningServer) -> Iterator[MongoClient[Documents]]:
    address = f"mongodb://127.0.0.1:{server.ports['mongo']}/?replicaSet=globaldb"
    with MongoClient[Documents](address, serverSelectionTimeoutMS=30_000) as connected:
        yield connected


@pytest.fixture
def shop(mongo: MongoClient[Documents]) -> Iterator[Database[Documents]]:
    name = f"exported-{uuid.uuid4().hex[:8]}"
    yield mongo[name]
    mongo.drop_database(name)
    mongo.drop_database(f"{name}-copy")


def run(server: RunningServer, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--endpoint", server.endpoint])


def run_well(server: RunningServer, *arguments: str) -> str:
    done = run(server, *arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def bodies(database: Database[Documents], name: str) -> list[bytes]:
    return sorted(found.raw for found in database.get_collection(name, codec_options=RAW).find())


def options_of(database: Database[Documents], name: str) -> Any:
    (listed,) = database.list_collections(filter={"name": name})
    return listed["options"]


def indexes_of(database: Database[Documents], name: str) -> list[Any]:
    return [{key: value for key, value in index.items() if key != "ns"} for index in database[name].list_indexes()]


def test_a_database_comes_back_with_options_indexes_and_shard_keys(
    server: RunningServer, shop: Database[Documents], mongo: MongoClient[Documents], tmp_path: Path
) -> None:
    validator = {"$or": [{"name": {"$regex": "^a", "$options": "i"}}, {"n": {"$gte": 0}}]}
    shop.create_collection("users", validator=validator, validationLevel="moderate")
    shop.users.create_index([("n", 1), ("mail", -1)], unique=True, name="by_n")
    shop.users.create_index("seen", expireAfterSeconds=3600)
    shop.users.create_index("tags", partialFilterExpression={"n": {"$gt": 5}})
    shop.users.insert_many([{"_id": ObjectId(), "n": number} for number in range(DOCUMENT_COUNT)])
    shop.client.admin.command("shardCollection", f"{shop.name}.orders", key={"city.name": "hashed"})
    shop.orders.create_index("n")
    cities = ["Rome", "Oslo", Decimal128("1.50")]
    shop.orders.insert_many([{"_id": place, "city": {"name": cities[place % 3]}} for place in range(300)])
    shop.create_collection("adults", viewOn="users", pipeline=[{"$match": {"n": {"$gt": 17}}}])
    file, copy = tmp_path / "shop.jsonl", mongo[f"{shop.name}-copy"]

    shown = run_well(server, "export", shop.name, "--to", str(file))
    assert f"{shop.name}/users: 2,500 items exported." in shown
    shown = run_well(server, "import", str(file), "--database", copy.name)
    assert f"{copy.name}/orders: 300 items imported." in shown

    assert sorted(copy.list_collection_names()) == sorted(shop.list_collection_names())
    for name in ("users", "orders"):
        assert bodies(copy, name) == bodies(shop, name)
        assert indexes_of(copy, name) == indexes_of(shop, name)
    for name in ("users", "orders", "adults"):
        assert options_of(copy, name) == options_of(shop, name)
    asked = {"customAction": "GetCollection", "collection": "orders"}
    assert copy.command(asked)["shardKeyDefinition"] == shop.command(asked)["shardKeyDefinition"]
    assert copy.adults.count_documents({}) == DOCUMENT_COUNT - 18


@given(documents=st.lists(DOCUMENTS, max_size=40))
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_documents_of_every_type_come_back_byte_by_byte(
    server: RunningServer,
    shop: Database[Documents],
    mongo: MongoClient[Documents],
    tmp_path: Path,
    documents: list[Documents],
) -> None:
    name = f"c{uuid.uuid4().hex[:8]}"
    kept = shop.get_collection(name, codec_options=RAW)
    kept.insert_one(RawBSONDocument(encode({"_id": DatetimeMS(-(2**60)), "r": Regex("a", "i")})))
    raw = [encode({"_id": place, **document}) for place, document in enumerate(documents)]
    if raw:
        kept.insert_many([RawBSONDocument(body) for body in raw])
    file, copy = tmp_path / "all.jsonl", mongo[f"{shop.name}-copy"]
    run_well(server, "export", shop.name, name, "--to", str(file))
    run_well(server, "import", str(file), "--database", copy.name)
    assert bodies(copy, name) == bodies(shop, name)
    assert set(raw) <= set(bodies(copy, name))


def test_an_import_can_be_repeated_and_renamed(
    server: RunningServer, shop: Database[Documents], tmp_path: Path
) -> None:
    shop.client.admin.command("shardCollection", f"{shop.name}.orders", key={"city": "hashed"})
    shop.orders.insert_many([{"_id": place, "city": f"c{place % 4}", "n": 1} for place in range(50)])
    file = tmp_path / "orders.jsonl"
    before = bodies(shop, "orders")
    run_well(server, "export", f"mongo:{shop.name}", "orders", "--to", str(file))
    shop.orders.update_many({"_id": {"$lt": 20}}, {"$set": {"n": 2}})
    shop.orders.delete_many({"_id": {"$gte": 40}})
    run_well(server, "import", str(file))
    assert bodies(shop, "orders") == before
    done = json.loads(run_well(server, "import", str(file), "--container", "copy", "--format", "json"))
    assert done == {"containers": [{"database": shop.name, "container": "copy", "items": 50}]}
    assert bodies(shop, "copy") == before
    shop.plain.insert_one({"_id": 1})
    refused = run(server, "import", str(file), "--container", "plain")
    assert "no shard key" in str(refused.exception)


def test_containers_come_first_where_both_have_a_name(
    server: RunningServer, shop: Database[Documents], client: CosmosClient, tmp_path: Path
) -> None:
    shop.users.insert_one({"_id": 1})
    made = client.create_database(shop.name)
    try:
        made.create_container("users", PartitionKey("/pk")).create_item({"id": "item", "pk": 1})
        file = tmp_path / "users.jsonl"
        run_well(server, "export", shop.name, "--to", str(file))
        assert "asterism_container" in file.read_text()
        run_well(server, "export", f"mongo:{shop.name}", "--to", str(file))
        assert "asterism_collection" in file.read_text()
    finally:
        client.delete_database(made)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"asterism_document": "!"}', "no document of BSON"),
        ('{"asterism_document": "AAAA"}', "no document of BSON"),
        ('{"id": "item"}', "items belong to containers"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(
    server: RunningServer, shop: Database[Documents], tmp_path: Path, line: str, problem: str
) -> None:
    shop.users.insert_one({"_id": 1})
    file = tmp_path / "damaged.jsonl"
    run_well(server, "export", shop.name, "--to", str(file))
    file.write_text(f"{file.read_text()}{line}\n")
    failed = run(server, "import", str(file), "--database", f"{shop.name}-copy")
    assert problem in str(failed.exception)
    assert "line 3" in str(failed.exception)

"""Every command with values of every type in each of its fields: answered with a code that says why, never code 1."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.datetime_ms import DatetimeMS

from asterism.apis.mongo.arguments import GENERAL_FIELDS
from asterism.apis.mongo.table import COMMANDS
from asterism.languages.mongo.expressions.tables import collect_operators
from asterism.languages.mongo.stages.accumulators import ACCUMULATORS
from asterism.languages.mongo.stages.table import STAGES as STAGE_ROWS
from tests.support.mongo_messages import RawClient, op_msg
from tests.support.server import RunningServer, running_server

VALUES: list[Any] = [
    1, 0, -1, Int64(2**62), Int64(-(2**63)), 1.5, -0.0, float("nan"), float("inf"), Decimal128("1.5"),
    Decimal128("NaN"), Decimal128("-Infinity"), Decimal128("1E+6000"), True, False, None, "", "text", "$x", "a.b", ".",
    "\0", "\ud7ff", [], [1], [None], ["a"], [{}], [[]], [{"a": 1}], {}, {"a": 1}, {"": 1}, {"$x": 1}, {"a.b": {}},
    {"a": {"$gt": Code("x")}}, b"", Binary(b"abc", 4), Binary(bytes(16), 4), ObjectId(), DatetimeMS(0),
    DatetimeMS(2**62), Timestamp(1, 1), Regex("a("), Regex("a", "i"), Code("x"), Code("x", {"y": 1}), MinKey(),
    MaxKey(), DBRef("c", 1), {"locale": 5}, {"locale": "en", "strength": float("nan")}, {"batchSize": "x"},
]  # fmt: skip
# Values with which a command is likely to come as far as the field in question.
SENSIBLE: dict[str, Any] = {
    "filter": {}, "query": {}, "q": {}, "pipeline": [], "cursor": {}, "documents": [{"_id": 1}], "key": "a",
    "updates": [{"q": {}, "u": {"$set": {"a": 1}}}], "deletes": [{"q": {}, "limit": 1}], "update": {"$set": {"a": 1}},
    "indexes": [{"key": {"a": 1}, "name": "a_1"}], "index": "a_1", "collection": "c", "to": "d.e", "roles": [],
    "pwd": "p", "privileges": [], "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "fuzz.c"}], "cursors": [],
    "mode": "off", "map": Code("function() {}"), "reduce": Code("function() {}"), "out": {"inline": 1},
}  # fmt: skip
# They end the server or the login, make commands fail, or hold all writes back.
LEFT_OUT = {"shutdown", "configureFailPoint", "logout", "fsync"}
NAMES = sorted({command.name for command in COMMANDS.values()} - LEFT_OUT)
PARTS: list[tuple[str, str, dict[str, Any]]] = [
    # A command, the field that holds the part, and the fields of the part.
    ("update", "updates", {"q": {}, "u": {"$set": {"a": 1}}, "multi": False, "upsert": False, "collation": {},
                           "arrayFilters": [], "hint": {}, "c": {}, "sort": {}}),
    ("delete", "deletes", {"q": {}, "limit": 1, "collation": {}, "hint": {}}),
    ("createIndexes", "indexes", {"key": {"a": 1}, "name": "x", "unique": True, "sparse": True, "hidden": False,
                                  "expireAfterSeconds": 5, "partialFilterExpression": {}, "collation": {},
                                  "wildcardProjection": {}, "weights": {}, "v": 2, "background": True}),
    ("bulkWrite", "ops", {"update": 0, "filter": {}, "updateMods": {"$set": {"a": 1}}, "multi": False,
                          "upsert": False, "arrayFilters": [], "collation": {}, "hint": {}}),
]  # fmt: skip
STAGES: dict[str, Any] = {
    "$match": {}, "$project": {"a": 1}, "$group": {"_id": 1}, "$sort": {"a": 1}, "$limit": 1, "$skip": 1,
    "$unwind": "$a", "$lookup": {"from": "c", "localField": "a", "foreignField": "b", "as": "x"}, "$count": "n",
    "$facet": {"a": []}, "$bucket": {"groupBy": "$a", "boundaries": [1, 2]}, "$sample": {"size": 1},
    "$addFields": {"a": 1}, "$replaceRoot": {"newRoot": {}}, "$graphLookup": {}, "$unionWith": "c", "$redact": "$$KEEP",
    "$bucketAuto": {"groupBy": "$a", "buckets": 2}, "$sortByCount": "$a", "$collStats": {}, "$indexStats": {},
    "$setWindowFields": {"output": {}}, "$densify": {}, "$fill": {"output": {}}, "$geoNear": {}, "$out": "e",
    "$merge": "e", "$documents": [], "$changeStream": {}, "$unset": "a", "$currentOp": {}, "$planCacheStats": {},
}  # fmt: skip
COLLATION_FIELDS = ("locale", "strength", "caseLevel", "caseFirst", "numericOrdering", "alternate", "maxVariable",
                    "backwards", "normalization")  # fmt: skip


def is_encodable(value: Any) -> bool:
    try:
        op_msg({"x": value})
    except Exception:
        return False
    return True


ENCODABLE = [value for value in VALUES if is_encodable(value)]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    data = tmp_path_factory.mktemp("fuzzed") / "data"
    with running_server(data, "--no-throttle", doors=("mongo",), alone=True) as server:
        yield server
        _, log = server.end()
        assert "Traceback" not in log, log[-4000:]


@pytest.fixture
def raw(fuzzed: RunningServer) -> Iterator[RawClient]:
    with RawClient(fuzzed.ports["mongo"]) as connected:
        yield connected


def database_of(name: str) -> str:
    return "admin" if COMMANDS[name].admin_only else "fuzz"


def base_of(name: str) -> dict[str, Any]:
    """Return a command with the fields that it must have."""
    command = COMMANDS[name]
    body: dict[str, Any] = {name: "c"}
    for field, rule in command.fields.items():
        if rule.is_required or field in ("cursor", "pwd", "update"):
            body[field] = SENSIBLE.get(field, 1)
    return body


def check(raw: RawClient, body: dict[str, Any], database: str) -> None:
    if "maxTimeMS" not in body:
        # Nothing here has to wait for long.
        body = {**body, "maxTimeMS": 5000}
    answer = raw.command({**body, "$db": database})
    assert "ok" in answer
    assert answer.get("code") != 1, (body, answer.get("errmsg"))
    for failure in answer.get("writeErrors", ()):
        assert failure["code"] != 1, (body, failure)


@pytest.mark.parametrize("name", NAMES)
def test_no_value_in_a_field_of_a_command_makes_the_server_fail(raw: RawClient, name: str) -> None:
    command, base = COMMANDS[name], base_of(name)
    raw.command({"insert": "c", "documents": [{"a": 1}], "$db": "fuzz"})
    for field in (name, *command.fields):
        for value in ENCODABLE:
            check(raw, {**base, field: value}, database_of(name))
    assert raw.command({"ping": 1})["ok"] == 1.0


@pytest.mark.parametrize("field", sorted(GENERAL_FIELDS | {"$readPreference", "$clusterTime", "$db"}))
def test_no_value_in_a_general_field_makes_the_server_fail(raw: RawClient, field: str) -> None:
    for name in ("find", "insert", "ping", "commitTransaction", "aggregate", "getMore"):
        for value in ENCODABLE:
            body = {**base_of(name), field: value}
            answer = raw.command({**body, "$db": value} if field == "$db" else {**body, "$db": database_of(name)})
            assert answer.get("code") != 1, (body, answer)
    assert raw.command({"ping": 1})["ok"] == 1.0


@pytest.mark.parametrize(("name", "array", "part"), PARTS, ids=[part[0] for part in PARTS])
def test_no_value_in_a_part_of_a_command_makes_the_server_fail(
    raw: RawClient, name: str, array: str, part: dict[str, Any]
) -> None:
    for field in part:
        for value in ENCODABLE:
            check(raw, {**base_of(name), array: [{**part, field: value}]}, database_of(name))


@pytest.mark.parametrize("stage", sorted({*STAGES, *STAGE_ROWS}))
def test_no_value_in_a_stage_makes_the_server_fail(raw: RawClient, stage: str) -> None:
    options = STAGES.get(stage)
    for value in ENCODABLE:
        pipelines = [[{stage: value}]]
        if isinstance(options, dict):
            pipelines += [[{stage: {**options, field: value}}] for field in (*options, "other")]
        for pipeline in pipelines:
            for target in ("c", 1):
                check(raw, {"aggregate": target, "pipeline": pipeline, "cursor": {}}, "fuzz")


def test_no_value_in_a_collation_makes_the_server_fail(raw: RawClient) -> None:
    for field in COLLATION_FIELDS:
        for value in ENCODABLE:
            collation = {"locale": "en", field: value}
            check(raw, {"find": "c", "filter": {"a": "x"}, "collation": collation}, "fuzz")
            check(raw, {"create": "collated", "collation": collation}, "fuzz")
            check(raw, {"drop": "collated"}, "fuzz")


FILTERS = (
    "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$not", "$exists", "$type", "$mod", "$regex", "$options",
    "$all", "$elemMatch", "$size", "$bitsAllSet", "$bitsAnyClear", "$geoWithin", "$geoIntersects", "$near",
    "$nearSphere", "$jsonSchema",
)  # fmt: skip
TOP_FILTERS = ("$and", "$or", "$nor", "$expr", "$jsonSchema", "$comment", "$where", "$text", "$sampleRate")
UPDATES = (
    "$set", "$unset", "$inc", "$mul", "$min", "$max", "$rename", "$currentDate", "$setOnInsert", "$push", "$pull",
    "$pullAll", "$pop", "$addToSet", "$bit",
)  # fmt: skip
PUSH_FIELDS = ("$each", "$slice", "$sort", "$position")


def arguments_of(chosen: random.Random) -> Iterator[Any]:
    yield from chosen.sample(ENCODABLE, 15)
    for _ in range(3):
        yield [chosen.choice(ENCODABLE), chosen.choice(ENCODABLE)]
        yield [chosen.choice(ENCODABLE), chosen.choice(ENCODABLE), chosen.choice(ENCODABLE)]
    for value in chosen.sample(ENCODABLE, 5):
        yield {"input": value, "date": value, "timezone": value, "regex": value, "as": "x", "in": value}
        yield {"startDate": DatetimeMS(0), "endDate": DatetimeMS(1), "unit": value, "timezone": value, "amount": value}


@pytest.mark.parametrize("seed", range(3))
def test_no_argument_of_an_expression_makes_the_server_fail(raw: RawClient, seed: int) -> None:
    chosen = random.Random(seed)
    for name in sorted(operator.name for operator in collect_operators())[seed::3]:
        for argument in arguments_of(chosen):
            pipeline = [{"$project": {"x": {name: argument}}}]
            check(raw, {"aggregate": "c", "pipeline": pipeline, "cursor": {}}, "fuzz")


def test_no_argument_of_an_accumulator_makes_the_server_fail(raw: RawClient) -> None:
    chosen = random.Random(1)
    for name in sorted(ACCUMULATORS):
        for value in chosen.sample(ENCODABLE, 20):
            for argument in (value, {"n": value, "input": "$a"}, {"input": value, "n": 1, "sortBy": {"a": 1}}):
                pipeline = [{"$group": {"_id": None, "x": {name: argument}}}]
                check(raw, {"aggregate": "c", "pipeline": pipeline, "cursor": {}}, "fuzz")


def test_no_argument_of_a_filter_makes_the_server_fail(raw: RawClient) -> None:
    for value in ENCODABLE:
        for name in FILTERS:
            check(raw, {"find": "c", "filter": {"a": {name: value}}}, "fuzz")
        for name in TOP_FILTERS:
            check(raw, {"find": "c", "filter": {name: value}}, "fuzz")
        check(raw, {"find": "c", "filter": {"a": value, "b.c": value}, "sort": {"a": 1}}, "fuzz")


def test_no_argument_of_an_update_makes_the_server_fail(raw: RawClient) -> None:
    for value in random.Random(2).sample(ENCODABLE, 25):
        updates: list[Any] = [value, [value], [{"$set": {"a": value}}]]
        updates += [{name: value} for name in UPDATES] + [{name: {"a": value, "b.$[x].c": value}} for name in UPDATES]
        updates += [{"$push": {"l": {"$each": [1], field: value}}} for field in PUSH_FIELDS]
        for update in updates:
            statement = {"q": {}, "u": update, "upsert": True, "arrayFilters": [{"x": value}]}
            check(raw, {"update": "u", "updates": [statement]}, "fuzz")
            del statement["arrayFilters"]
            check(raw, {"update": "u", "updates": [statement]}, "fuzz")
        raw.command({"drop": "u", "$db": "fuzz"})

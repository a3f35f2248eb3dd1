"""Operators that fit nowhere else: chance, metadata, sizes, hashes."""

from __future__ import annotations

import random
from typing import Any

from asterism.languages.mongo.expressions.hashed_key import hashed_key
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables, positional
from asterism.languages.mongo.expressions.widths import plain_decimal, width_of
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.codec import encode
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import MISSING, Missing

EXPECTED_OBJECT = 10065
# The variable under which a stage passes what it knows about a document beside its fields.
META_VARIABLE = "$meta"
# The field in which documents of a pipeline carry it. No client can write such a name.
METADATA_FIELD = "\x00metadata"
META_FIELDS = frozenset(
    {
        "geoNearDistance",
        "geoNearPoint",
        "indexKey",
        "randVal",
        "recordId",
        "score",
        "scoreDetails",
        "searchHighlights",
        "searchScore",
        "searchScoreDetails",
        "searchSequenceToken",
        "sortKey",
        "stream",
        "textScore",
        "timeseriesBucketMaxTime",
        "timeseriesBucketMinTime",
        "vectorSearchScore",
    }
)


def _compile_rand(specification: Any, context: CompileContext) -> Evaluate:
    if not isinstance(specification, dict | list):
        raise MongoFailure(EXPECTED_OBJECT, f"invalid parameter: expected an object ($rand), found {specification!r}")
    if specification:
        raise MongoFailure(3040501, "$rand does not currently accept arguments")
    return lambda document, variables: random.random()


def _compile_sample_rate(specification: Any, context: CompileContext) -> Evaluate:
    if width_of(specification) is None:
        raise MongoFailure(2, "argument to $sampleRate must be a numeric type")
    rate = plain_decimal(specification)
    if rate.is_nan() or not 0 <= rate <= 1:
        raise MongoFailure(2, "numeric argument to $sampleRate must be in [0, 1]")
    return lambda document, variables: random.random() < rate


def _compile_meta(specification: Any, context: CompileContext) -> Evaluate:
    if type(specification) is not str:
        raise MongoFailure(17307, "$meta only supports string arguments")
    if specification not in META_FIELDS:
        raise MongoFailure(17308, f"Unsupported argument to $meta: {specification}")

    def evaluate(document: Any, variables: Variables) -> Any:
        carried = document.get(METADATA_FIELD) if isinstance(document, dict) else None
        return (carried or variables.get(META_VARIABLE, {})).get(specification, MISSING)

    return evaluate


def _bson_size(value: Any) -> int:
    if not isinstance(value, dict):
        raise MongoFailure(31393, f"$bsonSize requires a document input, found: {type_name(value)}")
    return len(encode(value))


def _binary_size(value: Any) -> int:
    if type(value) is str:
        return len(value.encode())
    if not isinstance(value, bytes):
        raise MongoFailure(51276, f"$binarySize requires a string or BinData argument, found: {type_name(value)}")
    return len(value)


def _hash(value: Any) -> Any:
    return hashed_key(None if type(value) is Missing else value)


OPERATORS: tuple[Operator, ...] = (
    Operator("$rand", _compile_rand, is_pure=False),
    Operator("$sampleRate", _compile_sample_rate, is_pure=False),
    Operator("$meta", _compile_meta, is_pure=False),
    positional("$bsonSize", _bson_size, 1, 1, null_if_null=True),
    positional("$binarySize", _binary_size, 1, 1, null_if_null=True),
    positional("$toHashedIndexKey", _hash, 1, 1),
)

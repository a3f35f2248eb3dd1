"""Records of the program around documents of clients: the limit for nesting is the documents'."""

from __future__ import annotations

import pytest

from asterism.models.collections.records import CollectionRecord
from asterism.values.bson.codec import InvalidBson, decode, decode_record, encode
from asterism.values.bson.slow_decoder import NESTING_MAX
from asterism.values.bson.types import Document


def nested(levels: int, innermost: Document) -> Document:
    document = innermost
    for _ in range(levels):
        document = {"level": document}
    return document


@pytest.mark.parametrize("innermost", [{}, {"$ref": "c", "$id": 1}], ids=["fast decoder", "slow decoder"])
def test_a_record_takes_in_a_document_of_the_greatest_depth(innermost: Document) -> None:
    deepest = nested(NESTING_MAX, innermost)
    assert decode(encode(deepest)) == deepest
    record = {"a": {"b": [deepest]}}
    assert decode_record(encode(record)) == record
    with pytest.raises(InvalidBson):
        decode(encode(record))


def test_a_collection_with_the_deepest_validator_is_read_back() -> None:
    options = {"validator": nested(NESTING_MAX - 1, {"n": 1})}
    record = CollectionRecord("shop", "users", 1, bytes(16), options)
    assert CollectionRecord.from_text("shop", "users", record.to_text()).options == options

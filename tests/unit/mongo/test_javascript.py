"""Values of BSON on their way to scripts and back, and what may run scripts."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.apis.mongo.javascript import MARK, pack, unpack
from asterism.languages.mongo.expressions.compile import compile_expression, new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import MATCH_FEATURES, compile_filter
from asterism.languages.mongo.javascript import runs_javascript
from asterism.values.bson.order import equal
from asterism.values.bson.types import (
    MISSING,
    Binary,
    DatetimeMS,
    Decimal128,
    Int64,
    MaxKey,
    ObjectId,
    Regex,
    Timestamp,
)

pytestmark = pytest.mark.pure

CONTEXT = new_context(DatetimeMS(0), Timestamp(1, 1))


@pytest.mark.parametrize(
    "value",
    [
        None, True, "text", 2.5, float("inf"), float("nan"), Int64(2**60), Decimal128("1.50"), DatetimeMS(-5),
        ObjectId(bytes(12)), Regex("a.b", "im"), Binary(b"x", 5), b"bytes", Timestamp(1, 2), MaxKey(),
        {"a": [1.0, {"b": "c"}], "d": {}}, [],
    ],
)  # fmt: skip
def test_values_come_back_as_they_were(value: Any) -> None:
    assert equal(unpack(pack(value)), value)


def test_integers_that_fit_become_doubles_and_missing_values_null() -> None:
    assert (unpack(pack(7)), type(unpack(pack(7)))) == (7.0, float)
    assert type(unpack(pack(Int64(7)))) is float
    assert unpack(pack(MISSING)) is None


def test_marks_that_a_script_has_made_up_are_refused() -> None:
    wrong: list[Any] = [[], ["?"], ["i", "short"], ["x", "AAAA"], 5, ["t"]]
    for content in wrong:
        with pytest.raises(MongoFailure) as refused:
            unpack({MARK: content})
        assert refused.value.code == 139


def test_scripts_are_refused_where_there_is_no_interpreter() -> None:
    function = {"$function": {"body": "function () {}", "args": [], "lang": "js"}}
    for specification, code in (
        (function, 2),
        ({"$function": 5}, 4660800),
        ({"$function": {"args": [], "lang": "js"}}, 4660802),
        ({"$function": {**function["$function"], "lang": "lua"}}, 4660804),
    ):
        with pytest.raises(MongoFailure) as refused:
            compile_expression(specification, CONTEXT)
        assert refused.value.code == code
    for options in ({}, {"features": MATCH_FEATURES}):
        with pytest.raises(MongoFailure) as not_here:
            compile_filter({"$where": "true"}, CONTEXT, **options)
        assert not_here.value.code == 2


def test_stages_that_may_call_scripts_are_known() -> None:
    assert runs_javascript([{"$project": {"a": {"$add": [1, {"$function": {}}]}}}])
    assert not runs_javascript([{"$project": {"a": "$function"}}])

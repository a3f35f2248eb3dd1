"""Triggers: before an operation, where they may change the written item, and after it."""

from __future__ import annotations

import json

import pytest

from asterism.scripts.results import ScriptFailed, TriggerSucceeded
from asterism.scripts.runtime import TriggerKind
from tests.unit.scripts.dict_operations import DictOperations, ScriptBench

STAMP = """function stamp() {
    var request = getContext().getRequest(), item = request.getBody();
    item.id = item.id + '!';
    item.on = request.getOperationType();
    request.setBody(item);
}"""


async def test_a_pre_trigger_may_change_the_written_item(bench: ScriptBench) -> None:
    result = await bench.trigger(STAMP, TriggerKind.PRE, {"id": "a"})
    assert result == TriggerSucceeded(b'{"id":"a!","on":"Create"}', None, "")


async def test_a_change_of_the_body_itself_counts_too(bench: ScriptBench) -> None:
    result = await bench.trigger("function () { __.request.getBody().n = 1; }", TriggerKind.PRE, {"id": "a"})
    assert isinstance(result, TriggerSucceeded)
    assert json.loads(result.request_body) == {"id": "a", "n": 1}


async def test_a_pre_trigger_has_no_response(bench: ScriptBench) -> None:
    body = "function () { __.request.setBody({none: __.response === undefined}); getContext().getResponse(); }"
    result = await bench.trigger(body, TriggerKind.PRE, {})
    assert isinstance(result, ScriptFailed)
    assert "no response in a pre-trigger" in result.message


async def test_a_post_trigger_sees_request_and_response(bench: ScriptBench) -> None:
    body = "function () { __.response.setBody([__.request.getBody().id, __.response.getBody().id]); }"
    result = await bench.trigger(body, TriggerKind.POST, {"id": "a"}, {"id": "b"})
    assert isinstance(result, TriggerSucceeded)
    assert result.response_body == b'["a","b"]'


async def test_a_post_trigger_cannot_change_the_request(bench: ScriptBench) -> None:
    result = await bench.trigger("function () { __.request.setBody({}); }", TriggerKind.POST, {"id": "a"}, {})
    assert isinstance(result, ScriptFailed)


async def test_a_trigger_works_on_the_same_data(bench: ScriptBench) -> None:
    bench.operations = DictOperations({"id": "meta", "count": 1})
    body = """function () {
        var collection = getContext().getCollection();
        collection.readDocument(collection.getAltLink() + '/docs/meta', {}, function (e, meta) {
            meta.count += 1;
            if (!collection.replaceDocument(meta._self, meta)) throw new Error('not accepted');
        });
    }"""
    result = await bench.trigger(body, TriggerKind.POST, {"id": "a"}, {"id": "a"})
    assert isinstance(result, TriggerSucceeded)
    assert bench.operations.items["meta"]["count"] == 2


async def test_the_document_of_the_request_is_known_by_its_self_link(bench: ScriptBench) -> None:
    bench.operations = DictOperations({"id": "a", "n": 1})
    request = dict(bench.operations.items["a"])
    body = "function () { __.readDocument(__.request.getBody()._self, function (e, d) { __.request.setBody(d); }); }"
    result = await bench.trigger(body, TriggerKind.PRE, request)
    assert isinstance(result, TriggerSucceeded)
    assert json.loads(result.request_body) == request


@pytest.mark.parametrize("kind", list(TriggerKind))
async def test_an_exception_in_a_trigger_rolls_back(bench: ScriptBench, kind: TriggerKind) -> None:
    body = (
        "function () { __.createDocument(__.getSelfLink(), {id: 'x'}, function () { throw new Error(403, 'no'); }); }"
    )
    result = await bench.trigger(body, kind, {}, {})
    assert isinstance(result, ScriptFailed)
    assert (result.number, bench.operations.items, bench.operations.rollback_count) == (403, {}, 1)

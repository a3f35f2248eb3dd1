"""Runs from beginning to end: bodies, responses, errors, logs, promises."""

from __future__ import annotations

import asyncio
import json

import pytest

from asterism.scripts.limits import ScriptLimits
from asterism.scripts.results import FailureKind, ScriptFailed, ScriptSucceeded
from asterism.scripts.runtime import ScriptRuntime
from tests.unit.scripts.dict_operations import SCOPE, DictOperations, ScriptBench, script


@pytest.mark.parametrize(
    "body",
    [
        "function (x) { getContext().getResponse().setBody(x); }",
        "function named(x) { __.response.setBody(x); };\n",
        "// says\n function named(x) { help(x); }\n function help(x) { __response.setBody(x); }",
        "(x) => __.response.setBody(x)",
        "async function (x) { __.response.setBody(x); }",
        "function (x) { getContext().getResponse().setValue('Body', x); }",
    ],
)
async def test_a_body_may_be_written_in_any_usual_way(bench: ScriptBench, body: str) -> None:
    assert await bench.run(body, {"n": 1}) == ScriptSucceeded(b'{"n":1}', "")


async def test_a_response_that_was_not_set_is_empty_text(bench: ScriptBench) -> None:
    assert await bench.answer("") == ""


async def test_a_response_is_read_when_the_script_ends(bench: ScriptBench) -> None:
    assert await bench.answer("var o = {n: 1}; reply(o); o.n = 2;") == {"n": 2}


async def test_appended_numbers_are_written_one_after_the_other(bench: ScriptBench) -> None:
    inside = "for (var i = 0; i < 10; i++) getContext().getResponse().appendValue('Body', i);"
    assert await bench.answer(inside) == "0123456789"


async def test_a_set_response_can_be_read_back_and_appended_to(bench: ScriptBench) -> None:
    assert await bench.answer("reply('a'); __.response.appendBody('b'); reply(__.response.getBody() + 'c');") == "abc"


async def test_a_response_knows_the_quotas(bench: ScriptBench) -> None:
    inside = "var r = __.response; reply([r.getResourceQuotaCurrentUsage(), r.getMaxResourceQuota()]);"
    assert await bench.answer(inside) == [SCOPE.quota_usage, SCOPE.quota_max]


async def test_only_known_properties_can_be_set(bench: ScriptBench) -> None:
    inside = """var codes = [];
        ['Other', 'MaxResourceQuota'].forEach(function (name) {
            try { __.response.setValue(name, 1); } catch (e) { codes.push(e.number); }
        });
        reply([codes, __.request.setBody === undefined]);"""
    assert await bench.answer(inside) == [[400, 403], True]


async def test_text_of_any_characters_survives(bench: ScriptBench) -> None:
    text = 'é\0"\\\n\u2028😀' * 3
    assert await bench.answer("reply([first, first.length]);", text) == [text, len(text.encode("utf-16-le")) // 2]


async def test_numbers_survive(bench: ScriptBench) -> None:
    assert await bench.answer("reply(first);", [2**31, 2**53, -0.5, 1e300]) == [2**31, 2**53, -0.5, 1e300]


@pytest.mark.parametrize(
    ("thrown", "message", "number"),
    [
        ("new Error('oops')", "Error: oops", 0),
        ("new Error(404, 'gone')", "Error: gone", 404),
        ("new TypeError('bad')", "TypeError: bad", 0),
        ("'text'", "text", 0),
        ("{a: 1}", '{"a":1}', 0),
        ("undefined", "undefined", 0),
        ("null", "null", 0),
        ("{toJSON: function () { throw 1; }}", "an exception that has no text", 0),
        ("Symbol('s')", "Symbol(s)", 0),
    ],
)
async def test_an_exception_rolls_back_and_is_reported(
    bench: ScriptBench, thrown: str, message: str, number: int
) -> None:
    inside = f"collection.createDocument(link, {{id: 'a'}}, function () {{ throw {thrown}; }});"
    failed = await bench.failure(inside)
    assert failed.message.startswith("Encountered exception while executing Javascript. Exception = " + message)
    assert (failed.kind, failed.status, failed.number) == (FailureKind.EXCEPTION, 400, number)
    assert bench.operations.items == {}
    assert bench.operations.rollback_count == 1


async def test_a_run_that_succeeds_is_not_rolled_back(bench: ScriptBench) -> None:
    await bench.answer("collection.createDocument(link, {id: 'a'});")
    assert (list(bench.operations.items), bench.operations.rollback_count) == (["a"], 0)


async def test_a_stack_shows_the_script_and_not_the_prelude(bench: ScriptBench) -> None:
    failed = await bench.failure("function deep() { throw new Error(400, 'x'); } deep();")
    assert failed.message.split("\r\n")[1].startswith("Stack trace:     at deep")
    assert "at start" not in failed.message


@pytest.mark.parametrize("body", ["function (", "function () { var x = ; }", "5", "", "while", "}{"])
async def test_a_body_that_is_not_a_function_fails_when_it_is_run(bench: ScriptBench, body: str) -> None:
    result = await bench.run(body)
    assert isinstance(result, ScriptFailed)
    assert (result.kind, result.status) == (FailureKind.SYNTAX, 400)


async def test_an_abort_cannot_be_caught(bench: ScriptBench) -> None:
    inside = (
        "try { getContext().abort(new Error(403, 'no')); } catch (e) {} collection.createDocument(link, {id: 'a'});"
    )
    failed = await bench.failure(inside)
    assert failed.number == 403
    assert bench.operations.items == {}


async def test_promises_run_between_operations(bench: ScriptBench) -> None:
    inside = """function create(id) {
            return new Promise(function (done, fail) {
                collection.createDocument(link, {id: id}, function (e, d) { e ? fail(e) : done(d.id); });
            });
        }
        (async function () { reply([await create('a'), await create('b')]); })();"""
    assert await bench.answer(inside) == ["a", "b"]


async def test_a_rejected_promise_that_the_script_returns_fails_the_run(bench: ScriptBench) -> None:
    result = await bench.run("async function () { await 1; throw new Error(409, 'late'); }")
    assert isinstance(result, ScriptFailed)
    assert result.number == 409


@pytest.mark.parametrize(
    ("call", "log"),
    [
        ("console.log('The value of %s is %s.', 'x', 1)", "The value of x is 1."),
        ("console.log('100%'); console.log(5)", "100%5"),
        ("console.log('%s %% %s', {}, null)", "[object Object] % null"),
        ("console.log('%s')", "%s"),
    ],
)
async def test_a_log_is_kept_on_request(bench: ScriptBench, call: str, log: str) -> None:
    result = await bench.run(script(call + ";"), is_logging=True)
    assert result == ScriptSucceeded(b'""', log)


async def test_no_log_is_kept_without_a_request(bench: ScriptBench) -> None:
    assert await bench.run(script("console.log('x');")) == ScriptSucceeded(b'""', "")


async def test_a_failed_run_keeps_its_log(bench: ScriptBench) -> None:
    result = await bench.run(script("console.log('x'); throw 1;"), is_logging=True)
    assert isinstance(result, ScriptFailed)
    assert result.log == "x"


async def test_errors_may_be_subclassed(bench: ScriptBench) -> None:
    inside = """class Own extends Error { constructor(m) { super(m); this.own = 1; } }
        try { throw new Own('m'); } catch (e) { reply([e instanceof Own, e instanceof Error, e.message, e.own]); }"""
    assert await bench.answer(inside) == [True, True, "m", 1]


async def test_the_next_run_knows_nothing_of_the_last(bench: ScriptBench) -> None:
    await bench.answer("Array.prototype.map = null; JSON.stringify = null; globalThis.left = 1; ErrorCodes.X = 1;")
    inside = "reply([typeof left, typeof [].map, typeof JSON.stringify, ErrorCodes.X === undefined]);"
    assert await bench.answer(inside) == ["undefined", "function", "function", True]


async def test_a_script_reaches_nothing_outside(bench: ScriptBench) -> None:
    names = ["require", "process", "std", "os", "fetch", "XMLHttpRequest", "setTimeout", "print", "load"]
    inside = "reply(first.filter(function (name) { return typeof globalThis[name] !== 'undefined'; }));"
    assert await bench.answer(inside, names) == []


async def test_a_script_that_breaks_the_prelude_harms_itself_only(bench: ScriptBench) -> None:
    inside = "Object.defineProperty(Array.prototype, 0, {set: function () {}}); collection.createDocument(link, {});"
    await bench.run(script(inside))
    assert await bench.answer("reply(1);") == 1


async def test_runs_share_the_hosts_and_keep_apart() -> None:
    runtime = ScriptRuntime(ScriptLimits(hosts_max=2))

    async def create_number(number: int) -> object:
        operations = DictOperations()
        body = script("collection.createDocument(link, {id: String(first)}, function (e, d) { reply(d.id); });")
        result = await runtime.run_stored_procedure(body, [number], operations=operations, scope=SCOPE)
        assert isinstance(result, ScriptSucceeded)
        return json.loads(result.body)

    assert await asyncio.gather(*map(create_number, range(12))) == [str(number) for number in range(12)]
    runtime.close()


async def test_a_defect_of_the_operations_reaches_the_caller(bench: ScriptBench) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    bench.operations.before = broken
    with pytest.raises(ZeroDivisionError):
        await bench.run(script("collection.createDocument(link, {id: 'a'});"))
    bench.operations.before = lambda: None
    assert await bench.answer("reply(1);") == 1

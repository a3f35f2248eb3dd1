"""Scripts that exceed limits: each is stopped and reported, and the next one runs undisturbed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from asterism.scripts.limits import ScriptLimits
from asterism.scripts.results import FailureKind, ScriptFailed
from asterism.scripts.runtime import ScriptRuntime
from tests.unit.scripts.dict_operations import ScriptBench, kill_hosts, script


async def next_answer(bench: ScriptBench) -> object:
    """Return the answer 1 of another script on the same host, which has time enough on the busiest machine."""
    runtime = bench.runtime
    hasty, runtime._limits = runtime._limits, replace(runtime._limits, run_seconds=60.0, accept_seconds=50.0)
    try:
        return await bench.answer("reply(1);")
    finally:
        runtime._limits = hasty


@pytest.mark.parametrize(
    "inside",
    [
        "while (true);",
        "try { while (true); } catch (e) {} finally { while (true); }",
        "(async function () { while (true); })();",
        "(function again() { Promise.resolve().then(again); })();",
        "throw {toJSON: function () { while (true); }};",
        "reply({toJSON: function () { while (true); }});",
        "collection.createDocument(link, {id: 'a'}, function () { while (true); });",
        "InternalError.prototype.toString = function () { while (true); }; while (true);",
        "Object.prototype.toString = Error.prototype.toString = function () { while (true); }; while (true);",
    ],
)
async def test_a_script_without_an_end_is_stopped(hasty_bench: ScriptBench, inside: str) -> None:
    failed = await hasty_bench.failure(inside)
    assert (failed.kind, failed.status) == (FailureKind.OUT_OF_TIME, 408)
    assert (hasty_bench.operations.items, hasty_bench.operations.rollback_count) == ({}, 1)
    assert await next_answer(hasty_bench) == 1


@pytest.mark.parametrize(
    "inside",
    [
        "/(a+)+b/.test('a'.repeat(50));",
        "Array.prototype.indexOf.call({length: Math.pow(2, 53) - 1}, 1);",
    ],
)
async def test_a_built_in_without_an_end_is_stopped(hasty_bench: ScriptBench, inside: str) -> None:
    failed = await hasty_bench.failure(inside)
    assert failed.kind is FailureKind.OUT_OF_TIME
    assert await next_answer(hasty_bench) == 1


@pytest.mark.parametrize(
    "inside",
    [
        "var a = []; while (true) a.push('x'.repeat(100000) + a.length);",
        "var s = 'x'; while (true) s += s;",
        "new ArrayBuffer(1e9);",
    ],
)
async def test_a_script_that_wants_all_memory_is_stopped(cramped_bench: ScriptBench, inside: str) -> None:
    failed = await cramped_bench.failure(inside)
    assert (failed.kind, failed.status) == (FailureKind.OUT_OF_MEMORY, 400)
    assert cramped_bench.operations.rollback_count == 1
    assert await cramped_bench.answer("reply(1);") == 1


async def test_a_script_that_catches_a_full_heap_again_and_again_harms_itself_only(hasty_bench: ScriptBench) -> None:
    inside = """var keep = [];
        while (true) {
            try { keep.push({a: [{}], b: 'x'.repeat(5000) + keep.length}); } catch (e) { keep.length -= 9; }
        }"""
    await hasty_bench.failure(inside)
    assert await next_answer(hasty_bench) == 1


@pytest.mark.parametrize(
    "inside",
    [
        "(function deeper() { deeper(); })();",
        "var a = []; for (var i = 0; i < 50000; i++) a = [a]; JSON.stringify(a);",
        "var a = []; for (var i = 0; i < 50000; i++) a = [a]; reply(a);",
        "JSON.parse('['.repeat(100000));",
        "eval('('.repeat(100000));",
        "var p = {}; for (var i = 0; i < 20000; i++) p = new Proxy(p, {}); p.x;",
    ],
)
async def test_a_recursion_without_an_end_is_an_exception(bench: ScriptBench, inside: str) -> None:
    failed = await bench.failure(inside)
    assert "stack overflow" in failed.message
    assert failed.kind is FailureKind.EXCEPTION


async def test_a_recursion_that_is_caught_lets_the_script_continue(bench: ScriptBench) -> None:
    inside = "try { (function deeper() { deeper(); })(); } catch (e) { reply(e.message); }"
    assert await bench.answer(inside) == "stack overflow"


@pytest.mark.parametrize(
    "inside",
    [
        "reply('x'.repeat(3000000));",
        "var a = []; reply(a); for (var i = 0; i < 30; i++) a.push('x'.repeat(100000));",
        "for (var i = 0; i < 30; i++) __.response.appendBody('x'.repeat(100000));",
    ],
)
async def test_a_result_that_is_too_large_is_refused(bench: ScriptBench, inside: str) -> None:
    failed = await bench.failure(inside)
    assert (failed.kind, failed.status) == (FailureKind.TOO_LARGE, 413)


async def test_a_log_that_is_too_large_is_refused(bench: ScriptBench) -> None:
    result = await bench.run(script("while (true) console.log('x'.repeat(1000));"), is_logging=True)
    assert isinstance(result, ScriptFailed)
    assert result.kind is FailureKind.TOO_LARGE


async def test_near_the_end_operations_are_not_accepted_and_the_script_can_answer_where_to_resume() -> None:
    bench = ScriptBench(ScriptRuntime(ScriptLimits(run_seconds=60.0, accept_seconds=0.2)))
    bench.operations.before = lambda: time.sleep(0.02)
    inside = """var done = 0;
        (function next() {
            var isAccepted = collection.createDocument(link, {id: 'd' + done}, function () { done += 1; next(); });
            if (!isAccepted) reply({done: done});
        })();"""
    answer = await bench.answer(inside)
    assert answer == {"done": len(bench.operations.items)}
    bench.runtime.close()


async def test_too_much_waiting_text_is_not_accepted() -> None:
    bench = ScriptBench(ScriptRuntime(ScriptLimits(queued_characters_max=10_000)))
    inside = "var n = 0; while (n < 1000 && collection.createDocument(link, {t: 'x'.repeat(1000)})) n += 1; reply(n);"
    assert await bench.answer(inside) == 9
    bench.runtime.close()


async def test_operations_that_take_too_long_end_the_run(hasty_bench: ScriptBench) -> None:
    hasty_bench.operations.before = lambda: time.sleep(0.25)
    failed = await hasty_bench.failure("for (var i = 0; i < 9; i++) collection.createDocument(link, {id: 'd' + i});")
    assert failed.kind is FailureKind.OUT_OF_TIME
    assert hasty_bench.operations.items == {}


async def test_other_work_proceeds_while_a_script_runs_without_end(cramped_bench: ScriptBench) -> None:
    running = asyncio.create_task(cramped_bench.run(script("while (true);")))
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_host_that_is_killed_fails_its_run_and_is_replaced(cramped_bench: ScriptBench) -> None:
    cramped_bench.operations.before = kill_hosts
    failed = await cramped_bench.failure("collection.createDocument(link, {id: 'a'}, function () {});")
    assert failed.kind is FailureKind.OUT_OF_MEMORY
    assert cramped_bench.operations.items == {}
    assert await cramped_bench.answer("reply(1);") == 1


async def test_a_canceled_run_returns_its_host(cramped_bench: ScriptBench) -> None:
    runs = [asyncio.create_task(cramped_bench.run(script("while (true);"))) for _ in range(2)]
    await asyncio.sleep(0.2)
    for run in runs:
        run.cancel()
    await asyncio.gather(*runs, return_exceptions=True)
    assert await cramped_bench.answer("reply(1);") == 1


async def test_a_run_that_finds_no_host_is_answered_busy() -> None:
    bench = ScriptBench(ScriptRuntime(ScriptLimits(hosts_max=1, run_seconds=60.0, host_wait_seconds=0.05)))
    first = asyncio.create_task(bench.run(script("while (true);")))
    await asyncio.sleep(0.05)
    failed = await bench.failure("reply(1);")
    assert (failed.kind, failed.status) == (FailureKind.BUSY, 503)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    bench.runtime.close()


WRITE_UNTIL_REFUSED = """var accepted = 0;
    (function next() {
        var text = new Array(1001).join('x');
        var ok = collection.upsertDocument(link, {id: 'i' + accepted % 3, text: text}, function (error) {
            if (error) throw error;
            accepted += 1;
            next();
        });
        if (!ok) collection.readDocument(collection.getAltLink() + '/docs/i0', {}, function () { reply(accepted); });
    })();"""


@pytest.mark.parametrize(("limits", "expected"), [({"writes_max": 7}, 7), ({"written_characters_max": 7_000}, 5)])
async def test_a_transaction_that_can_hold_no_more_accepts_no_write_and_is_kept(
    limits: dict[str, int], expected: int
) -> None:
    bench = ScriptBench(ScriptRuntime(ScriptLimits(**limits)))
    try:
        assert await bench.answer(WRITE_UNTIL_REFUSED) == expected
        assert len(bench.operations.items) == 3
    finally:
        bench.runtime.close()

"""Input that is wrong, too large or without an end: a status, a sentence, and a server that goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import PartitionKey
from gremlin_python.driver.request import RequestMessage
from gremlin_python.driver.serializer import GraphBinarySerializersV1

from tests.clients.gremlin_door import Door, results
from tests.clients.gremlin_messages import BareSocket, bare_socket, framed, request, script
from tests.support.server import RunningServer, running_server

KIB = 1024
MIB = KIB * KIB
BINARY = "application/vnd.graphbinary-v1.0"
MALFORMED, COMPILATION = (498, 1004), (597, 1000)
LIMIT, MEMORY, SLOW = (597, 429), (500, 1003), (598, 1009)
NAMES = [f"v{number}" for number in range(12)]


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with little room for each traversal."""
    data = tmp_path_factory.mktemp("limited") / "data"
    with running_server(
        data, "--no-throttle", "--limit", "gremlin-values=20000", doors=("nosql", "gremlin")
    ) as running:
        with running.client() as client:
            client.create_database("d").create_container("g", PartitionKey("/pk"))
        yield running
        _, log = running.end()
        assert "Traceback" not in log


@pytest.fixture(scope="module")
def door(limited: RunningServer) -> Door:
    """A graph of which every vertex has an edge to every vertex."""
    made = Door(limited, "d", "g")
    add = "g.inject(names).unfold().as('x').addV('n').property('id', select('x')).property('pk', 'p')"
    with made.client() as client:
        results(client, add, {"names": NAMES})
        results(client, "g.V().as('a').V().addE('e').to('a')")
    return made


async def goes_on(bare: BareSocket) -> bool:
    return bool((await bare.ask(script("g.inject(1)")))["result"]["data"] == [1])


def codes_of(answer: Any) -> tuple[int, int]:
    status = answer["status"]
    return status["code"], status["attributes"]["x-ms-status-code"]


EVERYWHERE = "repeat(both()).times(32)"
TEXTS: dict[str, tuple[str, tuple[int, int], str]] = {
    "unclosed text": ("g.V().has('name", COMPILATION, "Missing '"),
    "unclosed call": ("g.V(", COMPILATION, "Missing ')'"),
    "unclosed comment": ("g.V()/* and so on", COMPILATION, "Unexpected token"),
    "no text": ("", COMPILATION, "Missing 'g'"),
    "deep children": ("g.V()" + ".where(__.out()" * 1000 + ")" * 1000, COMPILATION, "nested deeper"),
    "deep lists": ("g.inject(" + "[" * 1000 + "]" * 1000 + ")", COMPILATION, "nested deeper"),
    "deep predicates": ("g.V().has('a', " + "not(" * 1000 + "eq(1)" + ")" * 1001, COMPILATION, "nested deeper"),
    "deep result": ("g.inject(1)" + ".fold()" * 390, (599, 1001), "nested too deep"),
    "large number": (f"g.inject({'9' * 60_000})", COMPILATION, "digits"),
    "large script": (f"g.inject('{'x' * (64 * KIB - 11)}')", LIMIT, "65537 bytes"),
    "many steps": ("g.V()" + ".out()" * 400, LIMIT, "400 steps"),
    "many nested steps": ("g.V()" + ".where(out())" * 250, LIMIT, "400 steps"),
    "repeat without an end": ("g.V().repeat(both())", LIMIT, "more than 32 times"),
    "repeat until never": ("g.V().repeat(both()).until(constant(1).is(2))", LIMIT, "more than 32 times"),
    "a list of all walks": (f"g.V().{EVERYWHERE}.fold()", MEMORY, "values in memory"),
    "an effect of all walks": (f"g.V().{EVERYWHERE}.sideEffect(constant(1))", MEMORY, "traversers"),
    "a vertex for all walks": (f"g.V().{EVERYWHERE}.addV('n').property('pk', 'p')", MEMORY, "traversers"),
    "many groups": ("g.inject(numbers).unfold().group()", MEMORY, "values in memory"),
    "cross product": ("g.V().as('a').V().V().V().V().path().fold()", MEMORY, "values in memory"),
    "doubled text": ("g.inject('xx').repeat(as('a').concat(select('a'))).times(32)", MEMORY, "characters"),
    "doubled list": ("g.inject([1]).repeat(as('a').combine(select('a'))).times(32)", MEMORY, "members"),
    "negative limit": ("g.V().limit(-5)", (597, 1000), "Not a legal range"),
    "two scripts": ("g.V();g.E()", COMPILATION, "one statement"),
    "code": ("System.exit(0)", COMPILATION, "System"),
}


@pytest.mark.parametrize("name", TEXTS)
async def test_a_text_that_cannot_be_evaluated_is_refused(door: Door, name: str) -> None:
    text, codes, words = TEXTS[name]
    async with bare_socket(door) as bare:
        answer = await bare.ask(script(text, bindings={"numbers": list(range(30_000))} if "numbers" in text else {}))
        assert codes_of(answer) == codes, answer["status"]
        assert words in answer["status"]["message"]
        assert answer["status"]["message"].startswith("\r\n\nActivityId : ")
        assert await goes_on(bare)


async def test_texts_at_the_limits_are_evaluated(door: Door) -> None:
    async with bare_socket(door) as bare:
        large = f"g.inject('{'x' * (64 * KIB - 12)}')"
        assert len(large) == 64 * KIB
        assert codes_of(await bare.ask(script(large))) == (200, 200)
        assert codes_of(await bare.ask(script("g.V()" + ".identity()" * 399))) == (200, 200)
        assert (await bare.ask(script(f"g.V().limit({2**63 - 1}).count()")))["result"]["data"] == [len(NAMES)]
        # More walks than any integer of the wire can count.
        (count,) = (await bare.ask(script(f"g.V().{EVERYWHERE}.count()")))["result"]["data"]
        assert count > 2**64


@pytest.mark.parametrize("form", ["v3", "binary"])
def test_counts_above_64_bits_are_sent(door: Door, form: str) -> None:
    with door.client(form=form) as client:
        (count,) = results(client, f"g.V().{EVERYWHERE}.count()")
    assert count == len(NAMES) * (2 * len(NAMES)) ** 32


async def test_a_result_that_counts_more_often_than_it_can_be_sent_ends_with_the_time(door: Door) -> None:
    async with bare_socket(door) as bare:
        assert codes_of(await bare.ask(script(f"g.V().{EVERYWHERE}", evaluationTimeout=200))) == SLOW
        assert await goes_on(bare)


ARGUMENTS: dict[str, bytes] = {
    "no arguments": request(None),
    "a list of arguments": request([1]),
    "a number for a script": script(5),
    "no script": request({}),
    "bytecode that is none": request({"gremlin": "g.V()"}, operation="bytecode", processor="traversal"),
    "an unknown operation": request({"gremlin": "g.V()"}, operation="fly"),
    "a number for an operation": request({"gremlin": "g.V()"}, operation=5),
    "an unknown processor": request({"gremlin": "g.V()"}, processor="somewhere"),
    "no request id": request({"gremlin": "g.V()"}, requestId="me"),
    "many bindings": script("g.inject(1)", bindings={f"n{number}": number for number in range(10_000)}),
    "a list of bindings": script("g.inject(1)", bindings=[1]),
    "a text for a time": script("g.inject(1)", evaluationTimeout="soon"),
    "a negative time": script("g.inject(1)", evaluationTimeout=-1),
    "no batch": script("g.inject(1)", batchSize=0),
    "an unknown type": script("g.inject(x)", bindings={"x": {"@type": "g:Bytecode", "@value": 5}}),
    "an unknown mime type": framed(b"{}", "application/xml"),
    "a binary message in JSON": framed(b"\x81" + bytes(40)),
    "JSON in a binary message": framed(b'{"requestId": 1}', "application/json")[:-3],
}


@pytest.mark.parametrize("name", ARGUMENTS)
async def test_a_message_that_is_no_request_is_refused(door: Door, name: str) -> None:
    async with bare_socket(door) as bare:
        answer = await bare.ask(ARGUMENTS[name])
        assert codes_of(answer) == MALFORMED, answer["status"]
        assert "ExceptionMessage : " in answer["status"]["message"]
        assert await goes_on(bare)


async def test_a_message_of_text_is_answered_in_bytes(door: Door) -> None:
    async with bare_socket(door) as bare:
        await bare.socket.send_str(script("g.inject(1)")[34:].decode())
        assert (await bare.receive())["result"]["data"] == [1]
        await bare.socket.send_str("\x00 no JSON")
        assert codes_of(await bare.receive()) == MALFORMED


async def test_messages_cut_anywhere_or_changed_are_refused_and_the_connection_goes_on(door: Door) -> None:
    serializer = GraphBinarySerializersV1()
    arguments = {"gremlin": "g.inject(x)", "bindings": {"x": [1, {"a": 2.5}, None]}, "aliases": {"g": "g"}}
    whole: bytes = serializer.build_message("00112233-4455-6677-8899-aabbccddeeff", *_parts(arguments))
    text = script("g.inject(x)", bindings={"x": [1]})
    mangled = [whole[:size] for size in range(len(whole))] + [text[:size] for size in range(len(text))]
    mangled += [whole[:place] + b"\xff" + whole[place + 1 :] for place in range(len(whole))]
    async with bare_socket(door) as bare:
        await bare.send(whole)
        read = serializer.deserialize_message(await bare.receive_bytes())
        assert read["status"]["code"] == 200
        for message in mangled:
            await bare.send(message)
            answer = await bare.receive_bytes()
            status = json.loads(answer)["status"] if answer[:1] == b"{" else None
            code = status["code"] if status else serializer.deserialize_message(answer)["status"]["code"]
            # A changed character can be another script, or another value.
            assert code in (200, 498, 597), message
        assert await goes_on(bare)


def _parts(arguments: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    message = RequestMessage("", "eval", arguments)
    return message.processor, message.op, message.args


def resident_bytes(server: RunningServer) -> int:
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * 4096


async def test_a_client_that_never_reads_takes_little_memory_and_others_are_served(
    limited: RunningServer, door: Door
) -> None:
    async with bare_socket(door) as deaf, bare_socket(door) as other:
        before = resident_bytes(limited)
        for _ in range(8):
            # 640 MB in all.
            await deaf.send(
                script("g.inject(x).repeat(union(identity(), identity())).times(13)", bindings={"x": "x" * 10_000})
            )
        for _ in range(20):
            assert await goes_on(other)
        assert resident_bytes(limited) - before < 200 * MIB


async def test_a_client_that_goes_while_its_traversals_run_disturbs_no_other(door: Door) -> None:
    # How many of the writes happen depends on the moment; tests/unit/gremlin shows that traversals are cancelled.
    write = "g.inject(1).repeat(union(identity(), identity())).times(13).count().addV('late').property('pk', 'p')"
    async with bare_socket(door) as bare:
        for _ in range(32):
            await bare.send(script(write))
        await bare.receive()
    async with bare_socket(door) as bare:
        for _ in range(20):
            assert await goes_on(bare)
        (count,) = (await bare.ask(script("g.V().hasLabel('late').count()")))["result"]["data"]
        assert 1 <= count <= 32

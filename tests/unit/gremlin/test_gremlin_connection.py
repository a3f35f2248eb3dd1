"""A connection: the challenge, requests beside each other, batches, and clients that leave or do not read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from asterism.apis.gremlin.connection import REQUESTS_MAX, WAITING_BYTES_MAX
from asterism.errors import OwnerNotFound, RequestRateTooLarge
from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.tree import Instruction, Traversal
from tests.unit.gremlin.elements import VERTEX
from tests.unit.gremlin.fake_door import (
    ACTIVITY_ID,
    Client,
    FakeDesk,
    FakeEngine,
    authentication,
    request_id,
    script,
    until,
)

pytestmark = pytest.mark.asyncio


async def test_the_first_request_is_challenged_and_then_answered_under_its_own_id() -> None:
    client = Client(FakeEngine({"g.V()": [[("a", 1)]]}))

    client.send(script("g.V()", number=1))
    challenge = await client.receive()
    # As the Java driver does, with an id of its own.
    client.send(authentication(number=2))
    answer = await client.receive()

    assert (challenge["requestId"], challenge["status"]["code"]) == (request_id(1), 407)
    assert challenge["result"]["data"] == []
    assert (answer["requestId"], answer["status"]["code"]) == (request_id(1), 200)
    assert answer["result"]["data"] == ["a"]
    await client.leave()


async def test_the_name_of_the_credentials_may_be_in_upper_case() -> None:
    client = Client(FakeEngine({}))
    client.send(script("g.V()"))
    await client.receive()

    client.send(authentication(name="SASL"))

    assert (await client.receive())["status"]["code"] == 200
    await client.leave()


async def test_wrong_credentials_are_refused_and_may_be_given_again() -> None:
    client = Client(FakeEngine({}))
    client.send(script("g.V()", number=1))
    await client.receive()

    client.send(authentication(password="wrong", number=2))
    refusal = await client.receive()
    client.send(script("g.V()", number=3))
    challenge = await client.receive()
    client.send(authentication(number=4))
    answer = await client.receive()

    assert (refusal["requestId"], refusal["status"]["code"]) == (request_id(1), 401)
    assert refusal["status"]["message"] == "Unauthorized: Invalid credentials provided"
    assert refusal["status"]["attributes"]["x-ms-status-code"] == 401
    assert (challenge["requestId"], challenge["status"]["code"]) == (request_id(3), 407)
    assert (answer["requestId"], answer["status"]["code"]) == (request_id(3), 200)
    await client.leave()


@pytest.mark.parametrize("given", [None, 5, "no base64!", "bm8gbnVs"])
async def test_credentials_in_no_known_form_are_refused(given: Any) -> None:
    client = Client(FakeEngine({}))
    client.send(script("g.V()"))
    await client.receive()

    client.send({**authentication(), "args": {"sasl": given}})

    assert (await client.receive())["status"]["code"] == 401
    await client.leave()


async def test_a_graph_that_does_not_exist_is_an_error_of_the_server() -> None:
    desk = FakeDesk()
    desk.problem = OwnerNotFound(kind="container", name="graph")
    client = Client(FakeEngine({}), desk)
    client.send(script("g.V()"))
    await client.receive()

    client.send(authentication())
    status = (await client.receive())["status"]

    assert (status["code"], status["attributes"]["x-ms-status-code"]) == (500, 404)
    assert "Owner resource does not exist" in status["message"]
    await client.leave()


async def test_requests_that_come_during_the_challenge_are_answered_after_it() -> None:
    client = Client(FakeEngine({}))
    for number in range(1, 101):
        client.send(script("g.V()", number=number))
    assert (await client.receive())["status"]["code"] == 407

    client.send(authentication(number=1))
    answers = [await client.receive() for _ in range(100)]

    assert {each["requestId"] for each in answers} == {request_id(number) for number in range(1, 101)}
    assert {each["status"]["code"] for each in answers} == {200}
    await client.leave()


async def test_requests_that_wait_for_a_refused_login_are_challenged_themselves() -> None:
    client = Client(FakeEngine({}))
    client.send(script("g.V()", number=1))
    client.send(script("g.V()", number=2))
    await client.receive()

    client.send(authentication(password="wrong", number=1))
    answers = [await client.receive() for _ in range(2)]

    assert [(each["requestId"], each["status"]["code"]) for each in answers] == [
        (request_id(1), 401),
        (request_id(2), 407),
    ]
    await client.leave()


async def test_a_stranger_cannot_make_the_server_keep_much() -> None:
    client = Client(FakeEngine({}))
    client.send(script("g.V()", number=1))
    await client.receive()

    client.send(script("x" * (WAITING_BYTES_MAX // 2), number=2))
    client.send(script("x" * (WAITING_BYTES_MAX // 2), number=3))

    assert (await client.receive())["requestId"] == request_id(3)
    await client.leave()


async def test_a_login_that_was_withdrawn_ends_with_the_next_request() -> None:
    client = Client(FakeEngine({}))
    await client.log_in()
    client.desk.is_open = False

    client.send(script("g.V()"))

    assert (await client.receive())["status"]["code"] == 401
    await client.leave()


async def test_requests_of_a_connection_run_beside_each_other_up_to_a_limit() -> None:
    gate = asyncio.Event()
    engine = FakeEngine({"slow": [gate, [("slow", 1)]]})
    client = Client(engine)
    await client.log_in()

    for number in range(1, REQUESTS_MAX + 5):
        client.send(script("slow" if number > 1 else "fast", number=number))
    first = await client.receive()
    await until(lambda: len(engine.calls) == REQUESTS_MAX + 1)
    gate.set()
    rest = [await client.receive() for _ in range(REQUESTS_MAX + 3)]

    assert first["requestId"] == request_id(1)
    assert {each["status"]["code"] for each in rest} == {200}
    await client.leave()


async def test_many_results_come_in_batches_that_all_have_their_attributes() -> None:
    engine = FakeEngine(
        {"g.V()": [[(number, 1) for number in range(100)], [(number, 1) for number in range(100, 150)]]}
    )
    client = Client(engine)
    await client.log_in()

    client.send(script("g.V()"))
    answers = [await client.receive() for _ in range(3)]

    assert [each["status"]["code"] for each in answers] == [206, 206, 200]
    assert [len(each["result"]["data"]) for each in answers] == [64, 64, 22]
    assert [value for each in answers for value in each["result"]["data"]] == list(range(150))
    attributes = [each["status"]["attributes"] for each in answers]
    assert {each["x-ms-status-code"] for each in attributes} == {200}
    assert {each["x-ms-activity-id"] for each in attributes} == {ACTIVITY_ID}
    assert [each["x-ms-total-request-charge"] for each in attributes] == [1.5, 3.0, 3.0]
    assert sum(each["x-ms-request-charge"] for each in attributes) == 3.0
    assert attributes[-1]["x-ms-total-server-time-ms"] == sum(each["x-ms-server-time-ms"] for each in attributes)
    await client.leave()


async def test_batches_are_cut_by_their_bytes_too() -> None:
    client = Client(FakeEngine({"g.V()": [[("x" * 400_000, 1)] * 5]}))
    await client.log_in()

    client.send(script("g.V()"))
    answers = [await client.receive() for _ in range(3)]

    assert [len(each["result"]["data"]) for each in answers] == [2, 2, 1]
    await client.leave()


async def test_the_client_chooses_the_size_of_batches() -> None:
    client = Client(FakeEngine({"g.V()": [[("x", 3)]]}))
    await client.log_in()

    client.send(script("g.V()", batchSize={"@type": "g:Int32", "@value": 2}))
    answers = [await client.receive() for _ in range(2)]

    assert [each["result"]["data"] for each in answers] == [["x", "x"], ["x"]]
    await client.leave()


async def test_no_results_are_an_empty_list_with_200() -> None:
    client = Client(FakeEngine({"g.V()": []}))
    await client.log_in()

    client.send(script("g.V()"))
    answer = await client.receive()

    assert (answer["status"]["code"], answer["result"]["data"]) == (200, [])
    assert answer["status"]["attributes"]["x-ms-total-request-charge"] == 0.0
    await client.leave()


async def test_a_result_that_no_client_would_read_is_refused() -> None:
    client = Client(FakeEngine({"g.V()": [[("x" * 5000, 1)]]}), gremlin_result_bytes_max=1000)
    await client.log_in()

    client.send(script("g.V()"))
    status = (await client.receive())["status"]

    assert (status["code"], status["attributes"]["x-ms-status-code"]) == (599, 1001)
    await client.leave()


async def test_an_error_after_some_batches_ends_the_answer() -> None:
    failure = RequestRateTooLarge(retry_after_seconds=0.033)
    engine = FakeEngine({"g.V()": [[(number, 1) for number in range(65)], failure]})
    client = Client(engine)
    await client.log_in()

    client.send(script("g.V()"))
    first, last = await client.receive(), await client.receive()

    assert first["status"]["code"] == 206
    assert last["status"]["code"] == 500
    attributes = last["status"]["attributes"]
    assert (attributes["x-ms-status-code"], attributes["x-ms-substatus-code"]) == (429, 3200)
    assert attributes["x-ms-retry-after-ms"] == "00:00:00.0330000"
    assert attributes["x-ms-total-request-charge"] == 1.5
    assert engine.evaluations[0].is_closed
    await client.leave()


async def test_a_failure_that_no_code_foresaw_tells_nothing_and_the_connection_goes_on() -> None:
    client = Client(FakeEngine({"bad": [RuntimeError("secret")]}))
    await client.log_in()

    client.send(script("bad", number=1))
    failed = await client.receive()
    client.send(script("good", number=2))
    answer = await client.receive()

    assert (failed["status"]["code"], "secret" in failed["status"]["message"]) == (500, False)
    assert ACTIVITY_ID in failed["status"]["message"]
    assert answer["status"]["code"] == 200
    await client.leave()


async def test_the_message_of_an_error_has_the_form_of_the_service() -> None:
    problem = CompileFailure("Unable to find any method 'fail'", line=1, column=11)
    client = Client(FakeEngine({"g.V().fail()": [problem]}))
    await client.log_in()

    client.send(script("g.V().fail()"))
    status = (await client.receive())["status"]

    assert status["code"] == 597
    assert status["message"] == (
        f"\r\n\nActivityId : {ACTIVITY_ID}\nExceptionType : GraphCompileException\nExceptionMessage : \r\n\t"
        "Gremlin Query Compilation Error: Unable to find any method 'fail' @ line 1, column 11.\r\n\t1 Error(s)\n\t"
        f"GremlinRequestId : {request_id(1)}\n\tContext : graphcompute\n\t"
        "Scope : graphparse-translate-csharpexpressionbinding\n\tGraphInterOpStatusCode : QuerySyntaxError\n\t"
        "HResult : 0x80131500\r\n"
    )
    await client.leave()


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({**script("g.V()"), "op": "fly"}, "Unsupported request operation: 'fly'."),
        ({**script("g.V()"), "op": "bytecode"}, "Unsupported request operation: 'bytecode'."),
        ({**script("g.V()"), "processor": "unknown"}, "Unsupported request operation: 'eval'."),
        ({**script("g.V()"), "processor": "traversal", "op": "bytecode"}, "is not bytecode"),
        (script("g.V()", bindings=[1]), "bindings"),
        (script("g.V()", bindings={"x": {"@type": "g:Nothing", "@value": 1}}), "g:Nothing"),
        (script("g.V()", batchSize=0), "batchSize"),
        (script("g.V()", evaluationTimeout="long"), "evaluationTimeout"),
        ({**script("g.V()"), "args": {}}, "gremlin"),
    ],
)
async def test_requests_that_cannot_be_read_are_refused_with_498(request_: Any, text: str) -> None:
    client = Client(FakeEngine({}))
    await client.log_in()

    client.send(request_)
    answer = await client.receive()

    assert (answer["requestId"], answer["status"]["code"]) == (request_id(1), 498)
    assert answer["status"]["attributes"]["x-ms-status-code"] == 1004
    assert text in answer["status"]["message"]
    await client.leave()


@pytest.mark.parametrize("message", [b"", b"\xff", b"\x03abc{}", b"\x10application/json{", "no json", "{}"])
async def test_messages_that_are_no_requests_are_refused_and_the_connection_goes_on(message: str | bytes) -> None:
    client = Client(FakeEngine({}))

    client.socket.inbox.put_nowait(message)
    refusal = await client.receive()
    await client.log_in()

    assert refusal["status"]["code"] == 498
    await client.leave()


async def test_the_engine_gets_the_wishes_of_a_request() -> None:
    engine = FakeEngine({})
    client = Client(engine)
    await client.log_in()

    client.send(script("g.V(x)", bindings={"x": 5}, evaluationTimeout=1500, materializeProperties="tokens"))
    await client.receive()
    client.send(script("g.V()"), "application/vnd.gremlin-v3.0+json")
    await client.receive()

    (graph, text, bindings, options), (_, _, _, others) = engine.calls
    assert (graph.database, graph.name, graph.account) == ("db", "graph", "account")
    assert (text, bindings) == ("g.V(x)", {"x": 5})
    assert (options.dialect, options.timeout_seconds) == ("cosmos", 1.5)
    assert (options.materializes_properties, options.may_write) == (False, True)
    assert (others.dialect, others.timeout_seconds, others.materializes_properties) == ("tinkerpop", 30, True)
    await client.leave()


async def test_scripts_in_graphson_2_are_answered_without_types_unless_they_ask_for_them() -> None:
    client = Client(FakeEngine({"g.V()": [[(VERTEX, 1)]]}))
    await client.log_in()

    client.send(script("g.V()"))
    plain = await client.receive()
    client.send(script("g.V()", typed=True))
    typed = await client.receive()

    assert plain["result"]["data"][0]["type"] == "vertex"
    assert typed["result"]["data"][0]["@type"] == "g:Vertex"
    await client.leave()


async def test_bytecode_is_answered_with_traversers_and_types() -> None:
    engine = FakeEngine({"bytecode": [[("a", 3)]]})
    client = Client(engine)
    await client.log_in()
    bytecode = {"@type": "g:Bytecode", "@value": {"step": [["V"]]}}

    client.send({**script("x"), "processor": "traversal", "op": "bytecode", "args": {"gremlin": bytecode}})
    answer = await client.receive()

    assert answer["result"]["data"] == [
        {"@type": "g:Traverser", "@value": {"bulk": {"@type": "g:Int64", "@value": 3}, "value": "a"}}
    ]
    assert engine.calls[0][1] == Traversal((Instruction("V"),))
    await client.leave()


async def test_sessions_close_with_204_and_commits_do_nothing() -> None:
    engine = FakeEngine({})
    client = Client(engine)
    await client.log_in()

    def in_session(operation: str, gremlin: Any = None) -> dict[str, Any]:
        return {**script("x"), "processor": "session", "op": operation, "args": {"session": "s", "gremlin": gremlin}}

    def transaction(name: str) -> dict[str, Any]:
        return {"@type": "g:Bytecode", "@value": {"source": [["tx", name]]}}

    codes = []
    for request in (
        in_session("bytecode", transaction("commit")),
        in_session("bytecode", transaction("rollback")),
        in_session("eval", "g.tx().commit()"),
        in_session("close"),
    ):
        client.send(request)
        codes.append((await client.receive())["status"]["code"])

    assert codes == [200, 500, 200, 204]
    assert engine.calls == []
    await client.leave()


async def test_a_client_that_goes_cancels_its_requests() -> None:
    engine = FakeEngine({"slow": [asyncio.Event()]})
    client = Client(engine)
    await client.log_in()
    client.send(script("slow"))
    await until(lambda: bool(engine.evaluations))

    await client.leave()

    assert engine.evaluations[0].is_closed


async def test_a_client_that_reads_nothing_gets_no_more_than_one_message() -> None:
    engine = FakeEngine({"much": [[("x" * 1000, 10**9)]]})
    client = Client(engine)
    await client.log_in()
    client.socket.reads.clear()

    client.send(script("much"))
    await until(lambda: client.socket.sent.qsize() == 1)
    for _ in range(20):
        await asyncio.sleep(0)

    assert client.socket.sent.qsize() == 1
    await client.leave()
    assert engine.evaluations[0].is_closed

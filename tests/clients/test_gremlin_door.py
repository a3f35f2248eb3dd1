"""The real clients at the door: logins, both dialects in every format, batches, HTTP, and other bytes."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.traversal import P, T

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from tests.clients.gremlin_door import SERIALIZERS, Door, results
from tests.support.server import WAIT_SECONDS_MAX, RunningServer

NODE_MODULES = Path(__file__).parents[2] / ".venv" / "node" / "node_modules"


@pytest.fixture
def door(server: RunningServer, database: DatabaseProxy, container: ContainerProxy) -> Door:
    return Door(server, database.id, container.id)


@pytest.fixture
def filled(door: Door) -> Door:
    with door.client() as client:
        for name, key in (("ann", "p"), ("bob", "q")):
            results(
                client,
                "g.addV('person').property('id', name).property('pk', key).property('age', 44)",
                {"name": name, "key": key},
            )
        results(client, "g.V(['p','ann']).addE('knows').to(g.V(['q','bob'])).property('since', 2017)")
    return door


def status_of(problem: GremlinServerError) -> tuple[int, int]:
    return problem.status_code, problem.status_attributes["x-ms-status-code"]


# --- both dialects -------------------------------------------------------------------------------------------------


def test_scripts_in_graphson_2_are_answered_as_the_service_does(filled: Door) -> None:
    with filled.client() as client:
        (vertex,) = results(client, "g.V(['p','ann'])")
        (edge,) = results(client, "g.V(['p','ann']).outE()")
    assert (vertex["id"], vertex["type"]) == ("ann", "vertex")
    assert vertex["properties"]["pk"] == [{"id": "ann|pk", "value": "p"}]
    assert vertex["properties"]["age"][0]["value"] == 44
    assert (edge["outV"], edge["inV"], edge["properties"]) == ("ann", "bob", {"since": 2017})


@pytest.mark.parametrize("form", ["v3", "binary"])
def test_scripts_in_other_formats_are_answered_with_types(filled: Door, form: str) -> None:
    with filled.client(form=form) as client:
        (vertex,) = results(client, "g.V('ann')")
        (path,) = results(client, "g.V('ann').out('knows').path()")
    assert (vertex.id, vertex.label) == ("ann", "person")
    assert {each.key: each.value for each in vertex.properties} == {"pk": "p", "age": 44}
    assert [each.id for each in path.objects] == ["ann", "bob"]


@pytest.mark.parametrize("form", list(SERIALIZERS))
def test_traversals_of_a_program_are_evaluated_in_every_format(filled: Door, form: str) -> None:
    with filled.traversals(form=form) as g:
        assert g.V("ann").out("knows").values("age").to_list() == [44]
        assert sorted(each.id for each in g.V().has("age", P.gt(40)).to_list()) == ["ann", "bob"]
        # A vertex that came from the server goes back to it.
        assert g.V(g.V("ann").next()).out_e().count().next() == 1
        g.add_v("dog").property(T.id, "rex").property("pk", "p").iterate()
        assert g.V("rex").count().next() == 1
        g.V("rex").drop().iterate()
        assert g.V("rex").to_list() == []
        # Equal results come once, with a number, and are as many again for the program.
        assert g.inject(1, 1, 1).to_list() == [1, 1, 1]


def test_a_session_of_a_program_commits_each_request_and_rolls_back_none(door: Door) -> None:
    with door.traversals() as g:
        transaction = g.tx()
        begun = transaction.begin()
        begun.add_v("x").property(T.id, "a").property("pk", "p").iterate()
        assert g.V().count().next() == 1
        transaction.commit()
    with door.client(session="s") as client:
        assert results(client, "g.V().count()") == [1]
        with pytest.raises(GremlinServerError, match="does not support transactions"):
            results(client, "g.tx().rollback()")


@pytest.mark.parametrize("form", list(SERIALIZERS))
def test_bindings_come_as_they_were_sent(door: Door, form: str) -> None:
    sent: list[Any] = ["text", 5, 2.5, True, None, [1, 2]]
    with door.client(form=form) as client:
        for value in sent:
            assert results(client, "g.inject(x).fold()", {"x": value}) == [[value]]


async def test_the_client_for_event_loops_works_too(filled: Door) -> None:
    with filled.client(call_from_event_loop=True) as client:
        found = client.submit_async("g.V().count()").result(timeout=60).all().result(timeout=60)
    assert found == [2]


# --- answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", list(SERIALIZERS))
def test_every_answer_tells_its_charge(filled: Door, form: str) -> None:
    with filled.client(form=form) as client:
        found = client.submit("g.V('nobody')")
        assert found.all().result(timeout=60) == []
    attributes = found.status_attributes
    assert attributes["x-ms-status-code"] == 200
    assert isinstance(attributes["x-ms-total-request-charge"], float)
    assert attributes["x-ms-total-request-charge"] > 0
    uuid.UUID(attributes["x-ms-activity-id"])


@pytest.mark.parametrize("form", list(SERIALIZERS))
def test_many_results_come_in_several_messages(door: Door, form: str) -> None:
    texts = [f"{number}-" + "x" * 3000 for number in range(1000)]
    with door.client(form=form) as client:
        assert results(client, "g.inject(all).unfold()", {"all": texts}) == texts


def test_errors_have_the_service_s_status_and_form(filled: Door) -> None:
    cases = {
        "g.V().foo()": (597, 1000, "Unable to find any method 'foo' @ line 1, column 10."),
        "g.V().has('name'": (597, 1000, "Script compile error"),
        "g.V().map{it.get()}": (597, 1000, "Unsupported groovy language rule: 'closure' text: '{it.get()}'"),
        "g.addV('person').property('id','ann').property('pk','p')": (500, 409, "Conflicting request to resource"),
        "g.addV('person').property('id','new')": (597, 1000, "partition key property has value 'null'"),
        f"g.V(){'.out()' * 401}": (597, 429, "400"),
        f"g.inject('{'x' * 70_000}')": (597, 429, "65"),
    }
    with filled.client() as client:
        for text, (code, status, sentence) in cases.items():
            with pytest.raises(GremlinServerError) as refused:
                results(client, text)
            assert status_of(refused.value) == (code, status), text
            message = refused.value.status_message
            assert message.startswith("\r\n\nActivityId : ")
            assert sentence in message


# --- logins --------------------------------------------------------------------------------------------------------


def test_a_wrong_user_or_key_is_refused(door: Door) -> None:
    for user, password in (
        (door.user, "wrong"),
        (door.user, base64.b64encode(b"wrong").decode()),
        ("nobody", WELL_KNOWN_EMULATOR_KEY),
        ("/dbs/a", WELL_KNOWN_EMULATOR_KEY),
    ):
        with door.client(user=user, password=password) as client, pytest.raises(GremlinServerError) as refused:
            results(client, "g.V()")
        assert status_of(refused.value) == (401, 401)
        assert refused.value.status_message == "Unauthorized: Invalid credentials provided"


def test_a_graph_that_does_not_exist_is_named_as_the_service_names_it(door: Door) -> None:
    with door.client(user="/dbs/none/colls/none") as client, pytest.raises(GremlinServerError) as refused:
        results(client, "g.V()")
    assert status_of(refused.value) == (500, 404)
    assert "Owner resource does not exist" in refused.value.status_message


@pytest.mark.parametrize(
    "key",
    [
        PartitionKey("/id"),
        PartitionKey("/label"),
        PartitionKey("/address/zip"),
        PartitionKey(["/a", "/b"], kind="MultiHash"),
    ],
    ids=["id", "label", "nested", "hierarchical"],
)
def test_a_container_with_another_kind_of_key_is_no_graph(
    server: RunningServer, database: DatabaseProxy, key: PartitionKey
) -> None:
    database.create_container("odd", key)
    with Door(server, database.id, "odd").client() as client, pytest.raises(GremlinServerError) as refused:
        results(client, "g.V()")
    assert refused.value.status_code == 597
    assert "partition key" in refused.value.status_message


def test_a_read_only_key_reads_and_does_not_write(filled: Door) -> None:
    with filled.client(password=derive_readonly_key(WELL_KNOWN_EMULATOR_KEY)) as client:
        assert results(client, "g.V().count()") == [2]
        with pytest.raises(GremlinServerError) as refused:
            results(client, "g.V().drop()")
        assert status_of(refused.value) == (500, 403)
        assert results(client, "g.V().count()") == [2]


def token_for(database: DatabaseProxy, link: str, mode: str, **more: object) -> str:
    user = database.create_user({"id": f"user-{uuid.uuid4()}"})
    permission = user.create_permission({"id": "p", "permissionMode": mode, "resource": link, **more})
    return str(permission.properties["_token"])


def test_a_resource_token_opens_its_graph_until_it_is_withdrawn(filled: Door, database: DatabaseProxy) -> None:
    user = database.create_user({"id": f"user-{uuid.uuid4()}"})
    permission = user.create_permission({"id": "p", "permissionMode": "Read", "resource": filled.user.strip("/")})
    with filled.client(password=permission.properties["_token"]) as client:
        assert results(client, "g.V().count()") == [2]
        with pytest.raises(GremlinServerError) as refused:
            results(client, "g.V().drop()")
        assert status_of(refused.value)[1] == 403
        user.delete_permission("p")
        with pytest.raises(GremlinServerError) as ended:
            results(client, "g.V().count()")
    assert status_of(ended.value)[1] == 403


def test_a_resource_token_for_something_else_is_refused(filled: Door, database: DatabaseProxy) -> None:
    database.create_container("other", PartitionKey("/pk"))
    tokens = [
        token_for(database, f"dbs/{database.id}/colls/other", "All"),
        token_for(database, filled.user.strip("/"), "All", resourcePartitionKey=["p"]),
    ]
    for token in tokens:
        with filled.client(password=token) as client, pytest.raises(GremlinServerError) as refused:
            results(client, "g.V()")
        assert status_of(refused.value)[1] == 403


# --- HTTP ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", list(SERIALIZERS))
def test_the_client_speaks_http_as_well(filled: Door, form: str) -> None:
    with filled.client(form=form, url=f"http://127.0.0.1:{filled.port}") as client:
        assert results(client, "g.V().count()") == [2]
        with pytest.raises(GremlinServerError, match="Unable to find any method"):
            results(client, "g.V().foo()")


async def test_a_script_over_http_is_one_request(filled: Door) -> None:
    url = f"http://127.0.0.1:{filled.port}/gremlin"
    auth = {"authorization": aiohttp.encode_basic_auth(filled.user, WELL_KNOWN_EMULATOR_KEY)}
    wrong = {"authorization": aiohttp.encode_basic_auth(filled.user, "wrong")}
    async with aiohttp.ClientSession() as session:
        async with session.post(url, json={"gremlin": "g.V(x).id()", "bindings": {"x": "ann"}}, headers=auth) as answer:
            assert (answer.status, (await answer.json())["result"]["data"]) == (200, ["ann"])
        typed = {"accept": "application/vnd.gremlin-v3.0+json"}
        async with session.post(url, json={"gremlin": "g.V('ann')"}, headers=typed | auth) as answer:
            assert b'"g:Vertex"' in await answer.read()
        async with session.post(url, json={"gremlin": "g.V()"}, headers=wrong) as answer:
            assert answer.status == 401
            assert answer.headers["www-authenticate"].startswith("Basic")
        async with session.post(url, data=b"{", headers=auth) as answer:
            assert answer.status == 400
        async with session.get(url, headers=auth) as answer:
            assert (answer.status, answer.headers["allow"]) == (405, "POST")


# --- bytes that are no requests ------------------------------------------------------------------------------------


async def test_bytes_that_are_no_requests_are_refused_and_the_connection_goes_on(filled: Door) -> None:
    mime = b"\x21application/vnd.gremlin-v2.0+json"
    request = {"requestId": str(uuid.uuid4()), "op": "eval", "processor": "", "args": {"gremlin": "g.V().count()"}}
    sasl = base64.b64encode(f"\0{filled.user}\0{WELL_KNOWN_EMULATOR_KEY}".encode()).decode()
    login = {**request, "op": "authentication", "args": {"sasl": sasl}}
    async with aiohttp.ClientSession() as session, session.ws_connect(filled.url) as socket:

        async def ask(message: bytes) -> Any:
            await socket.send_bytes(message)
            answer = await socket.receive(timeout=WAIT_SECONDS_MAX)
            assert answer.type is aiohttp.WSMsgType.BINARY
            return json.loads(answer.data)["status"]["code"]

        cut = json.dumps(request).encode()[:40]
        for message in (b"", b"\xff", b"\x03abc", mime, mime + b"{", mime + b"[]", mime + cut):
            assert await ask(message) == 498
        assert await ask(mime + json.dumps(request).encode()) == 407
        assert await ask(mime + json.dumps(login).encode()) == 200
        assert await ask(mime + json.dumps({**request, "op": "fly"}).encode()) == 498
        assert await ask(mime + json.dumps(request).encode()) == 200


async def test_a_message_above_the_limit_closes_the_connection(door: Door) -> None:
    async with aiohttp.ClientSession() as session, session.ws_connect(door.url) as socket:
        await socket.send_bytes(b"x" * (5 * 1024 * 1024))
        answer = await socket.receive(timeout=WAIT_SECONDS_MAX)
        assert answer.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
        assert socket.close_code == 1009


async def test_a_web_page_cannot_use_the_public_key(door: Door) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(door.url, headers={"origin": "https://evil.example"})
    assert refused.value.status == 403


# --- JavaScript ----------------------------------------------------------------------------------------------------

PROGRAM = """
const gremlin = require("gremlin");
const [url, user, key] = process.argv.slice(2);
const { t, P } = gremlin.process;
async function main() {
  for (const form of ["vnd.gremlin-v2.0+json", "vnd.gremlin-v3.0+json", "vnd.graphbinary-v1.0"]) {
    const authenticator = new gremlin.driver.auth.PlainTextSaslAuthenticator(user, key);
    const options = { authenticator, traversalsource: "g", mimeType: "application/" + form };
    const client = new gremlin.driver.Client(url, options);
    // All at a time over one connection, the first before the login.
    const answers = await Promise.all([...Array(100).keys()].map((x) => client.submit("g.inject(x)", { x })));
    const isRight = answers.every((answer, x) => answer.first() === x);
    await client.close();
    const connection = new gremlin.driver.DriverRemoteConnection(url, options);
    const g = gremlin.process.AnonymousTraversalSource.traversal().with_(connection);
    const ages = await g.V("ann").has("age", P.gt(40)).values("age").toList();
    const ids = (await g.V("ann").out("knows").toList()).map((vertex) => vertex.id);
    await connection.close();
    console.log(JSON.stringify([isRight, ages, ids]));
  }
}
main().catch((problem) => { console.error(problem); process.exit(1); });
"""


def test_the_client_in_javascript_speaks_every_format(filled: Door, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (NODE_MODULES / "gremlin").is_dir():
        pytest.skip("needs Node.js and its Gremlin client")
    file = tmp_path / "program.cjs"
    file.write_text(PROGRAM)
    finished = subprocess.run(
        [node, str(file), filled.url, filled.user, WELL_KNOWN_EMULATOR_KEY],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
        env={"NODE_PATH": str(NODE_MODULES)},
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines() == ['[true,[44],["bob"]]'] * 3

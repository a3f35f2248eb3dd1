"""Options of a request that the traversal itself states, by `g.with(...)`: in texts, bytecode and over HTTP."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.strategies import OptionsStrategy

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.clients.gremlin_door import SERIALIZERS, Door, results
from tests.support.server import RunningServer

TOKENS = "g.with('materializeProperties','tokens')"
# Far more work than the time that the tests give it.
ENDLESS = "repeat(V()).times(30).path().count()"


@pytest.fixture
def door(server: RunningServer, database: DatabaseProxy, container: ContainerProxy) -> Door:
    return Door(server, database.id, container.id)


@pytest.fixture
def pair(door: Door) -> Door:
    with door.client() as client:
        for name in ("ann", "bob"):
            results(client, "g.addV('person').property('id', x).property('pk', 'p').property('age', 4)", {"x": name})
        results(client, "g.V('ann').addE('knows').to(g.V('bob')).property('since', 2017)")
    return door


@pytest.mark.parametrize("walk", ["V('bob')", "V('ann').out()"])
def test_a_text_can_ask_for_elements_without_properties(pair: Door, walk: str) -> None:
    with pair.client() as client:
        assert "properties" in results(client, f"g.{walk}")[0]
        assert results(client, f"{TOKENS}.{walk}") == [{"id": "bob", "label": "person", "type": "vertex"}]
        assert results(client, f"g.with('materializeProperties', x).{walk}", {"x": "tokens"})[0].keys() == {
            "id",
            "label",
            "type",
        }
        assert "properties" not in results(client, f"{TOKENS}.V('ann').outE()")[0]
        # The wish of the traversal goes before that of its request.
        tokens: dict[str, Any] = {"request_options": {"materializeProperties": "tokens"}}
        asked = client.submit(f"g.with('materializeProperties','all').{walk}", **tokens)
        assert "properties" in asked.all().result(timeout=60)[0]
        assert "properties" not in client.submit(f"g.{walk}", **tokens).all().result(timeout=60)[0]


@pytest.mark.parametrize("form", ["v3", "binary"])
def test_a_text_with_types_can_ask_for_elements_without_properties(pair: Door, form: str) -> None:
    with pair.client(form=form) as client:
        assert len(results(client, "g.V('bob')")[0].properties) == 2
        (vertex,) = results(client, f"{TOKENS}.V('bob')")
    assert (vertex.id, vertex.label, vertex.properties) == ("bob", "person", [])


@pytest.mark.parametrize("form", list(SERIALIZERS))
def test_a_program_can_ask_for_elements_without_properties(pair: Door, form: str) -> None:
    options = OptionsStrategy(materializeProperties="tokens")
    with pair.traversals(form=form) as g:
        assert len(g.V("bob").next().properties) == 2
        assert not g.with_("materializeProperties", "tokens").V("bob").next().properties
        assert not g.with_strategies(options).V("ann").out().next().properties


async def test_a_script_over_http_can_ask_for_elements_without_properties(pair: Door) -> None:
    url = f"http://127.0.0.1:{pair.port}/gremlin"
    headers = {"authorization": aiohttp.encode_basic_auth(pair.user, WELL_KNOWN_EMULATOR_KEY)}
    async with aiohttp.ClientSession(headers=headers) as session:

        async def first(**body: Any) -> Any:
            async with session.post(url, json=body) as answer:
                return json.loads(await answer.read())["result"]["data"][0]

        assert "properties" not in await first(gremlin=f"{TOKENS}.V('bob')")
        assert "properties" not in await first(gremlin="g.V('bob')", materializeProperties="tokens")
        assert "properties" in await first(gremlin="g.V('bob')")


@pytest.mark.parametrize("text", [f"g.with('evaluationTimeout', 50L).V().{ENDLESS}", f"g.V().{ENDLESS}"])
def test_a_traversal_is_stopped_after_the_time_that_it_or_its_request_asks_for(pair: Door, text: str) -> None:
    with pair.client() as client:
        options = {} if "with" in text else {"evaluationTimeout": 50}
        asked = client.submit(text, request_options=options)
        with pytest.raises(GremlinServerError) as stopped:
            asked.all().result(timeout=60)
        assert stopped.value.status_code == 598
        assert stopped.value.status_attributes["x-ms-status-code"] == 1009
        assert "0.05 seconds" in stopped.value.status_message
        assert results(client, "g.inject(1)") == [1]


def test_a_text_can_state_the_size_of_its_batches(door: Door) -> None:
    with door.client() as client:
        batches = list(client.submit("g.with('batchSize', 2).inject(1,2,3,4,5)"))
        assert batches == [[1, 2], [3, 4], [5]]
        with pytest.raises(GremlinServerError, match="batchSize is a positive number"):
            results(client, "g.with('batchSize', 0).inject(1)")

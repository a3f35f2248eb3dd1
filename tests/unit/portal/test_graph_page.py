"""The portal as a client of the Gremlin door, and the containers that have a page of a graph."""

from __future__ import annotations

import base64
import json

import pytest

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from asterism.apis.portal.graph_keys import can_be_graph, key_property
from asterism.apis.transports.http import Request, Response
from tests.unit.portal.portal_at_hand import Visitor, assembled_portal, visitor

CONTAINER = {"id": "people", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
PAGE = "/c/asterism/shop/people/graph"


class RecordingDoor:
    """A door that keeps the requests it gets, and answers each with an empty result."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def answer(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(200, [("content-type", "application/json")], b'{"result":{"data":[]}}')


async def with_container(browser: Visitor) -> None:
    await browser.ask("POST", "asterism/nosql/dbs", {"id": "shop"})
    await browser.ask("POST", "asterism/nosql/dbs/shop/colls", CONTAINER)


@pytest.mark.parametrize("is_readonly", [False, True])
async def test_a_traversal_goes_to_the_door_with_the_graph_as_its_user_and_the_visitors_key(is_readonly: bool) -> None:
    key = derive_readonly_key(WELL_KNOWN_EMULATOR_KEY) if is_readonly else WELL_KNOWN_EMULATOR_KEY
    async with assembled_portal() as assembly:
        browser, door = visitor(assembly), RecordingDoor()
        await browser.sign_in(key)
        assembly.doors["gremlin"] = door  # type: ignore[index]  # a mapping that the assembly made as a dict
        status, _ = await browser.ask("POST", "asterism/gremlin/dbs/shop/colls/a:b", {"gremlin": "g.V()"})
        assert status == 200
        (request,) = door.requests
        assert (request.method, request.path, json.loads(request.body)) == ("POST", "/gremlin", {"gremlin": "g.V()"})
        scheme, _, credentials = (request.headers.get("authorization") or "").partition(" ")
        assert (scheme, base64.b64decode(credentials).decode()) == ("Basic", f"/dbs/shop/colls/a%3Ab:{key}")


async def test_a_container_with_a_synthetic_key_has_no_page_of_a_graph() -> None:
    async with assembled_portal() as assembly:
        browser = visitor(assembly)
        await browser.sign_in()
        await with_container(browser)
        assembly.doors["gremlin"] = RecordingDoor()  # type: ignore[index]  # as above
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2, "synthetic": {"/pk": {"parts": ["/city"]}}}
        made = {"id": "computed", "partitionKey": key}
        await browser.ask("POST", "asterism/nosql/dbs/shop/colls", made)
        page = await browser.send("GET", "/c/asterism/shop/computed")
        assert b"is computed: city." in page.body
        assert b"/computed/graph" not in page.body
        refused = await browser.send("GET", "/c/asterism/shop/computed/graph")
        assert (refused.status, b"cannot be a graph" in refused.body) == (400, True)


async def test_a_container_has_a_tab_for_its_graph_where_traversals_are_served() -> None:
    async with assembled_portal() as assembly:
        browser = visitor(assembly)
        await browser.sign_in()
        await with_container(browser)
        assembly.doors.pop("gremlin", None)  # type: ignore[attr-defined]  # as above
        assert b"/people/graph" not in (await browser.send("GET", "/c/asterism/shop/people")).body
        assert b"The server has no Gremlin port" in (await browser.send("GET", PAGE)).body
        assembly.doors["gremlin"] = RecordingDoor()  # type: ignore[index]  # as above
        assert b"/people/graph" in (await browser.send("GET", "/c/asterism/shop/people")).body
        assert b"The server has no Gremlin port" not in (await browser.send("GET", PAGE)).body


@pytest.mark.parametrize("paths", [["/id"], ["/label"], ["/a/b"], ["/a", "/b"]])
def test_these_keys_divide_no_graph(paths: list[str]) -> None:
    assert not can_be_graph(paths)


def test_a_key_of_one_property_divides_a_graph() -> None:
    assert can_be_graph(["/pk"])
    assert can_be_graph([])
    assert key_property({"paths": ["/pk"]}) == "pk"
    assert key_property({"paths": ["/_partitionKey"], "systemKey": True}) == ""

"""First steps with Gremlin clients: the endpoint, the user of a graph and programs that run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from asterism.apis.door_spec import Introduction, Surroundings
from asterism.apis.gremlin.spec import websocket_url
from asterism.apis.snippets import SnippetSource, render_snippets

if TYPE_CHECKING:
    from asterism.apis.gremlin.settings import GremlinSettings

_FOLDER = Path(__file__).with_name("snippets")
_SOURCES = (
    SnippetSource("Python", "pip install gremlinpython azure-cosmos", "python.txt"),
    SnippetSource("JavaScript", "npm install gremlin @azure/cosmos", "javascript.txt"),
)


def introduce(_: GremlinSettings, server: Surroundings, __: str, key: str) -> Introduction:
    """Return the first steps for an account; graphs are containers, which the NoSQL port creates."""
    place = server.endpoints["gremlin"]
    url = websocket_url(place)
    containers = server.endpoints.get("nosql")
    values = {
        "URL": url,
        "KEY": key,
        "CONTAINERS_URL": "" if containers is None else containers.url,
    }
    return Introduction(
        "Gremlin",
        endpoints=[("Endpoint", url), ("User", "/dbs/DATABASE/colls/GRAPH")],
        connection_strings=[("Connection string", f"GremlinEndpoint={url};AccountKey={key};ApiKind=Gremlin;")],
        snippets=render_snippets(_SOURCES, _FOLDER, is_encrypted=place.is_encrypted, values=values),
    )

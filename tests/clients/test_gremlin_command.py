"""`asterism gremlin` as its user meets it, on a graph that `asterism graphs import` has filled."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment

# A name that must be escaped in the credentials of HTTP.
DATABASE = f"gremlin: {uuid.uuid4()}"
VERTICES = "id,label,pk,name,age:Int\na,person,p,Anna,31\nb,person,q,Bert,27\nc,city,p,Oslo,\n"
EDGES = "id,label,from,to,since:Int\ne1,knows,a,b,2017\ne2,in,a,c,\ne3,in,b,c,\n"


def run(server: RunningServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env={**environment(), "ASTERISM_ENDPOINT": server.endpoint},
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )


@pytest.fixture(scope="module")
def graph(server: RunningServer, client: CosmosClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Three vertices in four physical partitions."""
    folder: Path = tmp_path_factory.mktemp("graph")
    (folder / "vertices.csv").write_text(VERTICES)
    (folder / "edges.csv").write_text(EDGES)
    files = [str(folder / name) for name in ("vertices.csv", "edges.csv")]
    filled = run(server, "graphs", "import", DATABASE, "people", *files, "--partition-key", "/pk", "--ru", "20000")
    assert (filled.returncode, filled.stderr) == (0, "")
    yield "people"
    client.delete_database(DATABASE)


def traverse(server: RunningServer, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    return run(server, "gremlin", DATABASE, "people", text, *options)


def results_of(server: RunningServer, text: str, *options: str) -> list[object]:
    finished = traverse(server, text, "--json", *options)
    assert (finished.returncode, finished.stderr) == (0, "")
    return [json.loads(line) for line in finished.stdout.splitlines()]


@pytest.mark.usefixtures("graph")
def test_imported_elements_are_a_graph(server: RunningServer) -> None:
    assert results_of(server, "g.V(['p', 'a']).out().order().by('name').values('name')") == ["Bert", "Oslo"]
    assert results_of(server, "g.V('c').in('in').order().by('name').values('name')") == ["Anna", "Bert"]
    assert results_of(server, "g.V(['p', 'a']).outE('knows').values('since')") == [2017]
    assert results_of(server, "g.V().count()") == [3]


@pytest.mark.usefixtures("graph")
def test_bindings_give_values_to_names(server: RunningServer) -> None:
    text = "g.V().has('age', gt(least)).values('name')"
    assert results_of(server, text, "--bindings", '{"least": 30}') == ["Anna"]


@pytest.mark.usefixtures("graph")
def test_results_are_a_table_and_their_cost_is_told_apart(server: RunningServer) -> None:
    finished = traverse(server, "g.V().hasLabel('person')")
    assert finished.returncode == 0
    for word in ("id", "label", "pk", "age", "Anna", "Bert", "31"):
        assert word in finished.stdout
    assert finished.stderr.startswith("2 results · ")
    assert " RU · " in finished.stderr
    assert "a —knows→ b" in traverse(server, "g.V(['p', 'a']).outE('knows').inV().path()").stdout
    assert traverse(server, "g.V().has('name', 'x')").stdout == "No results.\n"


@pytest.mark.usefixtures("graph")
def test_a_traversal_may_write_with_a_full_key_only(server: RunningServer) -> None:
    text = "g.addV('person').property('id', 'd').property('pk', 'r').id()"
    readonly = derive_readonly_key(WELL_KNOWN_EMULATOR_KEY)
    refused = traverse(server, text, "--key", readonly)
    assert refused.returncode == 1
    assert refused.stderr.startswith("asterism: 403: ")
    assert results_of(server, text) == ["d"]
    assert results_of(server, "g.V(['r', 'd']).drop()") == []
    assert results_of(server, "g.V().count()", "--key", readonly) == [3]


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["people", "g.V("], "asterism: 1000: Gremlin Query Compilation Error: "),
        (["people", "g.V().nothing()"], "asterism: 1000: Gremlin Query Compilation Error: "),
        (["none", "g.V()"], "asterism: 404: "),
        (["people", "g.V()", "--bindings", "["], "asterism: the bindings are not JSON"),
        (["people", "g.V()", "--key", "d3Jvbmc="], "asterism: the server does not accept the key"),
    ],
)
def test_a_mistake_is_explained_in_one_line(server: RunningServer, arguments: list[str], reason: str) -> None:
    finished = run(server, "gremlin", DATABASE, *arguments)
    assert finished.returncode == 1
    (line,) = finished.stderr.splitlines()
    assert line.startswith(reason)

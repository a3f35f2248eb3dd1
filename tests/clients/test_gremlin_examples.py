"""The examples of docs/guides/graphs.md, run with the clients that they show."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.server import PROJECT, WAIT_SECONDS_MAX, RunningServer, environment, running_server

EXAMPLES = PROJECT / "examples" / "graphs"
# Installed by the Makefile.
NODE_MODULES = PROJECT / ".venv" / "node" / "node_modules"

EXPECTED = {
    "households.py": """\
known to Thomas: ['mary', 'robin']
older than 30: [2]
g.V(['h1', 'thomas']) asked 1 partition(s)
g.V('thomas') asked 4 partition(s)
as documents: ['mary', 'robin']
""",
    "fluent.py": """\
5 airports, 5 flights
from Zurich: ['MUC', 'VIE']
Geneva to Hamburg: 3 flights
long runways: ['GVA', 'HAM', 'MUC']
by country: [('AT', 1), ('CH', 2), ('DE', 2)]
""",
    "friends_with_node.js": """\
[ 'mary', 'robin' ]
[ 'mary', 'robin', 'thomas' ]
""",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("graphs"), doors=("nosql", "gremlin")) as running:
        yield running


def command_of(name: str) -> list[str]:
    if not name.endswith(".js"):
        return [sys.executable, str(EXAMPLES / name)]
    node = shutil.which("node")
    if node is None or not (NODE_MODULES / "gremlin").is_dir():
        pytest.skip("needs Node.js and its client, which `make test` installs")
    return [node, str(EXAMPLES / name)]


def run(name: str, server: RunningServer) -> None:
    places = {
        "ASTERISM_URL": server.endpoint,
        "ASTERISM_GREMLIN_URL": f"ws://127.0.0.1:{server.ports['gremlin']}/",
        "NODE_PATH": os.fspath(NODE_MODULES),
    }
    done = subprocess.run(
        command_of(name),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
        env={**environment(), **places},
    )
    assert (done.stdout, done.returncode) == (EXPECTED[name], 0), done.stderr


@pytest.mark.parametrize("name", ["households.py", "fluent.py"])
def test_an_example_does_what_it_says(name: str, server: RunningServer) -> None:
    run(name, server)


def test_the_client_for_node_reads_the_graph_of_the_other(server: RunningServer) -> None:
    run("households.py", server)
    run("friends_with_node.js", server)


def test_the_guide_names_every_example() -> None:
    guide = (PROJECT / "docs" / "guides" / "graphs.md").read_text()
    examples = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".js")}
    assert examples == set(EXPECTED)
    assert all(name in guide for name in examples)

"""The examples of docs/guides/mongodb.md, run with the drivers and mappers that they show."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import PROJECT, RunningServer, environment

EXAMPLES = PROJECT / "examples" / "mongodb"
# Installed by the Makefile.
NODE_MODULES = PROJECT / ".venv" / "node" / "node_modules"

EXPECTED = {
    "orders_by_customer.py": """\
sharded: shop_example.orders
the latest of one customer: [66, 59]
charge: True
the best customer of the last days: ['c-6']
""",
    "transfer_in_transaction.py": """\
the second transfer was undone
{'anna': 40, 'ben': 60}
entries in the journal: 1
""",
    "follow_changes.py": """\
insert {'_id': 'kitchen', 'celsius': 19}
update {'celsius': 21}
delete 
""",
    "articles_with_mongoengine.py": """\
['Partitions', 'Hot keys']
{'_id': 'data', 'count': 2}
""",
    "notes_with_beanie.py": """\
Call Jan 3 Mira
4
""",
    "basket_with_node.js": """\
3
0 1
250
""",
}  # fmt: skip


def command_of(name: str) -> list[str]:
    if not name.endswith(".js"):
        return [sys.executable, str(EXAMPLES / name)]
    node = shutil.which("node")
    if node is None or not NODE_MODULES.is_dir():
        pytest.skip("needs Node.js and its driver, which `make test` installs")
    return [node, str(EXAMPLES / name)]


@pytest.mark.parametrize("name", list(EXPECTED))
def test_an_example_does_what_it_says(name: str, server: RunningServer) -> None:
    connection = f"mongodb://127.0.0.1:{server.ports['mongo']}/?replicaSet=globaldb"
    done = subprocess.run(
        [*command_of(name), connection],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**environment(), "NODE_PATH": str(NODE_MODULES)},
    )
    assert (done.stdout, done.returncode) == (EXPECTED[name], 0), done.stderr


def test_the_guide_names_every_example() -> None:
    guide = (PROJECT / "docs" / "guides" / "mongodb.md").read_text()
    examples = {path.name for path in Path(EXAMPLES).iterdir() if path.suffix in (".py", ".js")}
    assert examples == set(EXPECTED)
    assert all(name in guide for name in examples)

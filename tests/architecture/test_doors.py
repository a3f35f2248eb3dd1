"""A door is one row: above the doors, only the table of doors names one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from asterism.server.doors import DOORS
from tests.architecture.test_floors import MODULES, PACKAGE, PROJECT, Module, imported_names, read_module

TABLE_OF_DOORS = "server.doors"
ABOVE = ("server", "cli")
FOLDERS = sorted(path.parent.name for path in (PROJECT / PACKAGE / "apis").glob("*/spec.py"))

# `--port` is the option of a door, and every listener has a port; a table is also a way to print, and what
# `asterism partitions --table` shows; `asterism accounts` gives accounts their consistency; Gremlin is the language of
# `asterism gremlin`, and the name of the text in its requests; `asterism queues` works on a queue.
COMMON_WORDS = {"port", "table", "queue", "blob", "consistency", "--consistency", "gremlin"}
NAMES = {name for door in DOORS for name in (door.name, *(port.name for port in door.ports))}
OPTIONS = [option for door in DOORS for option in door.options]
WORDS = {
    *NAMES,
    *(word for option in OPTIONS for word in (option.name, option.flag, option.environment_variable)),
} - COMMON_WORDS


def imported_doors(module: Module) -> list[str]:
    found = []
    for node, name in imported_names(module):
        match = re.match(rf"{PACKAGE}\.apis\.(\w+)", name)
        if match is not None and match[1] in FOLDERS:
            found.append(f"{module.where(node)} imports {name}")
    return found


def words_of(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text):
                yield node, text
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str() as name):
                yield node, name


def named_doors(module: Module) -> list[str]:
    return [f"{module.where(node)} says {word!r}" for node, word in words_of(module.tree) if word in WORDS]


def is_above_the_doors(module: Module) -> bool:
    return module.name.partition(".")[0] in ABOVE and module.name != TABLE_OF_DOORS


# S1 of asterism/server/DESIGN.md.
def test_only_the_table_of_doors_imports_one() -> None:
    assert [offence for module in MODULES if is_above_the_doors(module) for offence in imported_doors(module)] == []


# S1 of asterism/server/DESIGN.md.
def test_no_module_above_the_doors_says_the_name_or_an_option_of_one() -> None:
    assert [offence for module in MODULES if is_above_the_doors(module) for offence in named_doors(module)] == []


def test_every_folder_with_a_spec_is_in_the_table() -> None:
    (table,) = (module for module in MODULES if module.name == TABLE_OF_DOORS)
    assert sorted({name.split(".")[2] for _, name in imported_names(table) if ".spec" in name}) == FOLDERS


@pytest.mark.parametrize(
    ("find", "source"),
    [
        (imported_doors, "from asterism.apis.nosql.door import NoSqlDoor"),
        (imported_doors, "import asterism.apis.table.routes"),
        (named_doors, "is_served = 'nosql' in names"),
        (named_doors, "config.table_port"),
        (named_doors, "Config(lenient_sql=True)"),
        (named_doors, "help = '--cosmos-table-port'"),
        (named_doors, "os.environ['ASTERISM_CONSISTENCY']"),
    ],
)
def test_a_door_that_is_named_is_noticed(find: object, source: str) -> None:
    assert callable(find)
    assert len(find(read_module("server.run", source))) == 1

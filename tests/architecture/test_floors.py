"""The rules of docs/ARCHITECTURE.md that a parser can check, one test each.

A rule that nothing checks is a wish. Every test collects all offences before it fails, so that one run tells the
whole story.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = "asterism"

# A unit is what may import its own parts freely. The longest name that fits a module is its unit, so that
# `apis.nosql` and `apis.admin` are neighbours while `apis` itself (its plain modules) is what they share.
FLOOR_OF_UNIT = {
    "values": 1,
    "errors": 1,
    "clock": 1,
    "limits": 1,
    "metrics": 1,
    "partitioning": 2,
    "throughput": 2,
    "access": 2,
    "storage": 2,
    "storage.memory": 2,
    "storage.lmdb": 2,
    "storage.postgres": 2,
    # For applications: it must not need more than the rules do.
    "keys": 3,
    "keyspaces": 3,
    "models": 4,
    "models.documents": 4,
    "models.tables": 4,
    "models.collections": 4,
    "models.queues": 4,
    "models.blobs": 4,
    "models.event_logs": 4,
    "models.messages": 4,
    "reading": 5,
    "languages": 6,
    "languages.cosmos_sql": 6,
    "languages.odata": 6,
    "languages.blob_sql": 6,
    "languages.bus_sql": 6,
    "languages.mongo": 6,
    "languages.gremlin": 6,
    "scripts": 6,
    "advisor": 6,
    "apis": 7,
    # Every folder with a spec is a door, a neighbour of the others.
    **{f"apis.{path.parent.name}": 7 for path in (PROJECT / PACKAGE / "apis").glob("*/spec.py")},
    "libraries": 7,
    "server": 8,
    "cli": 9,
    "testing": 9,
    # `python -m asterism`, which calls the program; and the package's own version.
    "__main__": 10,
    "": 0,
}

# Floor 1 is the shared vocabulary. Values may say no (errors) and know how large they may be (limits); the reverse
# would be a circle.
SIDEWAYS_ALLOWED = {
    ("values", "errors"),
    ("values", "limits"),
    # A replay without a running server starts a throw-away one, which ends with the command.
    ("cli", "testing"),
}

# Engines are chosen where everything is wired together, and nowhere else.
ENGINE_UNITS = ("storage.memory", "storage.lmdb", "storage.postgres")
UNIT_THAT_NAMES_ENGINES = "server"

UNIT_THAT_IMPORTS = {
    "bson": "values",
    # The driver, which comes with `bson`: for commands that are clients of a server.
    "pymongo": "cli",
    "lmdb": "storage.lmdb",
    "asyncpg": "storage.postgres",
    "granian": "server",
    "uvloop": "server",
    "h11": "server",
    "websockets": "server",
    "cryptography": "server",
    "re2": "values",
    "greenlet": "reading",
    "geographiclib": "languages.cosmos_sql",
    "snowballstemmer": "languages.mongo",
    "quickjs": "scripts",
    "orjson": "values",
    "anycrc": "values",
    "mmh3": "partitioning",
    "typer": "cli",
    "rich": "cli",
    # Of the environments that have them: neither is a dependency of the package.
    "pytest": "testing",
    "azure": "testing",
    "aiohttp": "testing",
    "jinja2": "apis.portal",
    "markupsafe": "apis.portal",
}

PURE_UNITS = {"values", "errors", "limits", "metrics", "partitioning", "throughput", "access"}
IMPURE_MODULES = {"asyncio", "random", "secrets", "socket", "threading", "time", "uuid"}
CLOCK_READINGS = {"now", "utcnow", "today"}

# Doors get requests, messages and streams of bytes; only listeners have sockets.
SOCKET_MODULES = {"socket", "ssl", "select", "selectors", "socketserver"}
SOCKET_NAMES = {"open_connection", "start_server", "StreamReader", "StreamWriter", "Protocol", "Transport"}
CODEC_NAME = re.compile(r"apis\..*\b(?:\w+_)?codec")

# A door translates; what it needs of the store, keyspaces and models give in their own terms.
STORE_UNIT = "storage"

UNITS_THAT_PRINT = {"cli", "server"}
MODULE_LINES_MAX = 500
PATH_OF_ONE_MACHINE = re.compile(r"(?:^|[\s\"'=:(])/(?:tmp|home|root|opt|work|usr|var|Users)(?:/|$)")


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name below the package ("" is the package itself) and what it says."""

    name: str
    is_package: bool
    tree: ast.Module
    line_count: int

    @property
    def unit(self) -> str:
        return unit_of(self.name)

    def where(self, node: ast.AST) -> str:
        return f"{PACKAGE}.{self.name}:{getattr(node, 'lineno', 1)}"


def unit_of(name: str) -> str:
    parts = name.split(".")
    candidates = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((candidate for candidate in candidates if candidate in FLOOR_OF_UNIT), parts[0])


def read_module(name: str, source: str, *, is_package: bool = False) -> Module:
    return Module(name, is_package, ast.parse(source), len(source.splitlines()))


def read_package(root: Path) -> list[Module]:
    modules = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        modules.append(read_module(name, path.read_text(encoding="utf-8"), is_package=is_package))
    return modules


def imported_names(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Every dotted name a module imports, absolute, with `from a import b` as `a.b`. Type-checking imports count."""
    own_package = [PACKAGE, *filter(None, module.name.split("."))]
    if not module.is_package:
        own_package.pop()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = own_package[: len(own_package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from ((node, f"{base}.{alias.name}") for alias in node.names)


def imported_units(module: Module) -> Iterator[tuple[ast.AST, str]]:
    for node, name in imported_names(module):
        head, _, rest = name.partition(".")
        if head == PACKAGE:
            # `from asterism import __version__` names the package itself.
            yield node, unit_of(rest) if unit_of(rest) in FLOOR_OF_UNIT else ""


def climbs(module: Module) -> list[str]:
    return [
        f"{module.where(node)} (floor {FLOOR_OF_UNIT[module.unit]}) imports {unit} (floor {FLOOR_OF_UNIT[unit]})"
        for node, unit in imported_units(module)
        if FLOOR_OF_UNIT[unit] > FLOOR_OF_UNIT[module.unit]
    ]


def sidesteps(module: Module) -> list[str]:
    def is_allowed(unit: str) -> bool:
        is_own = unit == module.unit or module.unit.startswith(f"{unit}.")
        is_other_floor = FLOOR_OF_UNIT[unit] != FLOOR_OF_UNIT[module.unit]
        # A package's own __init__ may gather what is inside the package, engines excepted (they have their own rule).
        is_part_of_own = unit.startswith(f"{module.unit}.") and unit not in ENGINE_UNITS
        return is_own or is_other_floor or is_part_of_own or (module.unit, unit) in SIDEWAYS_ALLOWED

    return [
        f"{module.where(node)} imports {unit}, its neighbour on floor {FLOOR_OF_UNIT[unit]}"
        for node, unit in imported_units(module)
        if not is_allowed(unit)
    ]


def engines_named(module: Module) -> list[str]:
    return [
        f"{module.where(node)} names the engine {unit}; only {UNIT_THAT_NAMES_ENGINES} may"
        for node, unit in imported_units(module)
        if unit in ENGINE_UNITS and module.unit not in (unit, UNIT_THAT_NAMES_ENGINES)
    ]


def strangers(module: Module) -> list[str]:
    offences = []
    for node, name in imported_names(module):
        package = name.partition(".")[0]
        if package == PACKAGE or package in sys.stdlib_module_names:
            continue
        unit = UNIT_THAT_IMPORTS.get(package)
        if unit is None:
            offences.append(f"{module.where(node)} imports {package}, which is in no row of UNIT_THAT_IMPORTS")
        elif module.unit != unit:
            offences.append(f"{module.where(node)} imports {package}, which belongs to {unit}")
    return offences


def impurities(module: Module) -> list[str]:
    return impurities_of(module) if module.unit in PURE_UNITS else []


def impurities_of(module: Module) -> list[str]:
    imports = [
        f"{module.where(node)} imports {name}"
        for node, name in imported_names(module)
        if name.partition(".")[0] in IMPURE_MODULES
    ]
    asynchronous = [
        f"{module.where(node)} is asynchronous"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
    ]
    clocks = [
        f"{module.where(node)} reads a clock"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_READINGS
    ]
    return [*imports, *asynchronous, *clocks]


def sockets(module: Module) -> list[str]:
    if module.unit.partition(".")[0] != "apis":
        return []
    imports = [
        f"{module.where(node)} imports {name}"
        for node, name in imported_names(module)
        if name.partition(".")[0] in SOCKET_MODULES
        or (name.partition(".")[0] == "asyncio" and name.rpartition(".")[2] in SOCKET_NAMES)
    ]
    uses = [
        f"{module.where(node)} uses asyncio.{node.attr}"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.value.id == "asyncio" and node.attr in SOCKET_NAMES
    ]
    return [*imports, *uses]


def codecs_that_wait(module: Module) -> list[str]:
    return impurities_of(module) if CODEC_NAME.fullmatch(module.name) else []


def stores_seen(module: Module) -> list[str]:
    if module.unit.partition(".")[0] != "apis":
        return []
    return [
        f"{module.where(node)} imports {unit}"
        for node, unit in imported_units(module)
        if unit.partition(".")[0] == STORE_UNIT
    ]


def prints(module: Module) -> list[str]:
    return [
        f"{module.where(node)} prints"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        if module.unit not in UNITS_THAT_PRINT
    ]


def oversize(module: Module) -> list[str]:
    is_oversize = module.line_count > MODULE_LINES_MAX
    return [f"{PACKAGE}.{module.name} has {module.line_count} lines"] if is_oversize else []


def paths_of_one_machine(module: Module) -> list[str]:
    return [
        f"{module.where(node)} names a path of one machine: {node.value[:60]!r}"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and PATH_OF_ONE_MACHINE.search(node.value)
    ]


MODULES = read_package(PROJECT / PACKAGE)


def tell(rule: str, find: Callable[[Module], list[str]]) -> str:
    """Empty when every module keeps the rule; otherwise the rule and one line per offence."""
    offences = [offence for module in MODULES for offence in find(module)]
    return "\n  ".join([rule, *offences]) if offences else ""


def test_every_module_stands_on_a_known_floor() -> None:
    homeless = [module.name for module in MODULES if module.unit not in FLOOR_OF_UNIT]
    assert homeless == [], "give these a row in FLOOR_OF_UNIT and in docs/ARCHITECTURE.md"


def test_no_module_imports_a_higher_floor() -> None:
    assert not tell("a module imports its own package and lower floors", climbs)


def test_no_module_imports_a_neighbour_on_its_own_floor() -> None:
    assert not tell("packages of one floor do not know each other", sidesteps)


def test_only_the_server_names_a_storage_engine() -> None:
    assert not tell("everything below the server sees the storage contract only", engines_named)


def test_each_third_party_package_is_imported_by_one_of_our_packages() -> None:
    assert not tell("a dependency has one door into the code", strangers)


def test_rules_are_pure() -> None:
    assert not tell("floors 1 and 2 get time, chance and input as arguments and never wait", impurities)


def test_doors_have_no_sockets() -> None:
    assert not tell("doors see transports, listeners have sockets", sockets)


def test_doors_do_not_see_the_store() -> None:
    assert not tell("doors import keyspaces and models, never storage", stores_seen)


def test_codecs_never_wait() -> None:
    assert not tell("a codec turns bytes into messages, without a clock, a socket or an await", codecs_that_wait)


def test_only_the_program_prints() -> None:
    assert not tell("a library has no business on the terminal", prints)


def test_no_module_eats_the_project() -> None:
    assert not tell(f"a module has at most {MODULE_LINES_MAX} lines", oversize)


def test_no_module_names_a_path_of_one_machine() -> None:
    assert not tell("paths arrive as configuration", paths_of_one_machine)


@pytest.mark.parametrize(
    ("find", "name", "source"),
    [
        (climbs, "values.item", "from asterism.keyspaces import catalog"),
        (climbs, "models.documents.items", "from ...apis.nosql import routes"),
        (sidesteps, "apis.nosql.items", "from asterism.apis.admin import routes"),
        (sidesteps, "partitioning.placement", "from asterism.throughput.charge import price"),
        (sidesteps, "errors", "from asterism.values import item"),
        (engines_named, "keyspaces.routing.router", "from asterism.storage import lmdb"),
        (engines_named, "storage.checked", "import asterism.storage.lmdb.engine"),
        (strangers, "models.documents.items", "import orjson"),
        (strangers, "server.config", "import pydantic"),
        (impurities, "throughput.token_bucket", "import time"),
        (impurities, "access.master_key", "from datetime import datetime\nmoment = datetime.now()"),
        (impurities, "partitioning.partition_map", "async def publish(): ..."),
        (sockets, "apis.mongo.door", "import socket"),
        (sockets, "apis.transports.tcp", "from asyncio import StreamReader"),
        (sockets, "apis.amqp.door", "import asyncio\nasyncio.start_server"),
        (stores_seen, "apis.mongo.door", "from asterism.storage.contract import Span"),
        (stores_seen, "apis.pipeline", "import asterism.storage.nodes"),
        (stores_seen, "apis.services", "if TYPE_CHECKING:\n    from asterism.storage.lmdb import LmdbEngine"),
        (codecs_that_wait, "apis.mongo.codec", "import asyncio"),
        (codecs_that_wait, "apis.amqp.frame_codec", "async def receive(): ..."),
        (prints, "keyspaces.routing.router", "print('here')"),
        (oversize, "languages.cosmos_sql.parser", "\n" * (MODULE_LINES_MAX + 1)),
        (paths_of_one_machine, "server.config", "DATA = '/home/me/data'"),
    ],
)
def test_an_offence_is_noticed(find: Callable[[Module], list[str]], name: str, source: str) -> None:
    assert len(find(read_module(name, source))) == 1


@pytest.mark.parametrize(
    ("find", "name", "source"),
    [
        (climbs, "cli.main", "from asterism import __version__"),
        (sidesteps, "apis.nosql.items", "from asterism.apis import responses"),
        (sidesteps, "storage.lmdb.engine", "from asterism.storage.contract import Engine"),
        (sidesteps, "values.item", "from asterism.errors import MalformedRequest"),
        (engines_named, "server.assemble", "from asterism.storage.lmdb import open_engine"),
        (engines_named, "storage.lmdb.engine", "from .commits import CommitQueue"),
        (stores_seen, "models.tables.table", "from asterism.storage.contract import Batch"),
        (stores_seen, "apis.mongo.door", "from asterism.keyspaces.routing.refusals import REPORTED"),
        (strangers, "storage.lmdb.engine", "import lmdb"),
        (impurities, "clock", "import time"),
        (paths_of_one_machine, "apis.nosql.routes", "ROUTE = '/dbs/{database}/colls'"),
    ],
)
def test_what_the_rules_allow_is_left_alone(find: Callable[[Module], list[str]], name: str, source: str) -> None:
    assert find(read_module(name, source)) == []

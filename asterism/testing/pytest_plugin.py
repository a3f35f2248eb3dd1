"""Fixtures for pytest: `asterism`, a server that is empty before each test, and `asterism_server`, `asterism_factory`.

Every pytest run of an environment with this package loads this module, so it imports nothing of the server.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from asterism.testing.early_look import any_names_a_fixture, names_a_fixture

if TYPE_CHECKING:
    from asterism.testing import Server

SCOPES = ("session", "test")
SETTINGS = ("asterism_scope", "asterism_data", "asterism_options")
_WARM = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("asterism_scope", "A server for the whole session (default) or for each test: session, test.")
    parser.addini("asterism_data", "Where its data is: memory (default), disk, or a directory that is kept.")
    parser.addini("asterism_options", "Options of `asterism serve`, as on a command line.", type="args")


def _setting(config: pytest.Config, name: str, default: str) -> str:
    return str(config.getini(name)).strip() or default


def _scope(fixture_name: str, config: pytest.Config) -> Literal["session", "function"]:  # noqa: ARG001 - pytest's form
    chosen = _setting(config, "asterism_scope", SCOPES[0])
    if chosen not in SCOPES:
        raise pytest.UsageError(f"asterism_scope is {chosen!r}; it must be one of: {', '.join(SCOPES)}")
    return "session" if chosen == "session" else "function"


# --- the start of the first server ------------------------------------------------------------------------------------


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Look as early as possible: the rest of the start of pytest, and the collection, then take place meanwhile."""
    known = early_config.known_args_namespace
    given = [text.partition("::")[0] for text in known.file_or_dir]
    places = given or [str(early_config.rootpath / text) for text in early_config.getini("testpaths")]
    is_set = any(early_config.getini(name) for name in SETTINGS)
    # The controller of pytest-xdist runs no tests.
    runs_tests = "PYTEST_XDIST_WORKER" in os.environ or not getattr(known, "numprocesses", None)
    runs_tests = runs_tests and not (known.collectonly or known.help or known.version)
    if runs_tests and (is_set or any_names_a_fixture(map(Path, places or ["."]))):
        _warm_up(early_config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> None:
    """Look whether a module will need a server, before the module and its libraries are imported."""
    config = parent.config
    if config.stash.get(_WARM, False) or config.getoption("collectonly"):
        return
    if file_path.suffix == ".py" and names_a_fixture(file_path):
        _warm_up(config)


def _warm_up(config: pytest.Config) -> None:
    """Begin to load the server in another process, once, while this one goes on."""
    if not config.stash.get(_WARM, False):
        config.stash[_WARM] = True
        from asterism.testing.launcher import warm_up

        warm_up()


# --- fixtures ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope=_scope)
def asterism_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A throw-away server, never emptied: for fixtures that live as long as it. See asterism_scope."""
    with _new_server(request.config) as server:
        yield server


@pytest.fixture
def asterism(asterism_server: Server) -> Server:
    """A throw-away server without any data: what other tests have left is deleted before each test."""
    asterism_server.reset()
    return asterism_server


@pytest.fixture
def asterism_factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., Server]]:
    """A function that starts further servers, with the arguments of `Server`; they end with the test."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def start(**arguments: Any) -> Server:
            return stack.enter_context(_new_server(request.config, **arguments))

        yield start


def _new_server(config: pytest.Config, **arguments: Any) -> Server:
    from asterism.testing import Server

    data = arguments.pop("data", None) or _setting(config, "asterism_data", "memory")
    options = [*config.getini("asterism_options"), *arguments.pop("options", ())]
    return Server(data=data, options=options, **arguments)

"""Throw-away servers for test suites: `Server` for any test framework, fixtures for pytest in `pytest_plugin`.

The names are loaded when they are used: every pytest run of an environment with this package imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asterism.testing.errors import ClientNotInstalled, RequestRefused, ServerNotStarted
    from asterism.testing.server import Server

_ERRORS = frozenset({"ClientNotInstalled", "RequestRefused", "ServerNotStarted"})


def __getattr__(name: str) -> Any:
    if name == "Server":
        from asterism.testing import server

        return server.Server
    if name in _ERRORS:
        from asterism.testing import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["ClientNotInstalled", "RequestRefused", "Server", "ServerNotStarted"]

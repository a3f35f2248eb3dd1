"""The ways in which a server for tests, or a request to it, can fail."""

from __future__ import annotations


class ServerNotStarted(Exception):
    """The server could not start, or does not run; the text has its reason and its log."""


class RequestRefused(Exception):
    """The server refused a request of the test suite, such as a split; the text is the server's reason."""


class ClientNotInstalled(ImportError):
    """The official client that a helper makes is not installed; the text says how to install it."""

"""Classification of the errors of a database and of its connections."""

from __future__ import annotations

import asyncpg

from asterism.storage.contract import EngineFailed, OutOfSpace, StorageRefusal

# Servers that are stopping, starting or have become a standby: another connection may succeed.
LOST_STATES = ("08", "57P", "25006")
FULL_STATES = ("53100", "53200", "54000")
# The address, the role, its password or the database is wrong: waiting does not help.
HOPELESS_STATES = ("28", "3D000", "42704")
# The transaction was rolled back for a transient reason, and can be retried.
TRANSIENT_STATES = ("40", "55P03", "53300")


class ConnectionLost(Exception):
    """A connection ended, or was given up, during a statement, whose outcome is unknown."""


class TransientError(Exception):
    """The database rolled back a statement for a transient reason."""


def is_lost(error: BaseException) -> bool:
    """Return True if the connection failed."""
    return _is_in(LOST_STATES, error) or isinstance(error, OSError | EOFError | TimeoutError | asyncpg.InterfaceError)


def is_transient(error: BaseException) -> bool:
    return _is_in(TRANSIENT_STATES, error)


def message_of(error: BaseException | None) -> str:
    """Return the message of an error; a connection that was given up has none of its own."""
    return str(error or "") or "no answer in time"


def is_hopeless(error: Exception) -> bool:
    """Return True if an attempt to connect cannot succeed later."""
    return _is_in(HOPELESS_STATES, error) or isinstance(error, ValueError)


def translate(error: Exception) -> StorageRefusal:
    """Return the refusal for an error of the database, if the connection did not fail."""
    if isinstance(error, StorageRefusal):
        return error
    if _is_in(FULL_STATES, error):
        return OutOfSpace(str(error))
    return EngineFailed(f"{type(error).__name__}: {error}")


def _is_in(states: tuple[str, ...], error: BaseException) -> bool:
    return isinstance(error, asyncpg.PostgresError) and (error.sqlstate or "").startswith(states)

"""What the errors of a database and of the way to it mean."""

from __future__ import annotations

import asyncpg

from asterism.storage.contract import EngineFailed, OutOfSpace, StorageRefusal

# Servers that are going down, coming up or have become a standby: another connection may do better.
GONE_STATES = ("08", "57P", "25006")
FULL_STATES = ("53100", "53200", "54000")
# The address, the role, its password or the database is wrong: no waiting mends that.
HOPELESS_STATES = ("28", "3D000", "42704")
# The transaction was undone for a reason that has passed when it is tried again.
PASSING_STATES = ("40", "55P03", "53300")


class ConnectionLost(Exception):
    """A connection ended, or was given up, while something was asked of it; whether that was done is not known."""


class TryAgain(Exception):
    """The database undid what was asked, for a reason that passes."""


def is_lost(error: BaseException) -> bool:
    """Whether it was the connection that failed."""
    return _is_in(GONE_STATES, error) or isinstance(error, OSError | EOFError | TimeoutError | asyncpg.InterfaceError)


def is_passing(error: BaseException) -> bool:
    return _is_in(PASSING_STATES, error)


def in_words(error: BaseException | None) -> str:
    """A connection that was given up has nothing to say for itself."""
    return str(error or "") or "no answer in time"


def is_hopeless(error: Exception) -> bool:
    """Of an attempt to connect."""
    return _is_in(HOPELESS_STATES, error) or isinstance(error, ValueError)


def translate(error: Exception) -> StorageRefusal:
    """The refusal that an error of the database means, if it was not the connection that failed."""
    if isinstance(error, StorageRefusal):
        return error
    if _is_in(FULL_STATES, error):
        return OutOfSpace(str(error))
    return EngineFailed(f"{type(error).__name__}: {error}")


def _is_in(states: tuple[str, ...], error: BaseException) -> bool:
    return isinstance(error, asyncpg.PostgresError) and (error.sqlstate or "").startswith(states)

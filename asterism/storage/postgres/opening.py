"""Preparation of a database: its tables and functions, and its identity as a node of a fleet."""

from __future__ import annotations

from dataclasses import dataclass

import asyncpg

from asterism.storage.contract import EngineFailed
from asterism.storage.postgres.connections import Link
from asterism.storage.postgres.database_errors import ConnectionLost, TransientError
from asterism.storage.postgres.layout import (
    FORMAT_VERSION,
    FUNCTIONS,
    FUNCTIONS_VERSION,
    OLDEST_FORMAT_VERSION,
    TABLES,
)
from asterism.storage.postgres.node import ADVISORY_LOCK, PostgresNode
from asterism.values.identifiers import NodeNumber

OLDEST_SERVER = 150000

READ_VERSIONS = "SELECT format_version, functions_version FROM asterism.node"
READ_IDENTITY = "SELECT fleet, number, name FROM asterism.node"
# A database without an identity, or already with this one.
CLAIM_IDENTITY = """
UPDATE asterism.node SET fleet = $1, number = $2, name = $3
WHERE fleet IS NULL OR (fleet = $1 AND number = $2) RETURNING name
"""


@dataclass(frozen=True, slots=True)
class DatabaseIdentity:
    """Fleet and node of a database; stored in the database, so that it cannot be taken for another."""

    fleet: str
    number: NodeNumber
    name: str


async def prepare_database(node: PostgresNode) -> None:
    """Create missing tables and functions; refuse a server that is too old and a database of another format."""
    version = await node.ask(node.writers, node.timeouts.read_seconds, "SELECT current_setting('server_version_num')")
    if int(version[0]) < OLDEST_SERVER:
        raise EngineFailed("the server is older than PostgreSQL 15; upgrade it")
    deadline = node.writers.deadline()
    while True:
        link = await node.writers.acquire(deadline)
        try:
            await _prepare(node, link)
            return
        except (ConnectionLost, TransientError) as error:
            node.writers.check_time(deadline, error)
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise EngineFailed(f"the database cannot be prepared: {error}") from error
        finally:
            node.writers.release(link)


async def _prepare(node: PostgresNode, link: Link) -> None:
    seconds = node.timeouts.commit_seconds
    try:
        versions = await link.ask(seconds, READ_VERSIONS)
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        versions = None
    if versions is not None and not OLDEST_FORMAT_VERSION <= versions[0] <= FORMAT_VERSION:
        raise EngineFailed(
            f"the database has format version {versions[0]}, but this program supports versions up to "
            f"{FORMAT_VERSION}; use a later version of the program"
        )
    if versions is not None and versions[0] < FORMAT_VERSION:
        # The engine's own tables are unchanged; the floors above convert the contents of partitions.
        await link.run(seconds, f"UPDATE asterism.node SET format_version = {FORMAT_VERSION};")
    if versions is None or versions[1] < FUNCTIONS_VERSION:
        lock = f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK});"
        seen = f"UPDATE asterism.node SET functions_version = {FUNCTIONS_VERSION};"
        await link.run(seconds, lock + TABLES + FUNCTIONS + seen)


async def read_identity(node: PostgresNode) -> DatabaseIdentity | None:
    row = await node.ask(node.writers, node.timeouts.read_seconds, READ_IDENTITY)
    return None if row[0] is None else DatabaseIdentity(row[0], NodeNumber(row[1]), row[2])


async def claim_identity(node: PostgresNode, identity: DatabaseIdentity) -> None:
    claimed = await node.ask(
        node.writers, node.timeouts.commit_seconds, CLAIM_IDENTITY, identity.fleet, identity.number, identity.name
    )
    if claimed is None:
        raise EngineFailed(f"the database is another node: {await read_identity(node)}")

"""The engine over a PostgreSQL server and its standbys."""

from __future__ import annotations

from asterism.storage.postgres.addresses import without_password
from asterism.storage.postgres.connections import Timeouts
from asterism.storage.postgres.engine import PostgresEngine
from asterism.storage.postgres.opening import DatabaseIdentity

__all__ = ["DatabaseIdentity", "PostgresEngine", "Timeouts", "without_password"]

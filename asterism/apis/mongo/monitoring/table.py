"""The rows of all commands about the server itself."""

from __future__ import annotations

from asterism.apis.mongo.monitoring import (
    current_operations,
    flushing,
    host,
    logs,
    parameters,
    profiling,
    server_status,
    small_commands,
)

COMMANDS = (
    *server_status.COMMANDS,
    *host.COMMANDS,
    *parameters.COMMANDS,
    *current_operations.COMMANDS,
    *logs.COMMANDS,
    *profiling.COMMANDS,
    *flushing.COMMANDS,
    *small_commands.COMMANDS,
)

"""All commands of the door, by name. Names are case-sensitive, as MongoDB's are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from asterism.apis.mongo import (
    chunks,
    cursors,
    custom_actions,
    diagnostics,
    indexes,
    plan_cache,
    search_indexes,
    sessions,
    sharding,
)
from asterism.apis.mongo.administration import table as administration
from asterism.apis.mongo.commands import Command
from asterism.apis.mongo.data import table as data
from asterism.apis.mongo.monitoring import table as monitoring
from asterism.apis.mongo.users import login_commands, role_commands, user_commands


def _by_name(commands: Iterable[Command]) -> dict[str, Command]:
    found: dict[str, Command] = {}
    for command in commands:
        for name in (command.name, *command.aliases):
            assert name not in found, f"two commands are named {name}"
            found[name] = command
    return found


COMMANDS: Final = _by_name(
    (
        *diagnostics.COMMANDS,
        *monitoring.COMMANDS,
        *sessions.COMMANDS,
        *search_indexes.COMMANDS,
        *cursors.COMMANDS,
        *administration.COMMANDS,
        *indexes.COMMANDS,
        *plan_cache.COMMANDS,
        *sharding.COMMANDS,
        *chunks.COMMANDS,
        *custom_actions.COMMANDS,
        *data.COMMANDS,
        *login_commands.COMMANDS,
        *user_commands.COMMANDS,
        *role_commands.COMMANDS,
    )
)

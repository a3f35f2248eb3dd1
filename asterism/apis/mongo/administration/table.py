"""The rows of all commands about databases and collections."""

from __future__ import annotations

from asterism.apis.mongo.administration import (
    capped,
    coll_mod,
    collections,
    create,
    databases,
    maintenance,
    renaming,
    statistics,
)

COMMANDS = (
    *databases.COMMANDS,
    *create.COMMANDS,
    *collections.COMMANDS,
    *coll_mod.COMMANDS,
    *renaming.COMMANDS,
    *statistics.COMMANDS,
    *capped.COMMANDS,
    *maintenance.COMMANDS,
)

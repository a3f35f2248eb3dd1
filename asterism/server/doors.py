"""The doors of the server, a line each. No other module of the server or the program names a door."""

from __future__ import annotations

from typing import Any

from asterism.apis.admin.spec import MODULES as ADMIN_MODULES
from asterism.apis.admin.spec import build_admin_door
from asterism.apis.amqp.spec import SPEC as AMQP
from asterism.apis.blob.spec import SPEC as BLOB
from asterism.apis.door_spec import DoorSpec
from asterism.apis.gremlin.spec import SPEC as GREMLIN
from asterism.apis.mongo.spec import SPEC as MONGO
from asterism.apis.nosql.spec import SPEC as NOSQL
from asterism.apis.portal.spec import SPEC as PORTAL
from asterism.apis.queue.spec import SPEC as QUEUE
from asterism.apis.table.spec import SPEC as TABLE

# In the order of the greeting and the help. The first door's port is where commands look for a server.
DOORS: tuple[DoorSpec[Any], ...] = (
    NOSQL,
    TABLE,
    QUEUE,
    BLOB,
    MONGO,
    GREMLIN,
    AMQP,
    PORTAL,
)

# Answers the operator, at a prefix of every HTTP port.
build_operator_door = build_admin_door
OPERATOR_MODULES = ADMIN_MODULES

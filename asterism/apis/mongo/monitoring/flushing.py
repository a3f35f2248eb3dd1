"""`fsync` and `fsyncUnlock`: a lock that holds up the writes of this door, for copies of the data from outside.

Every acknowledged write is durable, so that a flush has nothing to do. Writes through other doors are not held up.
"""

from __future__ import annotations

from typing import Final

from asterism.apis.mongo.arguments import TRUTH
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, FieldRule
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document, Int64

_SEE_ALSO: Final = "https://www.mongodb.com/docs/manual/reference/command/fsync"


async def fsync(call: Call) -> Document:
    if not call.flag("lock"):
        return {"numFiles": 1}
    count = call.context.write_lock.take()
    return {
        "info": "now locked against writes, use db.fsyncUnlock() to unlock",
        "lockCount": Int64(count),
        "seeAlso": _SEE_ALSO,
    }


async def fsync_unlock(call: Call) -> Document:
    lock = call.context.write_lock
    if not lock.count:
        raise MongoFailure(20, "fsyncUnlock called when not locked")
    return {"info": "fsyncUnlock completed", "lockCount": Int64(lock.release()), "seeAlso": _SEE_ALSO}


COMMANDS = (
    Command("fsync", fsync, "Hold up writes.", admin_only=True, access=Access.CLUSTER_ADMIN,
            fields={"lock": FieldRule(TRUTH), "fsyncLockAcquisitionTimeoutMillis": FieldRule(("int",))}),
    Command("fsyncUnlock", fsync_unlock, "Let writes go on.", admin_only=True, access=Access.CLUSTER_ADMIN,
            ignores_unknown_fields=True),
)  # fmt: skip

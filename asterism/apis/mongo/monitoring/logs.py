"""`getLog` and `logRotate`: the newest lines of the log, which goes to the process's error output."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from typing import Any, Final

from asterism.apis.mongo.arguments import NUMBER, wrong_type
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import Document

# As many lines as MongoDB keeps.
_LINES_MAX: Final = 1024
_SEVERITIES: Final = {logging.DEBUG: "D1", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E"}
_COMPONENT: Final = "ASTERISM"


class RecentLines(logging.Handler):
    """Keeps the newest lines of the log, in MongoDB's own form. One per process."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=_LINES_MAX)
        self.total = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.add(record.created, _SEVERITIES.get(record.levelno, "I"), record.name, record.getMessage())

    def add(self, seconds: float, severity: str, context: str, message: str) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        milliseconds = int(seconds * 1000) % 1000
        line = {
            "t": {"$date": f"{moment}.{milliseconds:03}+00:00"},
            "s": severity,
            "c": _COMPONENT,
            "ctx": context,
            "msg": message,
        }
        self.lines.append(json.dumps(line, ensure_ascii=False))
        self.total += 1


RECENT: Final = RecentLines()


def keep_recent_lines(seconds: float) -> None:
    """Begin to keep lines. Only the first call of a process does something."""
    logger = logging.getLogger("asterism")
    if RECENT not in logger.handlers:
        logger.addHandler(RECENT)
        RECENT.add(seconds, "I", "asterism.mongo", "MongoDB clients are served")


async def get_log(call: Call) -> Document:
    wanted: Any = call.target
    if wanted is None:
        raise MongoFailure(40414, "BSON field 'getLog.getLog' is missing but a required field")
    if type(wanted) is not str:
        raise wrong_type("getLog", wanted, ("string",))
    if wanted == "*":
        return {"names": ["global", "startupWarnings"]}
    if wanted == "startupWarnings":
        return {"totalLinesWritten": 0, "log": []}
    if wanted != "global":
        raise MongoFailure(96, f"No log named '{wanted}'")
    return {"totalLinesWritten": RECENT.total, "log": list(RECENT.lines)}


async def log_rotate(call: Call) -> Document:
    """Do nothing but check the command: there is no file to be closed and opened again."""
    wanted: Any = call.target
    if type(wanted) is str:
        if wanted == "audit":
            raise MongoFailure(4, "There is no audit log")
        if wanted != "server":
            raise MongoFailure(4, f"Unknown log type '{wanted}'")
    elif type_name(wanted) not in ("bool", *NUMBER):
        raise wrong_type("logRotate", wanted, ("string", "bool", *NUMBER))
    return {}


COMMANDS = (
    Command("getLog", get_log, "Lines of the log.", admin_only=True),
    Command("logRotate", log_rotate, "Begin a new log file, of which there is none.", admin_only=True,
            access=Access.CLUSTER_ADMIN),
)  # fmt: skip

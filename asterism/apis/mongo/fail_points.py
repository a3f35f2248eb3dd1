"""Failures that a test suite asks for (`configureFailPoint`), only on a server with `--test-controls`."""

from __future__ import annotations

import asyncio
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document


class ConnectionClosed(Exception):
    """The connection is to be closed instead of an answer."""


class FailPoints:
    """The state of `failCommand`, the only fail point there is."""

    def __init__(self) -> None:
        self._left = 0
        self._always = False
        self._data: Document = {}

    def configure(self, mode: Any, data: Document) -> None:
        self._data = data
        self._always = mode == "alwaysOn"
        self._left = int(mode.get("times", 0)) if isinstance(mode, dict) else 0

    async def meet(self, name: str, application: str = "") -> Document | None:
        """Fail, or delay, a command as configured; return the write concern error it is to be answered with."""
        if not (self._always or self._left > 0) or name not in self._data.get("failCommands", ()):
            return None
        if self._data.get("appName") not in (None, application):
            return None
        self._left -= 0 if self._always else 1
        if self._data.get("blockConnection"):
            await asyncio.sleep(min(float(self._data.get("blockTimeMS", 0)), 60_000) / 1000)
        if self._data.get("closeConnection"):
            raise ConnectionClosed
        if "errorCode" in self._data:
            code = int(self._data["errorCode"])
            labels = tuple(self._data.get("errorLabels", ()))
            raise MongoFailure(code, "Failing command via 'failCommand' failpoint", labels=labels)
        concern = self._data.get("writeConcernError")
        return dict(concern) if isinstance(concern, dict) else None

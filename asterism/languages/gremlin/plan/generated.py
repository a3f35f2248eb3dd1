"""Values that each request gets anew: the time of `datetime()` and the identifiers of `UUID()`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from asterism.languages.gremlin.tree import NOW, RANDOM_UUID

# Calls for such a value; texts without one keep their plan from request to request.
_CALL = re.compile(r"(?i:UUID|datetime|now)\s*\(\s*\)")


def may_generate(text: str) -> bool:
    """Return whether a text may call for a value that differs between requests."""
    # Every request comes here, and nearly no text has one of the words.
    return ("UUID" in text or "ate" in text or "now" in text) and _CALL.search(text) is not None


class RequestValues(Mapping[str, Any]):
    """The bindings of a request and its generated values: one time, and a new identifier for every call."""

    __slots__ = ("_bindings", "_now", "_random_bytes")

    def __init__(
        self, bindings: Mapping[str, Any], *, now_seconds: float, random_bytes: Callable[[int], bytes]
    ) -> None:
        self._bindings = bindings
        self._now = datetime.fromtimestamp(now_seconds, UTC)
        self._random_bytes = random_bytes

    def __getitem__(self, name: str) -> Any:
        if name == NOW.name:
            return self._now
        if name == RANDOM_UUID.name:
            return UUID(bytes=self._random_bytes(16), version=4)
        return self._bindings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._bindings)

    def __len__(self) -> int:
        return len(self._bindings)

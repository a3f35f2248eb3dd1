"""Values that each request gets anew: the time of `datetime()` and the identifiers of `UUID()`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from asterism.languages.gremlin.tree import NOW, RANDOM_UUID

# Texts in which these words stand may call for such a value; those that do not keep their plan from request to request.
_WORDS = ("UUID", "datetime", "DateTime", "Datetime", "Instant")
_CALL = re.compile(r"(?i:UUID|datetime|now)\s*\(\s*\)")


def may_generate(text: str) -> bool:
    """Return whether a text may call for a value that differs between requests."""
    return any(word in text for word in _WORDS) and _CALL.search(text) is not None


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

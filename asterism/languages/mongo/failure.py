"""A refusal in the words of the protocol: a code that clients compare, and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class MongoFailure(Exception):
    """Raised wherever a command, an operator or a document is not acceptable. `details` are further fields of the
    answer, such as `keyPattern`; `labels` are what drivers look at before they retry."""

    def __init__(
        self, code: int, message: str, *, details: Mapping[str, Any] | None = None, labels: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details or {}
        self.labels = labels

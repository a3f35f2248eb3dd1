"""Cache of recently verified signatures."""

from __future__ import annotations

from typing import Final, TypeVar

CHECKED_SIGNATURES_MAX: Final = 4096

Signed = tuple[str | None, ...]
Granted = TypeVar("Granted")


class CheckedSignatures(dict[Signed, Granted]):
    """Map from everything that a signature depends on, the signature included, to its grant.

    Clients date by the second: their requests for one resource within a second carry the same signature, checked once.
    Only valid signatures are kept, and a lookup reveals nothing about any other signature.
    """

    def remember(self, signed: Signed, granted: Granted) -> None:
        if len(self) >= CHECKED_SIGNATURES_MAX:
            self.clear()
        self[signed] = granted

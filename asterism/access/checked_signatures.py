"""What was found good lately, so that it need not be checked again."""

from __future__ import annotations

from typing import Final, TypeVar

CHECKED_SIGNATURES_MAX: Final = 4096

Signed = tuple[str | None, ...]
Granted = TypeVar("Granted")


class CheckedSignatures(dict[Signed, Granted]):
    """Everything that a signature depends on, the signature included -> what it grants.

    Clients date by the second: what they ask of one resource within it carries one signature, checked once. Only what
    was found good is kept, and a look-up tells nothing about any other signature.
    """

    def remember(self, signed: Signed, granted: Granted) -> None:
        if len(self) >= CHECKED_SIGNATURES_MAX:
            self.clear()
        self[signed] = granted

"""The undefined value: the result of a missing path, in keys, filters and results alike."""

from __future__ import annotations

from typing import Final, final


@final
class Undefined:
    """The type of `UNDEFINED`, its only instance. Distinct from None, which is JSON's null."""

    _only: Undefined | None = None

    def __new__(cls) -> Undefined:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "UNDEFINED"

    def __bool__(self) -> bool:
        return False


UNDEFINED: Final = Undefined()

"""The figure that a case found, beside the promised one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """One number. With `at_least` or `at_most` it is a promise that is kept or not; without, it is information."""

    case: str
    name: str
    value: float | None
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def is_kept(self) -> bool | None:
        if self.value is None or (self.at_least is None and self.at_most is None):
            return None
        above = self.at_least is None or self.value >= self.at_least
        below = self.at_most is None or self.value <= self.at_most
        return above and below

    @property
    def promise(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:,g}"
        return f"≤ {self.at_most:,g}" if self.at_most is not None else ""


def not_measured(case: str, name: str, why: str) -> Measurement:
    return Measurement(case, name, None, "", note=f"not measured: {why}")

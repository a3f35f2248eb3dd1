"""The description of a built-in function for the compiler: its number of arguments, and its implementation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# For functions that take any number of arguments; the length of a query bounds it.
ANY_NUMBER: Final = sys.maxsize


@dataclass(frozen=True, slots=True)
class Function:
    """A function, which receives the values of its arguments, also undefined, and returns a value."""

    arguments_min: int
    arguments_max: int
    run: Callable[..., object]
    # True if `run` takes an EvaluationContext before the arguments.
    needs_context: bool = False

    def arguments_sentence(self, name: str) -> str:
        """Return the service's message for a call with another number of arguments."""
        low, high = self.arguments_min, self.arguments_max
        count = f"{low}" if low == high else f"at least {low}" if high == ANY_NUMBER else f"{low} to {high}"
        return f"The {name} function requires {count} argument(s)."

"""Java's generator of random numbers, whose sequence for a seed is a promise that `SeedStrategy` relies on.

The recurrence is that of the documentation of `java.util.Random`: 48 bits, linear congruential.
"""

from __future__ import annotations

_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_MASK = (1 << 48) - 1


class JavaRandom:
    """The numbers of a seed, in their order."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def _next(self, bits: int) -> int:
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return self._state >> (48 - bits)

    def random(self) -> float:
        """Return the next fraction from 0 up to, but not including, 1 (`nextDouble`)."""
        return float((self._next(26) << 27) + self._next(27)) * 2.0**-53

    def randrange(self, bound: int) -> int:
        """Return the next integer from 0 up to, but not including, a bound of 31 bits (`nextInt`)."""
        if bound & -bound == bound:
            return (bound * self._next(31)) >> 31
        while True:
            bits = self._next(31)
            found = bits % bound
            # The last, incomplete span of the bound would make small numbers more likely.
            if bits - found + bound - 1 < 1 << 31:
                return found

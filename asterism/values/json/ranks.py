"""The types of JSON from the lowest to the highest: the one table of its order, in memory and in bytes.

A rank is the first byte of an encoding in stored keys, so no rank may change.
"""

from __future__ import annotations

from typing import Final

UNDEFINED: Final = 1
NULL: Final = 2
FALSE: Final = 3
TRUE: Final = 4
NUMBER: Final = 5
STRING: Final = 6
ARRAY: Final = 7
OBJECT: Final = 8

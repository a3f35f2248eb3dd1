"""Names that texts use beside those of steps, and the steps and predicates that other spellings stand for."""

from __future__ import annotations

import math
from typing import Any

from asterism.languages.gremlin.plan.instructions import SOURCE_INSTRUCTIONS, STEP_INSTRUCTIONS
from asterism.languages.gremlin.text.literals import NAN
from asterism.languages.gremlin.tokens import OPTIONS
from asterism.languages.gremlin.values.numbers import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, Long

TEXT_PREDICATES = frozenset(
    {
        *("startingWith", "notStartingWith", "endingWith", "notEndingWith"),
        *("containing", "notContaining", "regex", "notRegex"),
    }
)
# Predicates by the number of their arguments; None for any number.
PREDICATES: dict[str, int | None] = {
    **dict.fromkeys(("eq", "neq", "lt", "lte", "gt", "gte", "typeOf"), 1),
    **dict.fromkeys(TEXT_PREDICATES, 1),
    **dict.fromkeys(("inside", "outside", "between"), 2),
    **dict.fromkeys(("within", "without"), None),
}
# Without `P.` it is a step, unless its argument is a predicate.
NOT = "not"

CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None, "NaN": NAN, "Infinity": math.inf}

# Constants of classes, by the class.
MEMBERS: dict[str, dict[str, Any]] = {
    **OPTIONS,
    "Integer": {"MAX_VALUE": INT_MAX, "MIN_VALUE": INT_MIN},
    "Long": {"MAX_VALUE": Long(LONG_MAX), "MIN_VALUE": Long(LONG_MIN)},
    "Double": {"NaN": NAN, "POSITIVE_INFINITY": math.inf, "NEGATIVE_INFINITY": -math.inf},
}

# Calls that end a script in Groovy. The server sends all results, whichever of them stands there.
ENDS = frozenset({"next", "tryNext", "toList", "toSet", "toBulkSet", "iterate", "hasNext"})

STEP_NAMES: frozenset[str] = frozenset(STEP_INSTRUCTIONS) | frozenset(SOURCE_INSTRUCTIONS)


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


_STEPS = {_folded(name): name for name in STEP_NAMES | ENDS}
_PREDICATES = {_folded(name): name for name in (*PREDICATES, NOT)}


def find_step(name: str) -> str | None:
    """Return the step of a name as other languages write it: `To`, `executionprofile`, `as_`, `has_label`."""
    return _STEPS.get(_folded(name))


def find_predicate(name: str) -> str | None:
    """Return the predicate of a name as other languages write it: `Gt`, `starting_with`."""
    return _PREDICATES.get(_folded(name))


def is_strategy(name: str) -> bool:
    """Return whether a name is that of a strategy's class."""
    return name.endswith("Strategy")

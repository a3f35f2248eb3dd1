"""Patterns of RE2, which needs time in proportion to the text whatever the pattern is.

Languages translate their regular expressions to its notation; docs/decisions/0008-regular-expressions.md says why.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import re2

# The package has no types of its own.
LinearPattern: TypeAlias = Any


class PatternRefused(Exception):
    """Raised for a pattern that RE2 does not understand, or that needs too much memory; its text is the reason."""


def compile_linear(pattern: str, *, memory_bytes_max: int | None = None) -> LinearPattern:
    """Compile a pattern in the notation of RE2. Raises PatternRefused."""
    options = re2.Options()
    options.log_errors = False
    if memory_bytes_max is not None:
        options.max_mem = memory_bytes_max
    try:
        return re2.compile(pattern, options=options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise PatternRefused(reason) from None

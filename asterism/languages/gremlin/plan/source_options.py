"""The options of `g.with(key, value)` that concern a whole request, which a request can also state as arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asterism.languages.gremlin.evaluation import SourceOptions
from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.values.numbers import is_number

TOKENS: Final = "tokens"
_NONE: Final = SourceOptions()
_MILLISECONDS: Final = 1000


def read_source_options(options: Mapping[str, Any] | None) -> SourceOptions:
    """Return the options that are known here; others are the client's own. Raises CompileFailure for values that
    mean nothing."""
    if not options:
        return _NONE
    return SourceOptions(
        timeout_seconds=_timeout_seconds(options),
        batch_size=_batch_size(options.get("batchSize")),
        materializes_properties=_materializes_properties(options.get("materializeProperties")),
    )


def _timeout_seconds(options: Mapping[str, Any]) -> float | None:
    # The second name is that of clients before 3.4.
    given = options.get("evaluationTimeout", options.get("scriptEvaluationTimeout"))
    if given is None:
        return None
    if not is_number(given) or not 0 <= given < float("inf"):
        raise CompileFailure("The option evaluationTimeout is a number of milliseconds.")
    try:
        seconds = float(given) / _MILLISECONDS
    except OverflowError:
        return None
    # Zero is TinkerPop's word for no limit but the server's.
    return seconds or None


def _batch_size(given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise CompileFailure("The option batchSize is a positive number.")
    return int(given)


def _materializes_properties(given: Any) -> bool | None:
    if given is None:
        return None
    if given not in (TOKENS, "all"):
        raise CompileFailure("The option materializeProperties is 'all' or 'tokens'.")
    return bool(given != TOKENS)

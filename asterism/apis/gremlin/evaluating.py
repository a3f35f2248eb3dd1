"""Requests that evaluate a traversal: their arguments, and the call of the engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from asterism.apis.gremlin.encoders import EncoderChoice, encoder_for
from asterism.apis.gremlin.frames import Format
from asterism.apis.gremlin.malformed import MalformedMessage, OperationRefused
from asterism.apis.gremlin.requests import Request
from asterism.apis.gremlin.responses import BATCH_SIZE_DEFAULT, BATCH_SIZE_MAX
from asterism.languages.gremlin.evaluation import Dialect, Evaluation, EvaluationOptions, GraphEngine, GraphName
from asterism.languages.gremlin.tree import Traversal

BINDINGS_MAX: Final = 1000
_TRANSACTION = re.compile(r"\s*g\s*\.\s*tx\s*\(\s*\)\s*\.\s*(\w+)\s*\(\s*\)\s*;?\s*", re.ASCII)
# Nothing is kept open between requests: a commit has nothing left to do.
_HARMLESS_TRANSACTION_CALLS = frozenset({"begin", "open", "commit", "close"})


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """A request for results, as its arguments have it."""

    gremlin: str | Traversal
    bindings: Mapping[str, Any]
    dialect: Dialect
    batch_size: int
    timeout_seconds: float
    materializes_properties: bool
    # The encoder of the results, by `materializes`.
    encoder_for: EncoderChoice

    def start(self, engine: GraphEngine, graph: GraphName, *, may_write: bool) -> Evaluation | None:
        """Return the evaluation; None for a call that has no results and nothing to do."""
        if self._is_transaction_call():
            return None
        options = EvaluationOptions(
            dialect=self.dialect,
            timeout_seconds=self.timeout_seconds,
            materializes_properties=self.materializes_properties,
            may_write=may_write,
        )
        if isinstance(self.gremlin, Traversal):
            return engine.evaluate_bytecode(graph, self.gremlin, options)
        return engine.evaluate_text(graph, self.gremlin, self.bindings, options)

    def _is_transaction_call(self) -> bool:
        gremlin = self.gremlin
        if isinstance(gremlin, Traversal):
            if gremlin.steps or len(gremlin.source) != 1 or gremlin.source[0].name != "tx":
                return False
            name = str(next(iter(gremlin.source[0].arguments), "begin"))
        else:
            found = _TRANSACTION.fullmatch(gremlin)
            if found is None:
                return False
            name = found[1]
        if name.lower() not in _HARMLESS_TRANSACTION_CALLS:
            raise OperationRefused("Graph does not support transactions")
        return True


def read_evaluation(request: Request, *, seconds_max: float) -> EvaluationRequest:
    """Read the arguments of an `eval` or `bytecode` request. Raises MalformedMessage."""
    arguments = request.arguments
    is_bytecode = request.operation == "bytecode"
    gremlin = _read_gremlin(arguments.get("gremlin"), is_bytecode=is_bytecode)
    materializes = arguments.get("materializeProperties") != "tokens"
    asks_types = arguments.get("typed") is True
    choice = partial(
        encoder_for, request.format, is_untyped=request.is_untyped, is_bytecode=is_bytecode, asks_types=asks_types
    )
    is_cosmos = not is_bytecode and not asks_types and request.format in (Format.JSON, Format.GRAPHSON_2)
    return EvaluationRequest(
        gremlin,
        _read_bindings(arguments.get("bindings")),
        "cosmos" if is_cosmos else "tinkerpop",
        _read_batch_size(arguments.get("batchSize")),
        _read_timeout(arguments, seconds_max),
        materializes,
        choice,
    )


def _read_gremlin(given: Any, *, is_bytecode: bool) -> str | Traversal:
    if is_bytecode:
        if not isinstance(given, Traversal):
            raise MalformedMessage("The argument gremlin of a bytecode request is not bytecode.")
        return given
    if not isinstance(given, str):
        raise MalformedMessage("The argument gremlin is not a text.")
    return given


def _read_bindings(given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise MalformedMessage("The bindings of a request are a map with names as keys.")
    if len(given) > BINDINGS_MAX:
        raise MalformedMessage(f"A request can have {BINDINGS_MAX} bindings.")
    return given


def _read_batch_size(given: Any) -> int:
    if given is None:
        return BATCH_SIZE_DEFAULT
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise MalformedMessage("The batchSize of a request is a positive number.")
    return min(given, BATCH_SIZE_MAX)


def _read_timeout(arguments: Mapping[Any, Any], seconds_max: float) -> float:
    given = arguments.get("evaluationTimeout")
    if given is None:
        # Of clients before 3.4.
        given = arguments.get("scriptEvaluationTimeout")
    if given is None:
        return seconds_max
    if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 0:
        raise MalformedMessage("The evaluationTimeout of a request is a number of milliseconds.")
    # Zero is TinkerPop's word for no limit but the server's.
    return seconds_max if not given or given > seconds_max * 1000 else given / 1000

"""A query as clients send it, at any door: `{"query": text, "parameters": [{"name", "value"}]}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql.compiling.compile import CompiledQuery, compile_query
from asterism.languages.cosmos_sql.compiling.distance import DistanceFunctionOf, no_distance_function
from asterism.languages.cosmos_sql.compiling.environment import Udfs
from asterism.languages.cosmos_sql.functions.context import EvaluationContext
from asterism.languages.cosmos_sql.service_refusals import check_text_as_service
from asterism.languages.cosmos_sql.syntax.parser import parse_query
from asterism.languages.cosmos_sql.syntax.tree import Query
from asterism.values.undefined import UNDEFINED


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A request's query: its text, what that says, and what can be run."""

    text: str
    tree: Query
    parameters: dict[str, object]
    compiled: CompiledQuery


def asked_query(
    told: object,
    evaluation: EvaluationContext,
    *,
    udfs: Udfs | None = None,
    distance_function_of: DistanceFunctionOf = no_distance_function,
    is_lenient: bool = True,
) -> AskedQuery:
    """The query of a request's body, which is JSON already. Raises MalformedRequest and MalformedQuery.

    A lenient one may be a query that the service refuses; see `service_refusals`.
    """
    text = told.get("query") if isinstance(told, Mapping) else None
    if not isinstance(text, str):
        raise MalformedRequest(reason="A query needs a JSON object with 'query', a text, and maybe 'parameters'.")
    parameters = parameters_of(cast("Mapping[str, Any]", told).get("parameters"))
    query = parse_query(text)
    compiled = compile_query(
        query, parameters, udfs=udfs, context=evaluation, distance_function_of=distance_function_of
    )
    if not is_lenient:
        check_text_as_service(text, parameters)
    return AskedQuery(text, query, parameters, compiled)


def parameters_of(told: object) -> dict[str, object]:
    if told is None:
        return {}
    entries = told if isinstance(told, list) else [None]
    parameters: dict[str, object] = {}
    for entry in entries:
        given: Mapping[str, object] = entry if isinstance(entry, Mapping) else {}
        name = given.get("name")
        if not isinstance(name, str) or not name.startswith("@"):
            raise MalformedRequest(
                reason="The query's 'parameters' must be a list of objects with 'name', beginning with @, and 'value'."
            )
        # A parameter that a client left without a value has none.
        parameters[name] = given.get("value", UNDEFINED)
    return parameters

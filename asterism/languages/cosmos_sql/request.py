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
class QueryRequest:
    """The query of a request: its text, its tree, its parameters and the compiled query."""

    text: str
    tree: Query
    parameters: dict[str, object]
    compiled: CompiledQuery


def read_query_request(
    body: object,
    evaluation: EvaluationContext,
    *,
    udfs: Udfs | None = None,
    distance_function_of: DistanceFunctionOf = no_distance_function,
    is_lenient: bool = True,
) -> QueryRequest:
    """Return the query of a request's decoded JSON body. Raises MalformedRequest and MalformedQuery.

    With `is_lenient`, queries that only the service refuses are accepted; see `service_refusals`.
    """
    text = body.get("query") if isinstance(body, Mapping) else None
    if not isinstance(text, str):
        raise MalformedRequest(
            reason="The body is not a query. Send a JSON object with 'query', a string, and maybe 'parameters'."
        )
    parameters = parameters_of(cast("Mapping[str, Any]", body).get("parameters"))
    query = parse_query(text)
    compiled = compile_query(
        query, parameters, udfs=udfs, context=evaluation, distance_function_of=distance_function_of
    )
    if not is_lenient:
        check_text_as_service(text, parameters)
    return QueryRequest(text, query, parameters, compiled)


def parameters_of(listed: object) -> dict[str, object]:
    if listed is None:
        return {}
    entries = listed if isinstance(listed, list) else [None]
    parameters: dict[str, object] = {}
    for entry in entries:
        parameter: Mapping[str, object] = entry if isinstance(entry, Mapping) else {}
        name = parameter.get("name")
        if not isinstance(name, str) or not name.startswith("@"):
            raise MalformedRequest(
                reason="The query's 'parameters' must be a list of objects with 'name', starting with @, and 'value'."
            )
        # A parameter that the client sends without a value is undefined.
        parameters[name] = parameter.get("value", UNDEFINED)
    return parameters

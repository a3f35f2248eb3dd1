"""The query language: text to a tree (`parse_query`), tree and parameters to a runnable query (`compile_query`)."""

from asterism.languages.cosmos_sql.compiling.compile import CompiledQuery, compile_query
from asterism.languages.cosmos_sql.syntax.parser import parse_condition, parse_query
from asterism.languages.cosmos_sql.syntax.printer import to_text
from asterism.languages.cosmos_sql.syntax.tree import Query
from asterism.reading.collectors import Collector
from asterism.reading.runnable import Kind

__all__ = [
    "Collector",
    "CompiledQuery",
    "Kind",
    "Query",
    "compile_query",
    "parse_condition",
    "parse_query",
    "to_text",
]

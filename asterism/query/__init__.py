"""The query language: text to tree (`parse_query`), tree and parameters to what runs on items (`compile_query`)."""

from asterism.query.collectors import Collector
from asterism.query.compile import CompiledQuery, compile_query
from asterism.query.parser import parse_condition, parse_query
from asterism.query.pipeline import Kind
from asterism.query.printer import to_text
from asterism.query.tree import Query

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

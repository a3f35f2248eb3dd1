"""The query language: text to tree (`parse_query`), tree and parameters to what runs on items (`compile_query`)."""

from asterism.query.compile import CompiledQuery, compile_query
from asterism.query.parser import parse_condition, parse_query
from asterism.query.tree import Query

__all__ = ["CompiledQuery", "Query", "compile_query", "parse_condition", "parse_query"]

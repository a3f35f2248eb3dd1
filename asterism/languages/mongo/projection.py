"""Projections: the fields that `find` returns, and the cores of the stages $project, $addFields, $set and $unset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from asterism.languages.mongo.expressions.operator import CompileContext, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Match
from asterism.languages.mongo.projections.find_operators import apply_positional, apply_slice
from asterism.languages.mongo.projections.names import Parts, PathSet, check_no_null, split_checked
from asterism.languages.mongo.projections.parse import Parser
from asterism.languages.mongo.projections.tree import (
    Tree,
    add_fields,
    exclude_fields,
    include_fields,
    on_documents,
)
from asterism.values.bson.types import Document

__all__ = ["compile_add_fields", "compile_project", "compile_projection", "compile_unset"]

_NO_VARIABLES: Variables = {}

Transform = Callable[[Document, Variables], Document]


class Projection(Protocol):
    """The projection of `find`. The variables are those of `let`, and what $meta reads."""

    def __call__(self, document: Document, variables: Variables = ...) -> Document: ...


def _whole_document(document: Document, variables: Variables = _NO_VARIABLES) -> Document:
    return document


def compile_projection(specification: Any, context: CompileContext, *, filter_match: Match | None = None) -> Projection:
    """Compile the projection of `find`; the positional operator asks the filter which element matched."""
    if type(specification) is not dict:
        raise MongoFailure(14, "The projection must be an object")
    if not specification:
        return _whole_document
    parser = Parser(context, is_find=True)
    parser.read(specification)
    positional, slices = parser.positional, tuple(parser.slices)
    if positional is not None and filter_match is not None and filter_match.uses_expr:
        raise MongoFailure(224, "$expr is not allowed with a positional projection")
    fields = _transform(parser)

    def project(document: Document, variables: Variables = _NO_VARIABLES) -> Document:
        output = fields(document, variables)
        for found in slices:
            output = apply_slice(found, output)
        if positional is not None:
            output = apply_positional(positional, filter_match, document, output)
        return output

    return project


def compile_project(specification: Any, context: CompileContext) -> Transform:
    """Compile the stage $project."""
    if type(specification) is not dict:
        raise MongoFailure(15969, "$project specification must be an object")
    if not specification:
        raise MongoFailure(51272, "Invalid $project :: caused by :: a projection must have at least one field")
    parser = Parser(context, is_find=False)
    parser.read(specification)
    return _transform(parser)


def _transform(parser: Parser) -> Transform:
    tree = parser.tree()
    return on_documents(include_fields(tree) if parser.is_inclusion else exclude_fields(tree))


def compile_add_fields(specification: Any, context: CompileContext) -> Transform:
    """Compile the stages $addFields and $set."""
    if type(specification) is not dict:
        raise MongoFailure(40272, "$addFields specification stage must be an object")
    tree = Tree()
    paths = PathSet(child_after_parent=40176, parent_after_child=40176)
    for name, value in specification.items():
        _read_added_field(split_checked(name), value, context, tree, paths)
    return on_documents(add_fields(tree))


def _read_added_field(parts: Parts, value: Any, context: CompileContext, tree: Tree, paths: PathSet) -> None:
    """Read one field: a document of fields is entered, so that the other fields of the document below are kept."""
    if type(value) is dict and value:
        first = next(iter(value))
        if first.startswith("$") and len(value) > 1:
            raise MongoFailure(40181, f"an expression specification must contain exactly one field. Found {len(value)}")
        if not first.startswith("$"):
            for name, inner in value.items():
                if "." in name:
                    raise MongoFailure(40183, f"cannot use dotted field name '{name}' in a sub object")
                _read_added_field((*parts, *split_checked(name)), inner, context, tree, paths)
            return
    paths.add(parts)
    tree.compute(parts, context.compile(value))


def compile_unset(specification: Any) -> Transform:
    """Compile the stage $unset."""
    if type(specification) is str:
        names = [specification]
    elif type(specification) is list:
        names = specification
    else:
        raise MongoFailure(31002, "$unset specification must be a string or an array")
    if not names:
        raise MongoFailure(31119, "$unset specification must be a string or an array with at least one field")
    for name in names:
        if type(name) is not str:
            raise MongoFailure(31120, "$unset specification must be a string or an array containing only string values")
    for name in names:
        check_no_null(name)
    tree = Tree()
    paths = PathSet(child_after_parent=31249, parent_after_child=31250)
    for name in names:
        parts = split_checked(name)
        paths.add(parts)
        tree.list_path(parts)
    return on_documents(exclude_fields(tree))

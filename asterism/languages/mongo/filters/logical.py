"""$and $or $nor over filters, $not over the operators of a field, $alwaysTrue and $alwaysFalse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.filters.evaluation import compile_regex_value
from asterism.languages.mongo.filters.match import Node, conjunction, disjunction, negation
from asterism.languages.mongo.filters.predicate import Predicate, Scope, all_hold, bad_value, does_not_hold
from asterism.values.bson.types import Regex

# Compiles a filter: `compile.compile_node`, passed so that this module need not import it.
CompileNode = Callable[[dict[str, Any], Scope], Node]


def _alternatives(name: str, operand: Any, scope: Scope, compile_node: CompileNode) -> tuple[Node, ...]:
    if type(operand) is not list:
        raise bad_value(f"{name} must be an array")
    if not operand:
        raise bad_value("$and/$or/$nor must be a nonempty array")
    for element in operand:
        if type(element) is not dict:
            raise bad_value("$or/$and/$nor entries need to be full objects")
    return tuple(compile_node(element, scope) for element in operand)


def compile_and(operand: Any, scope: Scope, compile_node: CompileNode) -> Node:
    return conjunction(_alternatives("$and", operand, scope, compile_node))


def compile_or(operand: Any, scope: Scope, compile_node: CompileNode) -> Node:
    return disjunction(_alternatives("$or", operand, scope, compile_node))


def compile_nor(operand: Any, scope: Scope, compile_node: CompileNode) -> Node:
    return negation(disjunction(_alternatives("$nor", operand, scope, compile_node)), "nor")


def compile_not(
    operand: Any, scope: Scope, compile_operators: Callable[[dict[str, Any], Scope], tuple[Predicate, ...]]
) -> Predicate:
    if type(operand) is Regex:
        return does_not_hold(compile_regex_value(operand, scope))
    if type(operand) is not dict:
        raise bad_value("$not needs a regex or a document")
    if not operand:
        raise bad_value("$not cannot be empty")
    return does_not_hold(all_hold(compile_operators(operand, scope)))


def compile_always(*, holds: bool) -> Callable[[Any, Scope, CompileNode], Node]:
    kind = "alwaysTrue" if holds else "alwaysFalse"

    def compile_constant(operand: Any, _scope: Scope, _compile_node: CompileNode) -> Node:
        if type(operand) is bool or operand != 1:
            raise bad_value(f"${kind} must be an integer value of 1")
        return Node("and", lambda _: True) if holds else Node(kind, lambda _: False)

    return compile_constant

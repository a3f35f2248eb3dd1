"""The nodes of a traversal from the parts that GraphSON and GraphBinary write them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from asterism.apis.gremlin.malformed import MalformedMessage
from asterism.languages.gremlin.graph.references import EdgeReference, VertexReference
from asterism.languages.gremlin.tokens import TOKENS, find_token
from asterism.languages.gremlin.tree import CardinalityValue, Instruction, Predicate, Strategy, Token, Traversal
from asterism.languages.gremlin.values.structures import freeze

# Values within values, traversals within traversals. Readers use two calls for each, of the thousand that Python has.
DEPTH_MAX: Final = 200
# Members of a bulk set, which may say of each how often it counts.
BULK_MAX: Final = 100_000

TOKEN_KINDS: Final = frozenset(TOKENS)
_LISTING = frozenset({"within", "without"})
_PAIRING = frozenset({"between", "inside", "outside"})
_JOINING = frozenset({"and", "or"})
_CARDINALITY_MARK = "CardinalityValueTraversal"
_STRATEGY_SUFFIX = "Strategy"


def refuse_depth() -> MalformedMessage:
    return MalformedMessage(f"Values and traversals in a request can be nested {DEPTH_MAX} deep.")


def make_token(kind: str, name: object) -> Token:
    if not isinstance(name, str):
        raise MalformedMessage(f"A constant of {kind} needs a name.")
    # Clients of languages in which a name is taken add the underscore.
    plain = name.rstrip("_")
    return find_token(kind, plain) or Token(kind, plain)


def make_predicate(operator: object, arguments: Sequence[Any]) -> Predicate:
    """Make a predicate of arguments as GraphBinary has them; a collection may stand for all of them."""
    if not isinstance(operator, str):
        raise MalformedMessage("A predicate needs a name.")
    operator = operator.rstrip("_")
    if operator in _LISTING or operator in _PAIRING or operator in _JOINING:
        values = list(arguments)
        if len(values) == 1 and isinstance(values[0], list | set | frozenset):
            values = list(values[0])
        if operator in _PAIRING and len(values) != 2:
            raise MalformedMessage(f"The predicate {operator} needs two values.")
        if operator in _JOINING and not all(isinstance(value, Predicate) for value in values):
            raise MalformedMessage(f"The predicate {operator} is between predicates.")
        return Predicate(operator, values)
    # Clients write the members of a list in its place.
    return Predicate(operator, arguments[0] if len(arguments) == 1 else list(arguments))


def make_class(name: str) -> Strategy | str:
    """Make a node of the name of a Java class: a strategy, or the name without its package."""
    simple = name.rpartition(".")[2].rpartition("$")[2]
    return Strategy(simple) if simple.endswith(_STRATEGY_SUFFIX) else simple


def make_strategy(name: str, settings: Mapping[Any, Any]) -> Strategy:
    return Strategy(name.rpartition(".")[2], {str(key): value for key, value in settings.items()})


def make_traversal(steps: Sequence[Sequence[Any]], source: Sequence[Sequence[Any]]) -> Traversal | CardinalityValue:
    """Make a traversal of instructions, each a name and its arguments."""
    instructions = _instructions(source)
    if len(instructions) == 1 and instructions[0].name == _CARDINALITY_MARK:
        cardinality, *values = instructions[0].arguments or (None,)
        if not isinstance(cardinality, Token) or len(values) != 1:
            raise MalformedMessage("A value with a cardinality needs a cardinality and a value.")
        return CardinalityValue(cardinality.name, values[0])
    return Traversal(_instructions(steps), instructions)


def _instructions(given: Sequence[Sequence[Any]]) -> tuple[Instruction, ...]:
    return tuple(Instruction(name, tuple(arguments)) for name, *arguments in given)


def make_vertex(vertex_id: Any, label: object) -> VertexReference:
    return VertexReference(id_text(vertex_id), label if isinstance(label, str) else "vertex")


def make_edge(edge_id: Any, label: object, *, out_vertex: VertexReference, in_vertex: VertexReference) -> EdgeReference:
    return EdgeReference(id_text(edge_id), label if isinstance(label, str) else "edge", out_vertex, in_vertex)


def hashable(value: Any) -> Any:
    """Return a value in the form in which it can be a member of a set or a key of a map."""
    frozen = freeze(value)
    try:
        hash(frozen)
    except TypeError:
        raise MalformedMessage("A traversal or a predicate cannot be a member of a set or a key of a map.") from None
    return frozen


def id_text(value: Any) -> str:
    """Return an id as it is stored: as text, also if a client has a number or a UUID."""
    return value if isinstance(value, str) else str(value)

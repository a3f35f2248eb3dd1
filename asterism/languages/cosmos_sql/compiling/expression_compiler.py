"""The compiler of expressions to Python closures: names and constants are resolved once, not for every item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NoReturn, cast

from asterism.languages.cosmos_sql.compiling.aggregates import AGGREGATES
from asterism.languages.cosmos_sql.compiling.counted import (
    PARTS_UNCOUNTED_MAX,
    counted_call,
    counted_comparison,
    counted_list,
    counted_object,
    counted_vector,
)
from asterism.languages.cosmos_sql.compiling.distance import DISTANCE_CALLS, distance_name, no_distance_function
from asterism.languages.cosmos_sql.compiling.environment import Environment
from asterism.languages.cosmos_sql.compiling.foreseen_calls import ForeseenCalls
from asterism.languages.cosmos_sql.compiling.path_access import equality_test, membership_test, order_test, path_reader
from asterism.languages.cosmos_sql.compiling.scope import Scope
from asterism.languages.cosmos_sql.compiling.semantics import (
    BINARY_OPERATIONS,
    UNARY_OPERATIONS,
    between,
    negate,
    step_into,
)
from asterism.languages.cosmos_sql.compiling.subqueries import compile_subquery_expression
from asterism.languages.cosmos_sql.functions import FUNCTIONS, Function
from asterism.languages.cosmos_sql.functions.context import EvaluationContext
from asterism.languages.cosmos_sql.functions.costs import CHARACTERS_PER_STEP, STEPS_OF_CALLS, UDF_STEPS
from asterism.languages.cosmos_sql.functions.distances import nearness_to
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.like import like_pattern
from asterism.languages.cosmos_sql.syntax.token_stream import SYNTAX_ERROR
from asterism.languages.cosmos_sql.syntax.tree import Expression
from asterism.reading.limits import QueryMeter
from asterism.reading.row_source import Evaluator
from asterism.reading.turns import pause
from asterism.values.json.order import values_equal
from asterism.values.undefined import UNDEFINED

UNKNOWN_FUNCTION: Final = "SC2005"
WRONG_ARGUMENT_COUNT: Final = "SC2050"
MISPLACED_AGGREGATE: Final = "SC2101"
MISPLACED_TEXT_SCORE: Final = "SC2240"
_DISTANCE_ARGUMENTS: Final = Function(2, 4, lambda *_arguments: UNDEFINED)
# Without a value of its own: it is part of the order of all rows.
_TEXT_SCORE: Final = "FULLTEXTSCORE"
# Each comparison with its equivalent for exchanged operands.
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NO_ITEM: Final[dict[str, object]] = {}


class ExpressionCompiler:
    """Compiles expressions of one query; each closure takes an item and returns a JSON value or UNDEFINED."""

    def __init__(
        self, scope: Scope, environment: Environment | None = None, foreseen: ForeseenCalls | None = None
    ) -> None:
        """Leave out the environment for expressions of constants only."""
        self._scope = scope
        self._environment = environment
        self._foreseen = foreseen

    def compile(self, node: Expression) -> Evaluator:
        """Compile an expression. Raises MalformedQuery for unknown names and unsupported features."""
        compile_node = _COMPILERS[type(node)]
        # The tree of a long text takes longer than a turn.
        pause()
        return compile_node(self, node)

    def compile_key(self, node: Expression) -> Evaluator:
        """Compile an order or group key, metered because arrays and objects take long to compare."""
        evaluate, environment = self.compile(node), self._environment
        if environment is None:
            return evaluate
        meter = environment.meter

        def key(item: dict[str, object]) -> object:
            value = evaluate(item)
            if type(value) is list or type(value) is dict:
                meter.spend_on_parts(value)
            return value

        return key

    def constant(self, node: Expression) -> object:
        """Return the value of an expression for which `is_constant` holds."""
        return self.compile(node)(_NO_ITEM)

    # --- values -----------------------------------------------------------------------------------------------------

    def _literal(self, node: tree.Literal) -> Evaluator:
        return _always(node.value)

    def _parameter(self, node: tree.Parameter) -> Evaluator:
        return _always(self._scope.parameter(node))

    def _path(self, node: tree.Path) -> Evaluator:
        return path_reader(self._scope.steps_below_row(node))

    def _member(self, node: tree.Member) -> Evaluator:
        target, step = self.compile(node.target), self.compile(node.step)
        return lambda item: step_into(target(item), step(item))

    def _array(self, node: tree.ArrayLiteral) -> Evaluator:
        elements = [self.compile(element) for element in node.items]
        if self._must_count(node.items):
            meter = self._meter
            return lambda item: counted_list(elements, item, meter)
        return lambda item: [value for element in elements if (value := element(item)) is not UNDEFINED]

    def _object(self, node: tree.ObjectLiteral) -> Evaluator:
        properties = [(name, self.compile(value)) for name, value in node.properties]
        return self.object_maker(properties, [value for _, value in node.properties])

    def object_maker(self, properties: list[tuple[str, Evaluator]], nodes: Sequence[Expression]) -> Evaluator:
        """Return a maker of objects of the properties with defined values; `nodes` are their expressions."""
        return _object_maker(properties, self._meter if self._must_count(nodes) else None)

    # --- metering ---------------------------------------------------------------------------------------------------

    @property
    def _meter(self) -> QueryMeter:
        meter = self._environment.meter if self._environment else QueryMeter()
        meter.is_needed = True
        return meter

    def _must_count(self, nodes: Sequence[Expression]) -> bool:
        """Return whether the result can be much larger than the item: a value may be new, or there are many values."""
        return len(nodes) > PARTS_UNCOUNTED_MAX or any(map(builds, nodes))

    # --- operators --------------------------------------------------------------------------------------------------

    def _unary(self, node: tree.Unary) -> Evaluator:
        operation, operand = UNARY_OPERATIONS[node.operator], self.compile(node.operand)
        return lambda item: operation(operand(item))

    def _binary(self, node: tree.Binary) -> Evaluator:
        if node.operator == "=":
            for operand, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(operand, tree.Path) and is_constant(other):
                    constant = self.constant(other)
                    if type(constant) not in (list, dict):
                        return equality_test(self._scope.steps_below_row(operand), constant)
        if node.operator in _MIRRORED:
            for operand, other, symbol in (
                (node.left, node.right, node.operator),
                (node.right, node.left, _MIRRORED[node.operator]),
            ):
                if isinstance(operand, tree.Path) and is_constant(other):
                    test = order_test(self._scope.steps_below_row(operand), symbol, self.constant(other))
                    if test is not None:
                        return test
        operation = BINARY_OPERATIONS[node.operator]
        left, right = self.compile(node.left), self.compile(node.right)
        if node.operator == "||":
            return counted_call("", operation, [left, right], self._meter)
        if node.operator in ("=", "!=") and not self._has_primitive_constant(node.left, node.right):
            return counted_comparison(operation, left, right, self._meter)
        return lambda item: operation(left(item), right(item))

    def _has_primitive_constant(self, *nodes: Expression) -> bool:
        """Return whether an operand is a constant that is compared in one step, however large the other is."""
        return any(is_constant(node) and type(self.constant(node)) not in (list, dict) for node in nodes)

    def _and(self, node: tree.And) -> Evaluator:
        operands = [self.compile(operand) for operand in node.operands]

        def evaluate(item: dict[str, object]) -> object:
            result: object = True
            for operand in operands:
                value = operand(item)
                if value is False:
                    return False
                if value is not True:
                    result = UNDEFINED
            return result

        return evaluate

    def _or(self, node: tree.Or) -> Evaluator:
        operands = [self.compile(operand) for operand in node.operands]

        def evaluate(item: dict[str, object]) -> object:
            result: object = False
            for operand in operands:
                value = operand(item)
                if value is True:
                    return True
                if value is not False:
                    result = UNDEFINED
            return result

        return evaluate

    def _conditional(self, node: tree.Conditional) -> Evaluator:
        condition = self.compile(node.condition)
        consequent, alternative = self.compile(node.consequent), self.compile(node.alternative)
        return lambda item: consequent(item) if condition(item) is True else alternative(item)

    def _coalesce(self, node: tree.Coalesce) -> Evaluator:
        left, right = self.compile(node.left), self.compile(node.right)
        return lambda item: right(item) if (value := left(item)) is UNDEFINED else value

    # --- predicates -------------------------------------------------------------------------------------------------

    def _in(self, node: tree.In) -> Evaluator:
        needle = self.compile(node.needle)
        if all(is_constant(element) for element in node.haystack):
            holds = membership_test([self.constant(element) for element in node.haystack])
            return _negate_if(
                node.negated, lambda item: UNDEFINED if (value := needle(item)) is UNDEFINED else holds(value)
            )
        haystack = [self.compile(element) for element in node.haystack]

        def evaluate(item: dict[str, object]) -> object:
            value = needle(item)
            if value is UNDEFINED:
                return UNDEFINED
            return any(values_equal(value, element(item)) for element in haystack)

        return _negate_if(node.negated, evaluate)

    def _between(self, node: tree.Between) -> Evaluator:
        value, low, high = self.compile(node.value), self.compile(node.low), self.compile(node.high)
        return _negate_if(node.negated, lambda item: between(value(item), low(item), high(item)))

    def _like(self, node: tree.Like) -> Evaluator:
        value, pattern, escape = self.compile(node.value), self.compile(node.pattern), node.escape
        meter = self._meter
        if escape is not None and len(escape) != 1:
            reason = "The ESCAPE of LIKE must be a single character."
            raise MalformedQuery(SYNTAX_ERROR, reason, node.span.start, node.span.end)

        def evaluate(item: dict[str, object]) -> object:
            text, shape = value(item), pattern(item)
            if type(text) is not str or type(shape) is not str:
                return UNDEFINED
            if len(shape) > CHARACTERS_PER_STEP:
                meter.spend(len(shape))
            ready = like_pattern(shape, escape)
            meter.spend(ready.steps(text))
            return ready.matches(text)

        return _negate_if(node.negated, evaluate)

    # --- calls ------------------------------------------------------------------------------------------------------

    def _call(self, node: tree.Call) -> Evaluator:
        if node.is_udf:
            return self._call_udf(node)
        if node.name in AGGREGATES:
            reason = f"The aggregate function {node.name} is not allowed here."
            raise MalformedQuery(MISPLACED_AGGREGATE, reason, node.name_span.start, node.name_span.end)
        if node.name in DISTANCE_CALLS:
            return self._distance(node)
        if node.name == _TEXT_SCORE:
            reason = "The FullTextScore function is only allowed in the ORDER BY RANK clause."
            raise MalformedQuery(MISPLACED_TEXT_SCORE, reason, node.span.start, node.span.end)
        function = FUNCTIONS.get(node.name)
        if function is None:
            # The first error is reported: arguments are checked before the name.
            self._arguments(node)
            _refuse_name(node)
        _check_argument_count(node, function)
        run = partial(function.run, self._context(node)) if function.needs_context else function.run
        arguments = self._arguments(node)
        if node.name not in STEPS_OF_CALLS and len(arguments) <= PARTS_UNCOUNTED_MAX:
            return _call_closure(run, arguments)
        last = self.constant(node.arguments[-1]) if is_constant(node.arguments[-1]) else None
        return counted_call(node.name, run, arguments, self._meter, last if isinstance(last, str) else None)

    def _distance(self, node: tree.Call) -> Evaluator:
        _check_argument_count(node, _DISTANCE_ARGUMENTS)
        of_container = self._environment.distance_function_of if self._environment else no_distance_function
        name = distance_name(node, self._scope, of_container)
        vector, other = node.arguments[:2]
        # Either argument may be the constant.
        if is_constant(vector):
            vector, other = other, vector
        value = counted_vector(self.compile(vector), self._meter)
        if is_constant(other):
            nearness = nearness_to(name, self.constant(other))
            return lambda item: nearness(value(item))
        target = self.compile(other)
        return lambda item: nearness_to(name, target(item))(value(item))

    def _context(self, node: tree.Call) -> EvaluationContext:
        context = self._environment.context if self._environment else None
        if context is None:
            reason = f"The function {node.name} is not allowed here."
            raise MalformedQuery(SYNTAX_ERROR, reason, node.name_span.start, node.name_span.end)
        return context

    def _arguments(self, node: tree.Call) -> list[Evaluator]:
        return [self.compile(argument) for argument in node.arguments]

    def _call_udf(self, node: tree.Call) -> Evaluator:
        function, arguments, meter = self._udf(node), self._arguments(node), self._meter
        call_function = _call_closure(function, arguments)

        def call(item: dict[str, object]) -> object:
            # Before the call, for the time limit may have passed; after it, for the time that the call took.
            meter.spend(UDF_STEPS)
            result = call_function(item)
            meter.spend(UDF_STEPS)
            return result

        return call if self._foreseen is None else self._foreseen.register(node, function, arguments, call)

    def _udf(self, node: tree.Call) -> Callable[..., object]:
        udf = self._environment.udfs.get(node.name) if self._environment else None
        if udf is None:
            reason = f"'udf.{node.name}' is not a recognized user defined function name."
            raise MalformedQuery(UNKNOWN_FUNCTION, reason, node.name_span.start, node.name_span.end)
        return udf

    def _subquery(self, node: tree.Subquery) -> Evaluator:
        if self._environment is None:
            raise ValueError("a subquery is not a constant")
        self._environment.meter.is_needed = True
        return compile_subquery_expression(node, self._scope, self._environment)


# A line for each kind of expression. The table's own type cannot express that each method takes the node of its key.
_COMPILERS: Final = cast(
    "dict[type[tree.Node], Callable[[ExpressionCompiler, Expression], Evaluator]]",
    {
        tree.Literal: ExpressionCompiler._literal,
        tree.Parameter: ExpressionCompiler._parameter,
        tree.Path: ExpressionCompiler._path,
        tree.Member: ExpressionCompiler._member,
        tree.ArrayLiteral: ExpressionCompiler._array,
        tree.ObjectLiteral: ExpressionCompiler._object,
        tree.Unary: ExpressionCompiler._unary,
        tree.Binary: ExpressionCompiler._binary,
        tree.And: ExpressionCompiler._and,
        tree.Or: ExpressionCompiler._or,
        tree.Conditional: ExpressionCompiler._conditional,
        tree.Coalesce: ExpressionCompiler._coalesce,
        tree.In: ExpressionCompiler._in,
        tree.Between: ExpressionCompiler._between,
        tree.Like: ExpressionCompiler._like,
        tree.Call: ExpressionCompiler._call,
        tree.Subquery: ExpressionCompiler._subquery,
    },
)


def is_constant(node: tree.Node) -> bool:
    """Return whether the expression consists of literals and parameters only, so that all items have the same value."""
    if isinstance(node, (tree.Literal, tree.Parameter)):
        return True
    if isinstance(node, (tree.Unary, tree.ArrayLiteral, tree.ObjectLiteral)):
        return all(is_constant(child) for child in tree.children(node))
    return False


def _refuse_name(call: tree.Call) -> NoReturn:
    reason = f"'{call.name}' is not a recognized built-in function name."
    raise MalformedQuery(UNKNOWN_FUNCTION, reason, call.name_span.start, call.name_span.end)


def _check_argument_count(call: tree.Call, function: Function) -> None:
    if not function.arguments_min <= len(call.arguments) <= function.arguments_max:
        reason = function.arguments_sentence(call.name)
        raise MalformedQuery(WRONG_ARGUMENT_COUNT, reason, call.span.start, call.span.end)


def _call_closure(run: Callable[..., object], arguments: list[Evaluator]) -> Evaluator:
    if len(arguments) == 1:
        only = arguments[0]
        return lambda item: run(only(item))
    if len(arguments) == 2:
        first, second = arguments
        return lambda item: run(first(item), second(item))
    return lambda item: run(*[argument(item) for argument in arguments])


def _object_maker(properties: list[tuple[str, Evaluator]], meter: QueryMeter | None) -> Evaluator:
    if meter is not None:
        return lambda item: counted_object(properties, item, meter)

    def evaluate(item: dict[str, object]) -> object:
        return {name: found for name, value in properties if (found := value(item)) is not UNDEFINED}

    return evaluate


def builds(node: tree.Node) -> bool:
    """Return whether the value can be new: not a part of the item, a constant or a small scalar."""
    if isinstance(node, (tree.Call, tree.Subquery)):
        return True
    if isinstance(node, (tree.ArrayLiteral, tree.ObjectLiteral)):
        return not is_constant(node)
    if isinstance(node, (tree.Conditional, tree.Coalesce, tree.Member)):
        return any(map(builds, tree.children(node)))
    return isinstance(node, tree.Binary) and node.operator == "||"


def _always(value: object) -> Evaluator:
    return lambda _item: value


def _negate_if(negated: bool, evaluate: Evaluator) -> Evaluator:
    return (lambda item: negate(evaluate(item))) if negated else evaluate

"""The parser: the text of a script becomes a traversal, by recursive descent over a list of tokens.

A parse depends on the text and on the names of the request's bindings, not on their values, so that both together are
the key of a cache. The trees are shared then: nothing may change what it finds in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from asterism.languages.gremlin.failure import SYNTAX_SCOPE, CompileFailure, LimitExceeded
from asterism.languages.gremlin.plan.instructions import SOURCE_INSTRUCTIONS, STEPS_MAX, too_many_steps
from asterism.languages.gremlin.text import names
from asterism.languages.gremlin.text.calls import FUNCTIONS, UnfitArguments, connect, make_predicate
from asterism.languages.gremlin.text.literals import (
    LiteralFailure,
    with_whole_characters,
)
from asterism.languages.gremlin.text.strategies import StrategyReader
from asterism.languages.gremlin.tokens import BARE_TOKENS, TOKENS, find_token
from asterism.languages.gremlin.tree import Instruction, Predicate, Strategy, Traversal, Variable


@dataclass(frozen=True, slots=True)
class TextLimits:
    """The largest script that is read. The service takes 64 KB and 400 steps."""

    text_bytes_max: int = 64 * 1024
    steps_max: int = STEPS_MAX


DEFAULT_LIMITS = TextLimits()


def parse(text: str, bound: frozenset[str] | None = None, *, limits: TextLimits = DEFAULT_LIMITS) -> Traversal:
    """Return the traversal of a script.

    `bound` has the names of the request's bindings, which win over constants of the same name; other names are refused.
    Without it every unknown name is a variable. Raises CompileFailure or LimitExceeded, nothing else.
    """
    size = len(text)
    if not text.isascii():
        text = _checked_characters(text)
        size = len(text.encode())
    if size > limits.text_bytes_max:
        raise LimitExceeded(f"The script has {size} bytes, more than the {limits.text_bytes_max} allowed.")
    return _Parser(text, bound, limits.steps_max).script()


def _checked_characters(text: str) -> str:
    try:
        return with_whole_characters(text)
    except LiteralFailure as refusal:
        raise CompileFailure(f"Script compile error: {refusal}.", scope=SYNTAX_SCOPE) from None


# Names of Groovy that a client cannot have meant as bindings.
_NEVER_VARIABLES = frozenset({"it", "g", "__", "P", "T", "this", "def", "return"})


class _Parser(StrategyReader):
    """The descent: each method reads one construct from the next token on, and leaves the cursor behind it."""

    __slots__ = ("_is_single_line", "_steps_left", "_steps_max")

    def __init__(self, text: str, bound: frozenset[str] | None, steps_max: int) -> None:
        super().__init__(text)
        self.bound = bound
        self._steps_max = self._steps_left = steps_max
        self._is_single_line = "\n" not in text

    def script(self) -> Traversal:
        """Read the whole text: a chain of calls on `g`."""
        tokens = self.tokens
        if tokens[0] != "g" or tokens[1] == "=":
            raise self._not_a_traversal()
        self.index = 1
        instructions: list[Instruction] = []
        if tokens[1] == ".":
            self.index = 2
            instructions = self._chain()
        statement_end = self.index
        while tokens[self.index] == ";":
            self.index += 1
        if tokens[self.index]:
            if self.index > statement_end or tokens[self.index] == "g":
                raise self.syntax("A script has one statement; send the others as requests of their own", self.index)
            raise self.unexpected(missing=".")
        place = 0
        while place < len(instructions) and instructions[place].name in SOURCE_INSTRUCTIONS:
            place += 1
        return Traversal(tuple(instructions[place:]), tuple(instructions[:place]))

    def _not_a_traversal(self) -> CompileFailure:
        first, second = self.tokens[0], self.tokens[1]
        if second == "=" or first == "def":
            return self.groovy_rule("assignment", 0, len(self.tokens) - 1)
        if first.isidentifier():
            return self.unknown_symbol(first, 0)
        return self.unexpected(missing="g")

    def _chain(self) -> list[Instruction]:
        """Read calls with dots between them; the next token is the name of the first."""
        tokens = self.tokens
        starts = self.lexed.starts
        step_names = names.STEP_NAMES
        instructions: list[Instruction] = []
        while True:
            index = self.index
            name = tokens[index]
            if tokens[index + 1] != "(":
                raise self._not_a_call()
            is_end = False
            if name not in step_names:
                name, is_end = self._other_step(name)
            self.index = index + 1
            arguments = self.arguments()
            if is_end:
                if not instructions:
                    raise self.unknown_method(name, index)
                self._end(name, instructions)
                return instructions
            if self._is_single_line:
                instruction = Instruction(name, arguments, 1, starts[index] + 1)
            else:
                instruction = Instruction(name, arguments, *self.lexed.place(index))
            if name == "tx":
                instruction = self._transaction(instruction)
            instructions.append(instruction)
            self._count_step()
            if tokens[self.index] != ".":
                return instructions
            self.index += 1

    def _count_step(self) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise too_many_steps(self._steps_max)

    def _not_a_call(self) -> CompileFailure:
        name = self.tokens[self.index]
        if name.isidentifier():
            self.index += 1
        return self.unexpected(missing="(")

    def _other_step(self, name: str) -> tuple[str, bool]:
        """Return the step that a name in other spelling stands for, and whether it ends the script."""
        found = names.find_step(name) if name.isidentifier() else None
        if found is None:
            if not name.isidentifier():
                raise self.unexpected()
            raise self.unknown_method(name, self.index)
        return found, found in names.ENDS

    def _end(self, name: str, instructions: list[Instruction]) -> None:
        """Take a last call such as `toList()`, behind which no step may come."""
        if name == "iterate":
            instructions.append(Instruction("discard"))
        elif name == "hasNext":
            children = [("unfold", ()), ("constant", (True,)), ("constant", (False,))]
            options = tuple(Traversal((Instruction(*child),)) for child in children)
            instructions += [Instruction("limit", (1,)), Instruction("fold"), Instruction("choose", options)]
        if self.tokens[self.index] == ".":
            raise self.unknown_method(self.tokens[self.index + 1], self.index + 1)

    def _transaction(self, instruction: Instruction) -> Instruction:
        """Read `.commit()` behind `tx()`, which bytecode has as its argument."""
        if instruction.arguments or self.tokens[self.index] != ".":
            return instruction
        operation = self.tokens[self.index + 1]
        if operation not in ("begin", "commit", "rollback", "open", "close"):
            raise self.unknown_method(operation, self.index + 1)
        self.index += 2
        self.expect("(")
        self.expect(")")
        return Instruction("tx", (operation,), instruction.line, instruction.column)

    def name(self) -> Any:
        """Read what begins with a name: a call, a constant, a variable."""
        index = self.index
        name = self.tokens[index]
        following = self.tokens[index + 1]
        if following == "(":
            return self._call(name)
        if following == ".":
            if name == "__" or name == "g":
                self.index = index + 2
                return Traversal(tuple(self._chain()))
            return self._qualified()
        if name == "new":
            return self.new()
        self.index = index + 1
        bound = self.bound
        if bound is not None and name in bound:
            return Variable(name, *self.lexed.place(index))
        if name in names.CONSTANTS:
            return names.CONSTANTS[name]
        token = BARE_TOKENS.get(name)
        if token is not None:
            return token
        if names.is_strategy(name):
            return Strategy(name)
        if bound is not None or name in _NEVER_VARIABLES:
            raise self.unknown_symbol(name, index)
        return Variable(name, *self.lexed.place(index))

    def _call(self, name: str) -> Any:
        """Read a call that is an argument: a predicate, a function, or a child traversal that begins with it."""
        index = self.index
        if name in names.PREDICATES:
            return self._predicate(name)
        if name == names.NOT:
            return self._not()
        if name in FUNCTIONS:
            return self._function(name, index)
        if name not in names.STEP_NAMES:
            if names.is_strategy(name):
                self.index += 1
                return Strategy(name, self.settings())
            if names.find_step(name) is None:
                predicate = names.find_predicate(name)
                if predicate is not None:
                    return self._predicate(predicate)
        return Traversal(tuple(self._chain()))

    def _not(self) -> Any:
        """Read `not(...)`, which is a predicate if its argument is."""
        index = self.index
        self.index += 1
        arguments = self.arguments()
        if len(arguments) == 1 and isinstance(arguments[0], Predicate):
            return self._connectives(Predicate(names.NOT, arguments[0]))
        first = Instruction(names.NOT, arguments, *self.lexed.place(index))
        self._count_step()
        if self.tokens[self.index] != ".":
            return Traversal((first,))
        self.index += 1
        return Traversal((first, *self._chain()))

    def _predicate(self, name: str) -> Predicate:
        """Read a predicate with its connectives; the next token is its name."""
        index = self.index
        self.index += 1
        arguments = self.types() if name == "typeOf" else self.arguments()
        try:
            predicate = make_predicate(name, arguments)
        except UnfitArguments:
            raise self.unfit_arguments(name, arguments, index) from None
        return self._connectives(predicate) if self.tokens[self.index] == "." else predicate

    def _connectives(self, predicate: Predicate) -> Predicate:
        depth = self.depth
        while self.tokens[self.index] == ".":
            self.index += 1
            index = self.index
            connective = self.tokens[index].rstrip("_").lower()
            if connective not in ("and", "or", "negate"):
                raise self.unknown_method(self.tokens[index], index)
            self.index += 1
            if self.tokens[self.index] != "(":
                raise self.unexpected(missing="(")
            # Each change of the connective makes the tree deeper by one.
            if connective != predicate.operator:
                self.open()
            arguments = self.arguments()
            try:
                predicate = connect(connective, predicate, arguments)
            except UnfitArguments:
                raise self.unfit_arguments(connective, arguments, index) from None
        self.depth = depth
        return predicate

    def _function(self, key: str, index: int) -> Any:
        """Read a call of a function; `index` is that of its name, behind which the arguments come."""
        self.index = index + 1
        arguments = self.arguments()
        try:
            return FUNCTIONS[key](arguments)
        except UnfitArguments:
            raise self.unfit_arguments(self.tokens[index], arguments, index) from None
        except LiteralFailure as refusal:
            raise self.syntax(str(refusal), index) from None

    def _qualified(self) -> Any:
        """Read a name with dots: `T.id`, `P.gt(1)`, `X.build().create()`, and all of them behind their packages."""
        first = last = self.index
        tokens = self.tokens
        while tokens[last + 1] == "." and tokens[last + 2].isidentifier():
            last += 2
            if tokens[last] == "__" or tokens[last + 1] == "(":
                break
        owner, name = (tokens[last - 2] if last > first else ""), tokens[last]
        if owner == "Lambda" or tokens[first] == "Lambda":
            raise self.groovy_rule("closure", first, last)
        if name == "__":
            self.index = last + 1
            self.expect(".")
            return Traversal(tuple(self._chain()))
        if tokens[last + 1] == "(":
            return self._qualified_call(owner, name, first, last)
        self.index = last + 1
        token = find_token(owner, name)
        if token is not None:
            return token
        members = names.MEMBERS.get(owner)
        if members is not None and name in members:
            return members[name]
        simple = owner if name == "class" else name
        if names.is_strategy(simple):
            return Strategy(simple)
        raise self.unknown_symbol(tokens[first], first)

    def _qualified_call(self, owner: str, name: str, first: int, last: int) -> Any:
        if owner in ("P", "TextP"):
            predicate = names.find_predicate(name)
            if predicate is None:
                raise self.unknown_method(name, last)
            self.index = last
            return self._predicate(predicate)
        key = f"{owner}.{name}"
        if key in FUNCTIONS:
            return self._function(key, last)
        if names.is_strategy(name):
            self.index = last + 1
            return Strategy(name, self.settings())
        if names.is_strategy(owner):
            self.index = last
            return Strategy(owner, self.builder())
        if owner in TOKENS:
            raise self.unknown_method(name, last)
        raise self.unknown_symbol(self.tokens[first], first)

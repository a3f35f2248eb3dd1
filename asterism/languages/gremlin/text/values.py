"""Readers of arguments that are plain values: strings, numbers, ranges, lists, maps and sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from asterism.languages.gremlin.failure import SYNTAX_SCOPE, CompileFailure
from asterism.languages.gremlin.plan.instructions import DEPTH_MAX
from asterism.languages.gremlin.text.cursor import Cursor
from asterism.languages.gremlin.text.literals import (
    Interpolation,
    LiteralFailure,
    range_members,
    read_number,
    read_string,
)
from asterism.languages.gremlin.text.names import CONSTANTS
from asterism.languages.gremlin.values.structures import freeze


class ValueReader(Cursor, ABC):
    """The part of the parser for values; each method leaves the cursor behind its construct."""

    __slots__ = ()

    @abstractmethod
    def name(self) -> Any:
        """Read an argument that begins with a name."""

    def arguments(self) -> tuple[Any, ...]:
        """Read arguments in parentheses; the next token is the first parenthesis."""
        tokens = self.tokens
        self.index += 1
        if tokens[self.index] == ")":
            self.index += 1
            return ()
        self.open()
        arguments = []
        while True:
            arguments.append(self.argument())
            token = tokens[self.index]
            if token == ",":
                self.index += 1
            elif token == ")":
                self.index += 1
                self.depth -= 1
                return tuple(arguments)
            else:
                raise self.unexpected()

    def argument(self) -> Any:
        token = self.tokens[self.index]
        first = token[:1]
        reader = _READERS.get(first)
        if reader is not None:
            return reader(self)
        if token.isidentifier() or "$" in token:
            return self.name()
        raise self.unexpected()

    def string(self) -> Any:
        return self._literal(read_string)

    def number(self) -> Any:
        if self.tokens[self.index] in _INFINITIES:
            self.index += 1
            return _INFINITIES[self.tokens[self.index - 1]]
        return self._literal(read_number)

    def _literal(self, read: Callable[[str], Any]) -> Any:
        """Read a string or a number, or a range that begins with it."""
        index = self.index
        try:
            value = read(self.tokens[index])
            self.index = index + 1
            if self.tokens[self.index] == "..":
                self.index += 1
                return range_members(value, read(self.tokens[self._end_of_range()]))
        except LiteralFailure as refusal:
            if not refusal.args:
                raise self.unexpected() from None
            raise self.syntax(str(refusal), self.index) from None
        except Interpolation:
            raise self.groovy_rule("gstring", index, index) from None
        return value

    def _end_of_range(self) -> int:
        if _READERS.get(self.tokens[self.index][:1]) not in (ValueReader.string, ValueReader.number):
            raise self.unexpected(missing="]")
        self.index += 1
        return self.index - 1

    def _parenthesized(self) -> Any:
        self.open()
        self.index += 1
        value = self.argument()
        self.expect(")")
        self.depth -= 1
        return value

    def _list_or_map(self) -> Any:
        tokens = self.tokens
        self.index += 1
        if tokens[self.index] == "]":
            self.index += 1
            return []
        if tokens[self.index] == ":":
            self.index += 1
            self.expect("]")
            return {}
        self.open()
        # A key without quotes is a text, also where it is the name of a constant or binding.
        is_map = tokens[self.index + 1] == ":" and tokens[self.index].isidentifier()
        members: list[Any] = []
        entries: dict[Any, Any] = {}
        while True:
            if is_map:
                self._entry(entries)
            else:
                members.append(self.argument())
                if tokens[self.index] == ":" and len(members) == 1:
                    is_map = True
                    self._value_of(entries, members[0])
            if tokens[self.index] == ",":
                self.index += 1
            else:
                break
        self.expect("]")
        self.depth -= 1
        return entries if is_map else members

    def _entry(self, entries: dict[Any, Any]) -> None:
        key = self.tokens[self.index]
        if self.tokens[self.index + 1] == ":" and key.isidentifier():
            self.index += 1
            self._value_of(entries, key)
        else:
            self._value_of(entries, self.argument())

    def _value_of(self, entries: dict[Any, Any], key: Any) -> None:
        index = self.index
        self.expect(":")
        key = self._hashable(key, index)
        entries[key] = self.argument()

    def _hashable(self, value: Any, index: int) -> Any:
        value = freeze(value)
        try:
            hash(value)
        except TypeError:
            raise self.syntax("A value of this type cannot be a key of a map or a member of a set", index) from None
        return value

    def _set(self) -> Any:
        """Read a set; braces that hold anything else are a closure."""
        first = self.index
        self.index += 1
        if self.tokens[self.index] == "}":
            self.index += 1
            return set()
        self.open()
        members = set()
        try:
            while True:
                index = self.index
                if self.tokens[index] == "it":
                    raise self.unexpected()
                members.add(self._hashable(self.argument(), index))
                if self.tokens[self.index] != ",":
                    break
                self.index += 1
            self.expect("}")
        except CompileFailure as refusal:
            if refusal.scope == SYNTAX_SCOPE and self.depth <= DEPTH_MAX:
                raise self.closure(first) from None
            raise
        self.depth -= 1
        return members


_INFINITIES = {"-Infinity": -CONSTANTS["Infinity"], "+Infinity": CONSTANTS["Infinity"]}
_READERS: dict[str, Callable[[ValueReader], Any]] = {
    "'": ValueReader.string,
    '"': ValueReader.string,
    "[": ValueReader._list_or_map,
    "{": ValueReader._set,
    "(": ValueReader._parenthesized,
    **dict.fromkeys("0123456789+-.", ValueReader.number),
}

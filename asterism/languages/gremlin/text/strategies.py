"""Readers of strategies in the spellings of three languages, and of the types that `typeOf` asks for."""

from __future__ import annotations

from typing import Any

from asterism.languages.gremlin.text.calls import add_setting
from asterism.languages.gremlin.text.names import is_strategy
from asterism.languages.gremlin.text.values import ValueReader
from asterism.languages.gremlin.tokens import TOKENS
from asterism.languages.gremlin.tree import Strategy


class StrategyReader(ValueReader):
    """The part of the parser for names of classes."""

    __slots__ = ("bound",)

    # The names of the request's bindings, if they are known.
    bound: frozenset[str] | None

    def types(self) -> tuple[Any, ...]:
        """Read the argument of `typeOf`: a type by its constant, or a class by its name with or without its package."""
        index = self.index + 1
        name = self.tokens[index]
        if not name.isidentifier():
            return self.arguments()
        last = index
        while self.tokens[last + 1] == "." and self.tokens[last + 2].isidentifier():
            last += 2
        if self.tokens[last] == "class" and last > index:
            last -= 2
            end = last + 3
        else:
            end = last + 1
        if self.tokens[end] != ")" or (self.bound is not None and name in self.bound):
            return self.arguments()
        self.index = end + 1
        simple = self.tokens[last]
        return (TOKENS["GType"].get(simple, simple),)

    def new(self) -> Strategy:
        """Read `new X(a: b)`, with or without the package of the strategy."""
        self.index += 1
        index = self.index
        while self.tokens[self.index + 1] == "." and self.tokens[self.index + 2].isidentifier():
            self.index += 2
        name = self.tokens[self.index]
        if not is_strategy(name):
            raise self.unknown_symbol(name, index) if name.isidentifier() else self.unexpected()
        self.index += 1
        return Strategy(name, self.settings() if self.tokens[self.index] == "(" else {})

    def settings(self) -> dict[str, Any]:
        """Read `(a: b, c: d)`."""
        self.expect("(")
        settings: dict[str, Any] = {}
        self.open()
        while self.tokens[self.index] != ")":
            if settings:
                self.expect(",")
            name = self.tokens[self.index]
            if name[:1] in ("'", '"'):
                name = self.string()
            elif name.isidentifier():
                self.index += 1
            else:
                raise self.unexpected()
            self.expect(":")
            settings[name] = self.argument()
        self.index += 1
        self.depth -= 1
        return settings

    def builder(self) -> dict[str, Any]:
        """Read `build().a(b).c(d).create()`, or `instance()`."""
        settings: dict[str, Any] = {}
        while True:
            index = self.index
            method = self.tokens[index]
            if not method.isidentifier():
                raise self.unexpected()
            self.index += 1
            if self.tokens[self.index] != "(":
                raise self.unexpected(missing="(")
            arguments = self.arguments()
            if method.lower() in ("create", "instance"):
                return settings
            if method.lower() != "build":
                add_setting(settings, method, arguments)
            if self.tokens[self.index] != ".":
                return settings
            self.index += 1

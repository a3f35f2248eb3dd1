"""The rules of a subscription, compiled: which copies of a message enter it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asterism.languages.bus_sql.actions import Act, compile_action
from asterism.languages.bus_sql.conditions import Compiler, Evaluate
from asterism.languages.bus_sql.correlation import CorrelationIndex
from asterism.languages.bus_sql.errors import MalformedRule
from asterism.languages.bus_sql.parser import parse_action, parse_filter
from asterism.languages.bus_sql.subject import Subject
from asterism.languages.bus_sql.typed_values import typed_value
from asterism.models.messages.descriptions import FilterDescription, RuleDescription, TypedProperty
from asterism.models.messages.rules import CompiledRules, Envelope, FilterFailed
from asterism.values.amqp.message import Message

# Twice the subscriptions that a topic can have; the rules of few have more than a dozen.
_KEPT_MAX: Final = 4_096
_KEPT_RULES_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class _SqlRule:
    matches: Evaluate
    act: Act | None


class RuleCompiler:
    """Compiles the rules of subscriptions, as `MessageStore` needs it."""

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        """`random_bytes` makes the values of newid()."""
        self._random_bytes = random_bytes
        self._compiled: OrderedDict[tuple[RuleDescription, ...], CompiledRules] = OrderedDict()

    def __call__(self, rules: Sequence[RuleDescription]) -> CompiledRules:
        """Return compiled rules; MalformedRule for the first one that does not compile.

        A change of one subscription of a topic compiles the others anew: theirs are kept.
        """
        if len(rules) > _KEPT_RULES_MAX:
            return self._compile(rules)
        key = tuple(rules)
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = self._compile(key)
            if len(self._compiled) > _KEPT_MAX:
                self._compiled.popitem(last=False)
        else:
            self._compiled.move_to_end(key)
        return compiled

    def _compile(self, rules: Sequence[RuleDescription]) -> CompiledRules:
        compiled = _Rules()
        correlated: list[FilterDescription] = []
        for rule in rules:
            act = self._action(rule)
            match rule.filter.kind:
                case "true" if act is None:
                    compiled.takes_all = True
                case "true":
                    compiled.sql_rules.append(_SqlRule(lambda _: True, act))
                case "sql":
                    compiled.sql_rules.append(_SqlRule(self._filter(rule.filter), act))
                case "correlation":
                    correlated.append(rule.filter)
                    compiled.correlated_acts.append(act)
                case "false":
                    pass
                case other:
                    raise MalformedRule(reason=f"'{other}' is not a kind of filter.")
        compiled.index = CorrelationIndex(correlated)
        # Rules without actions come first: the first of them that matches ends their search.
        compiled.sql_rules.sort(key=lambda rule: rule.act is not None)
        return compiled

    def _filter(self, given: FilterDescription) -> Evaluate:
        compiler = Compiler(_values_of(given.parameters), self._random_bytes)
        return compiler.compile(parse_filter(given.expression or ""))

    def _action(self, rule: RuleDescription) -> Act | None:
        if not rule.action_sql:
            return None
        compiler = Compiler(_values_of(rule.action_parameters), self._random_bytes)
        statements = parse_action(rule.action_sql)
        return compile_action(statements, compiler) if statements else None


class _Rules:
    """Rules without an action add the message once, together; each rule with one adds a copy of its own."""

    __slots__ = ("correlated_acts", "index", "sql_rules", "takes_all")

    def __init__(self) -> None:
        self.takes_all = False
        self.sql_rules: list[_SqlRule] = []
        self.index = CorrelationIndex(())
        # By the place of the filter in the index.
        self.correlated_acts: list[Act | None] = []

    def select(self, message: Message, envelope: Envelope) -> list[bytes | None]:
        if self.takes_all and not self.sql_rules and not self.correlated_acts:
            return [None]
        subject = Subject(message, envelope)
        is_wanted = self.takes_all
        copies: list[bytes | None] = []
        failure: FilterFailed | None = None
        try:
            for place in self.index.matches(subject):
                act = self.correlated_acts[place]
                if act is None:
                    is_wanted = True
                else:
                    copies.append(act(subject))
        except FilterFailed as problem:
            failure = problem
        for rule in self.sql_rules:
            if rule.act is None and is_wanted:
                continue
            try:
                if rule.matches(subject) is not True:
                    continue
                if rule.act is None:
                    is_wanted = True
                else:
                    copies.append(rule.act(subject))
            except FilterFailed as problem:
                failure = failure or problem
        if is_wanted:
            return [None, *copies]
        # A rule that fails loses the message only if no other rule lets it in.
        if failure is not None and not copies:
            raise failure
        return copies


def _values_of(parameters: Sequence[TypedProperty]) -> dict[str, Any]:
    return {
        parameter.name.removeprefix("@").lower(): typed_value(parameter.name, parameter.type, parameter.text)
        for parameter in parameters
    }

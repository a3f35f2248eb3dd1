"""Actions: the sections of a copy of a message whose properties a rule has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from asterism.languages.bus_sql.conditions import Compiler
from asterism.languages.bus_sql.errors import malformed
from asterism.languages.bus_sql.subject import SETTABLE, SYSTEM, Draft, Subject
from asterism.languages.bus_sql.tree import Property, Remove, Set, Statement
from asterism.languages.bus_sql.values import kind_of, sendable
from asterism.models.messages.rules import FilterFailed
from asterism.values.amqp.message import encode_application_properties, encode_properties
from asterism.values.amqp.types import InvalidAmqp

# S4: all properties of a message that an action makes, in bytes.
PROPERTIES_BYTES_MAX: Final = 64 * 1024

Change = Callable[[Draft], None]
Act = Callable[[Subject], bytes]


def compile_action(statements: tuple[Statement, ...], compiler: Compiler) -> Act:
    """Return a function that carries out the statements in their order, and returns the sections of the copy: its
    header, its annotations and its bare message. The body keeps its bytes."""
    changes = tuple(_change(statement, compiler) for statement in statements)

    def act(subject: Subject) -> bytes:
        draft = Draft(subject.message, subject.envelope)
        for change in changes:
            change(draft)
        return _sections(draft)

    return act


def _change(statement: Statement, compiler: Compiler) -> Change:
    target = statement.property
    field = _settable_field(target) if target.is_system else ""
    match statement:
        case Remove():
            return (lambda draft: draft.set_system(field, None)) if field else _remover(target.name)
        case Set(_, value):
            evaluate = compiler.compile(value)
            return _system_setter(field, evaluate) if field else _user_setter(target.name, evaluate)


def _settable_field(target: Property) -> str:
    field = SETTABLE.get(target.name.lower())
    if field is not None:
        return field
    if target.name.lower() in SYSTEM:
        raise malformed(f"The system property '{target.name}' cannot be changed by an action.", target.position)
    raise malformed(f"There is no system property '{target.name}'.", target.position)


def _remover(name: str) -> Change:
    return lambda draft: draft.remove_user(name)


def _user_setter(name: str, evaluate: Callable[[Subject], Any]) -> Change:
    def change(draft: Draft) -> None:
        value = evaluate(draft)
        if value is not None and kind_of(value) is None:
            raise FilterFailed(f"The value of '{name}' is not of a type that a property can have.")
        draft.set_user(name, sendable(value))

    return change


def _system_setter(field: str, evaluate: Callable[[Subject], Any]) -> Change:
    def change(draft: Draft) -> None:
        value = evaluate(draft)
        if value is not None and not isinstance(value, str):
            raise FilterFailed("The properties of the system that an action can set are texts.")
        draft.set_system(field, None if value is None else str(value))

    return change


def _sections(draft: Draft) -> bytes:
    message = draft.message
    has_other_user, has_other_system = draft.is_changed
    try:
        properties = encode_properties(draft.properties) if has_other_system else message.properties_bytes
        user = (
            encode_application_properties(draft.user_properties)
            if has_other_user
            else message.application_properties_bytes
        )
    except (InvalidAmqp, ValueError) as problem:
        raise FilterFailed(f"The properties that the action makes cannot be sent: {problem}.") from None
    if len(properties) + len(user) > PROPERTIES_BYTES_MAX:
        raise FilterFailed(f"The properties that the action makes have more than {PROPERTIES_BYTES_MAX:,} bytes.")
    rest = message.body_bytes + message.footer_bytes
    return message.header_bytes + message.annotations_bytes + properties + user + rest
